from memory.messages import (
    Chunk,
    ContextSection,
    FileSummary,
    Hit,
    MemoryRow,
    SearchResult,
)
from memory.payloads import context_payload, iso_time, list_payload, search_payload, show_payload
from memory.status_payloads import blank_status

TIME_NS = 1_778_587_200_999_999_999
"""2026-05-12 12:00:00.999999999 UTC."""
TIME = "2026-05-12T12:00:00Z"


def summary(path, chunks=1):
    return FileSummary(path, path, TIME_NS, 10, 1, chunks, "", "")


def test_a_search_answer_has_the_documented_fields():
    hit = Hit("a.md", "# A", 3, 9, 0.8, 0.7, 0.9, "snip", TIME_NS, 10, 0.25, "Who?")
    result = SearchResult((hit,), "e", 4, "no query embedding", 0.5)

    assert search_payload("q", result, source="disk", age_s=2.5, fresh_paths={"a.md"}) == {
        "query": "q",
        "source": "disk",
        "age_s": 2.5,
        "degraded": "no query embedding",
        "threshold": 0.5,
        "hits": [
            {
                "path": "a.md",
                "headlines": "# A",
                "start_line": 3,
                "end_line": 9,
                "score": 0.8,
                "text_score": 0.7,
                "vector_score": 0.9,
                "noise": 0.25,
                "part": "Who?",
                "snippet": "snip",
                "last_modified": TIME,
                "fresh": True,
            }
        ],
    }


def test_a_listing_is_sorted_by_path():
    assert list_payload([summary("b.md", 2), summary("a.md")]) == [
        {"path": "a.md", "chunks": 1, "last_modified": TIME},
        {"path": "b.md", "chunks": 2, "last_modified": TIME},
    ]


def test_a_shown_file_has_its_chunks_in_order():
    chunk = Chunk("# A", "ctx", "body", "ff", 1, 2, 1, 5)

    assert show_payload(summary("a.md"), (chunk,)) == {
        "path": "a.md",
        "last_modified": TIME,
        "chunks": [
            {
                "headlines": "# A",
                "context": "ctx",
                "content": "body",
                "content_hash": "ff",
                "part": 1,
                "start_line": 1,
                "end_line": 5,
            }
        ],
    }


def test_a_context_answer_has_section_and_rows():
    section = ContextSection("# Memories\n", (MemoryRow("a.md", 0.9, "A."),), "")

    assert context_payload(section) == {
        "section": "# Memories\n",
        "rows": [{"path": "a.md", "score": 0.9, "description": "A."}],
        "degraded": "",
    }


def test_a_blank_status_knows_nothing_and_is_not_shared():
    status = blank_status("stopped")
    status["failed"].append("x")
    status["saves"]["failed"].append("x")

    assert blank_status("starting")["failed"] == []
    assert blank_status("starting")["saves"]["failed"] == []
    assert set(status) == {
        "state",
        "ready",
        "files",
        "chunks",
        "pending",
        "failed",
        "skipped",
        "embedding",
        "building",
        "embedded_inputs",
        "tokens",
        "model_calls",
        "generation",
        "snapshot_age_s",
        "journal_bytes",
        "threshold",
        "disk_error",
        "watching",
        "last_event_age_s",
        "last_reconcile_age_s",
        "saves",
        "actors",
        "config_error",
    }


def test_times_beyond_the_calendar_are_shown_as_the_epoch():
    assert iso_time(0) == "1970-01-01T00:00:00Z"
    assert iso_time(-1) == "1969-12-31T23:59:59Z"
    assert iso_time(10**30) == "1970-01-01T00:00:00Z"
