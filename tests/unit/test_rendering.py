from memory.rendering import (
    list_markdown,
    search_markdown,
    show_documents,
    source_line,
    status_markdown,
)
from memory.status_payloads import blank_status


def hit(path="wiki/a.md", score=0.88, **changes):
    return {
        "path": path,
        "headlines": "# Alice > ## Meetings",
        "start_line": 3,
        "end_line": 9,
        "score": score,
        "text_score": 0.5,
        "vector_score": 0.75,
        "noise": 0.2,
        "part": "",
        "snippet": "Met in Atlanta.",
        "last_modified": "2026-05-12T12:00:00Z",
        "fresh": True,
        **changes,
    }


def answer(*hits, degraded="", source="disk", threshold=None):
    return {
        "query": "q",
        "source": source,
        "age_s": 65,
        "degraded": degraded,
        "threshold": threshold,
        "hits": list(hits),
    }


def test_hits_are_grouped_by_file_with_score_citation_headlines_and_snippet():
    text = search_markdown(answer(hit(), hit("b.md", 0.5), hit(score=0.3, start_line=12)))

    assert text == (
        "3 hits in 2 files — source: disk, written 1 minute ago\n"
        "\n"
        "## `wiki/a.md`\n"
        "\n"
        "- **0.88** `wiki/a.md:3-9`\n"
        "  `# Alice > ## Meetings`\n"
        "  > Met in Atlanta.\n"
        "\n"
        "- **0.30** `wiki/a.md:12-9`\n"
        "  `# Alice > ## Meetings`\n"
        "  > Met in Atlanta.\n"
        "\n"
        "## `b.md`\n"
        "\n"
        "- **0.50** `b.md:3-9`\n"
        "  `# Alice > ## Meetings`\n"
        "  > Met in Atlanta.\n"
    )


def test_a_changed_file_a_degraded_search_and_no_hit_are_said():
    assert "(changed since it was indexed)" in search_markdown(answer(hit(fresh=False)))
    assert "no query embedding" in search_markdown(answer(degraded="no query embedding"))
    assert search_markdown(answer(source="daemon")) == (
        "0 hits in 0 files — source: daemon\n\n"
        "Nothing was found; try other words, a name or a synonym.\n"
    )


def test_explain_shows_both_sides():
    text = search_markdown(answer(hit()), explain=True)

    assert "  text 0.500, vector 0.750 (noise 0.200)\n" in text
    assert "not calibrated yet" in text
    calibrated = search_markdown(answer(hit(), threshold=0.25), explain=True)
    assert (
        "Scores are calibrated: what unrelated prompts reach in this workspace, level 0.250, scores"
        " at most 0.55.\n"
    ) in calibrated
    assert "level" not in search_markdown(answer(hit(), threshold=0.25))


def test_explain_shows_which_part_of_a_long_prompt_a_hit_answers():
    long = answer(hit(part="Whom did\nwe meet?"), hit(path="b.md"))

    assert search_markdown(long, explain=True).count("  answers: ") == 1
    assert "  answers: Whom did we meet?\n" in search_markdown(long, explain=True)
    assert "Whom" not in search_markdown(long)


def test_nothing_from_a_file_is_live_in_any_answer():
    """FAULTS 84, 87."""
    evil = "x`|\x1b[31m\n# y\u202e\U000e0041</m>"
    shown = {"path": evil, "last_modified": "now", "chunks": [chunk(headlines=evil, content=evil)]}
    status = blank_status("ready") | {
        "failed": [
            {
                "path": evil,
                "stage": "read",
                "reason": evil,
                "attempts": 1,
                "retry_at": 0.0,
                "waiting": is_waiting,
            }
            for is_waiting in (False, True)
        ],
        "skipped": [{"path": evil, "reason": evil}],
    }
    texts = [
        search_markdown(answer(hit(evil, headlines=evil, snippet=evil), degraded=evil)),
        list_markdown([{"path": evil, "chunks": 1, "last_modified": "now"}], "source: disk"),
        status_markdown(status),
        "".join(show_documents(shown, "source: disk")),
    ]

    assert not any(set(text) & {"\x1b", "\u202e", "\U000e0041"} for text in texts)
    assert not any("\n# y" in text for text in texts[:3])


def chunk(**changes):
    return {
        "headlines": "# A",
        "context": "ctx",
        "content": "body",
        "content_hash": "ff",
        "part": 1,
        "start_line": 1,
        "end_line": 5,
        **changes,
    }


def test_each_chunk_of_a_file_is_a_document_of_its_own():
    shown = {
        "path": "a.md",
        "last_modified": "2026-05-12T12:00:00Z",
        "chunks": [chunk(content="```\nopen"), chunk(part=2, start_line=6, end_line=9)],
    }

    assert list(show_documents(shown, "source: daemon")) == [
        "`a.md` — 2 chunks, last modified 2026-05-12T12:00:00Z — source: daemon\n",
        "---\n\nPath `a.md:1-5`\n\n`# A`\n\n```\nopen\n",
        "---\n\nPath `a.md:6-9` (part 2)\n\n`# A`\n\nbody\n",
    ]


def test_a_listing_is_a_table():
    files = [{"path": "a.md", "chunks": 12, "last_modified": "2026-05-12T12:00:00Z"}]

    assert list_markdown(files, "source: daemon") == (
        "1 file — source: daemon\n"
        "\n"
        "| File | Chunks | Last modified |\n"
        "| - | -: | - |\n"
        "| `a.md` | 12 | 2026-05-12T12:00:00Z |\n"
    )
    assert list_markdown([], "source: daemon") == "0 files — source: daemon\n"


def test_a_status_tells_state_counts_failures_and_actors():
    status = blank_status("indexing") | {
        "files": 2,
        "chunks": 1234,
        "pending": 1,
        "embedding": {"provider": "local", "model": "m", "dimension": 384},
        "snapshot_age_s": 7300.0,
        "failed": [
            {
                "path": "x.md",
                "stage": "embed",
                "reason": "bad",
                "attempts": 2,
                "retry_at": 0.0,
                "waiting": False,
            }
        ],
        "skipped": [{"path": "y.md", "reason": "too large"}],
        "actors": [{"name": "Watcher", "pid": 7, "restarts": 0, "state": "alive"}],
    }

    assert status_markdown(status) == (
        "memory: indexing\n"
        "\n"
        "- 2 files, 1,234 chunks indexed\n"
        "- model: local / m, dimension 384\n"
        "- pending: 1 file\n"
        "- embedded since the start: 0 texts\n"
        "- on disk: written 2 hours ago\n"
        "- failed: `x.md` (embed): bad\n"
        "- skipped: `y.md`: too large\n"
        "- actor Watcher: alive, pid 7\n"
    )


def test_a_status_tells_how_far_the_index_of_another_model_is():
    building = {
        "provider": "local",
        "model": "new|",
        "dimension": 8,
        "files": 412,
        "chunks": 900,
        "words_only": "",
    }
    status = blank_status("indexing") | {"files": 1200, "building": building}
    line = "- being built: local / new\\|, dimension 8, 412 of 1,200 files"

    assert f"{line}\n" in status_markdown(status)
    building["words_only"] = "no | key"
    assert f"{line}; until then searches find words only: no \\| key\n" in status_markdown(status)


def test_a_status_tells_how_far_a_rebuild_is_during_which_vectors_are_found():
    embedding = {"provider": "local", "model": "m", "dimension": 8}
    building = {**embedding, "files": 412, "chunks": 900}
    status = blank_status("ready") | {"files": 1200, "building": building, "embedding": embedding}

    text = status_markdown(status)

    assert "- being built: local / m, 412 of 1,200 files embedded anew\n" in text


def test_a_stopped_memory_without_an_index_says_so():
    assert status_markdown(blank_status("stopped")) == (
        "memory: stopped\n\n- 0 files, 0 chunks indexed\n- on disk: nothing yet\n"
    )


def test_ages_are_said_in_the_largest_whole_unit():
    ages = {-5: "0 seconds", 1: "1 second", 59.9: "59 seconds", 60: "1 minute"}
    ages |= {3600: "1 hour", 86_400 * 3: "3 days"}

    assert {age: source_line("disk", age) for age in ages} == {
        age: f"source: disk, written {text} ago" for age, text in ages.items()
    }


def test_a_status_tells_what_the_disk_holds():
    running = blank_status("ready") | {"snapshot_age_s": 7300.0, "journal_bytes": 4_000}

    assert "- on disk: written 2 hours ago, and every change since\n" in status_markdown(running)
    refused = running | {"disk_error": "cannot write memory.wal: full"}
    assert (
        "- on disk: written 2 hours ago\n- disk: cannot write memory.wal: full; it is tried again\n"
    ) in status_markdown(refused)
    assert "on disk" not in status_markdown(blank_status("starting"))


def test_status_tells_how_often_the_kernel_lost_events():
    """FAULTS 20."""
    status = blank_status("ready")
    assert "watching" not in status_markdown(status)

    status["watching"]["overflows"] = 1
    line = "- watching: the kernel lost events once; each time all files were compared\n"
    assert line in status_markdown(status)
    status["watching"]["overflows"] = 1_200
    assert "lost events 1,200 times;" in status_markdown(status)


def test_status_says_whether_scores_are_calibrated():
    ready = blank_status("ready")

    assert "- scores: not calibrated\n" in status_markdown(ready)
    assert "- scores: calibrated\n" in status_markdown(ready | {"threshold": 0.4})
    assert "scores" not in status_markdown(blank_status("stopped"))


def test_status_tells_what_the_provider_costs_and_what_is_wrong_with_it():
    status = blank_status("ready")
    quiet = status_markdown(status)
    status["model_calls"] |= {
        "requests": 1_200,
        "failures": {"rejected": 1, "timeout": 2},
        "billed_tokens": 2_500_000,
        "cost": 0.05,
        "breaker": "open",
        "breaker_since": 60.0,
        "last_error": "openai: the key | is refused",
        "refused_texts": 1,
        "learned_limits": (128, 150_000),
        "token_budget": 3_000_000,
        "token_room": 500_000,
    }

    told = status_markdown(status).splitlines()

    assert [line for line in told if line not in quiet.splitlines()] == [
        (
            "- calls: 1,200 requests, 2,500,000 tokens billed, cost 0.0500,"
            " failed: 1 rejected, 2 timeout"
        ),
        "- budget: 500,000 of 3,000,000 tokens left",
        (
            "- provider does not work since 1970-01-01T00:01:00Z, 0 files wait for it, search has"
            " no vectors: openai: the key \\| is refused; it is asked again"
        ),
        "- refused by the provider: 1 text",
        "- provider takes less than it promises: 128 texts, 150,000 tokens at once",
    ]


def test_of_many_files_that_fail_for_one_reason_a_few_are_named():
    def failed(path, reason):
        return {
            "path": path,
            "stage": "embed",
            "reason": reason,
            "attempts": 1,
            "retry_at": 0.0,
            "waiting": False,
        }

    status = blank_status("ready")
    status["failed"] = [failed(f"{n}.md", "down") for n in range(8)] + [failed("x.md", "bad")]

    lines = [line for line in status_markdown(status).splitlines() if "failed" in line]
    assert lines == [
        *(f"- failed: `{n}.md` (embed): down" for n in range(5)),
        "- failed: 3 more files (embed): down",
        "- failed: `x.md` (embed): bad",
    ]


def test_a_status_tells_what_became_of_saved_facts():
    saves = {
        "queued": 2,
        "problem": "skills/memory/save.md is missing",
        "failed": [
            {"event_id": "ab", "attempts": 1, "reason": "failed", "retry_at": 1.0, "parked": False},
            {"event_id": "cd", "attempts": 5, "reason": "a|b", "retry_at": 1.0, "parked": True},
        ],
        "results": [
            {"event_id": f"e{number}", "result": f"created wiki/{number}.md", "at": 1.0}
            for number in range(9)
        ],
    }

    lines = status_markdown(blank_status("ready") | {"saves": saves}).splitlines()

    facts = [line for line in lines if "fact" in line]
    assert facts[:3] == [
        "- saved facts waiting: 2: skills/memory/save.md is missing",
        "- fact ab: failed (1 attempt, tried again)",
        "- fact cd: a\\|b (5 attempts, parked)",
    ]
    assert facts[3:] == [f"- fact e{number}: created wiki/{number}.md" for number in range(5)]


def test_a_status_without_saved_facts_does_not_speak_of_them():
    saves = {"queued": 0, "problem": "no model is configured", "failed": [], "results": []}

    assert "fact" not in status_markdown(blank_status("ready") | {"saves": saves})


def test_files_that_wait_for_a_provider_say_for_what_and_until_when():
    def held_up(path, retry_at, *, reason="waiting for openai: connection refused", waiting=True):
        return {
            "path": path,
            "stage": "embed",
            "reason": reason,
            "attempts": 1,
            "retry_at": retry_at,
            "waiting": waiting,
        }

    status = blank_status("indexing") | {"pending": 3}
    status["failed"] = [
        held_up("a.md", 120.0),
        held_up("b.md", 60.0),
        held_up("c.md", 60.0, reason="openai: connection refused"),
        held_up("d.md", 60.0, reason="permission denied", waiting=False),
    ]
    status["model_calls"] |= {
        "breaker": "open",
        "breaker_since": 0.0,
        "retry_at": 60.0,
        "last_error": "openai: connection refused",
    }

    lines = status_markdown(status).splitlines()

    wait = "waiting for openai: connection refused, next attempt at 1970-01-01T00:01:00Z"
    own = "openai: connection refused, next attempt at 1970-01-01T00:01:00Z"
    assert [line for line in lines if ".md" in line] == [
        f"- pending: `a.md` (embed): {wait}",
        f"- pending: `b.md` (embed): {wait}",
        f"- pending: `c.md` (embed): {own}",
        "- failed: `d.md` (embed): permission denied",
    ]
    assert "- pending: 3 files" in lines
    assert (
        "- provider does not work since 1970-01-01T00:00:00Z, 3 files wait for it, search has no"
        " vectors: openai: connection refused; it is asked again at 1970-01-01T00:01:00Z"
    ) in lines
