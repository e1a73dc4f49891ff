"""Edits and queries through the real shells, in virtual time."""

import asyncio
import os

import pytest

from memory import absence
from memory.absence import EMPTY_GRACE_S
from memory.errors import ProviderUnavailable
from memory.index_opening import open_or_create
from memory.messages import Query
from tests.inline.conftest import FLUSH_S, INFO, RECONCILE_S, Pipe

FIFTY = "# Fifty\n\nFirst paragraph.\n\n" + "\n\n".join(
    f"## Section {n}\n\nText of section {n}." for n in range(49)
)


async def test_the_first_scan_indexes_every_file_and_then_the_memory_is_ready(pipe: Pipe):
    pipe.write("wiki/a.md", "# A\n\nAlpha.\n")
    pipe.write("b.md", "# B\n\nBeta.\n")

    await pipe.settle()

    status = await pipe.chunker.status.remote()
    assert await pipe.paths() == ["b.md", "wiki/a.md"]
    assert status.ready
    assert status.num_pending == 0
    assert status.failed == ()
    assert pipe.differences() == []


async def test_one_edited_paragraph_of_fifty_sections_costs_one_embedding(pipe: Pipe):
    """SPEC D1."""
    pipe.write("fifty.md", FIFTY)
    await pipe.settle()
    before = len(pipe.worker.model.texts)
    pipe.write("fifty.md", FIFTY.replace("Text of section 7.", "Another text."))

    await pipe.touched("fifty.md")

    assert before == 50
    assert len(pipe.worker.model.texts) - before == 1
    assert "Another text." in pipe.worker.model.texts[-1]
    assert pipe.differences() == []


async def test_a_rename_and_an_undone_deletion_cost_no_embedding(pipe: Pipe):
    """SPEC D3."""
    pipe.write("old.md", "# Title\n\nText.\n")
    await pipe.settle()
    before = len(pipe.worker.model.texts)

    (pipe.root / "old.md").rename(pipe.root / "new.md")
    await pipe.touched("old.md", "new.md")
    assert await pipe.paths() == ["new.md"]
    (pipe.root / "new.md").unlink()
    await pipe.touched("new.md")
    assert await pipe.paths() == []
    pipe.write("back.md", "# Title\n\nText.\n")
    await pipe.touched("back.md")

    assert await pipe.paths() == ["back.md"]
    assert len(pipe.worker.model.texts) == before
    assert pipe.differences() == []


async def test_equal_sections_of_many_new_files_are_embedded_once(pipe: Pipe):
    """FAULTS 49: the files are planned side by side, before any of them is stored."""
    for number in range(20):
        pipe.write(f"copy-{number}.md", "# Same\n\nThe same text.\n")

    await pipe.settle()

    assert len(await pipe.paths()) == 20
    assert len(pipe.worker.model.texts) == 1


async def test_stopping_in_the_middle_of_equal_files_ends_every_worker(pipe: Pipe):
    """One embeds, others wait for its vector: no cancellation may be lost on the way."""
    gate, real = asyncio.Event(), pipe.worker.embed

    async def waits(texts: tuple[str, ...]):
        await gate.wait()
        return real(texts)

    pipe.worker.embed = waits  # type: ignore[method-assign]
    for number in range(4):
        pipe.write(f"copy-{number}.md", "# Same\n\nThe same text.\n")
    await pipe.until(lambda: _are_pending(pipe, 4))
    await pipe.until(lambda: _are_claimed(pipe))
    await pipe.clock.advance(1)

    async with asyncio.timeout(5):
        await pipe.chunker.stop.remote()

    assert all(task.cancelled() for task in pipe.chunker.shell._tasks)
    gate.set()


async def test_an_event_that_never_came_is_made_up_for_by_the_next_reconcile(pipe: Pipe):
    """SPEC D6."""
    await pipe.settle()
    pipe.write("silent.md", "# Silent\n\nNobody told.\n")

    assert [(each.kind, each.path) for each in pipe.differences()] == [("missing", "silent.md")]

    await pipe.reconciled()

    assert await pipe.paths() == ["silent.md"]
    assert pipe.differences() == []


async def test_a_failed_embedding_keeps_the_old_rows_and_is_tried_again(pipe: Pipe):
    """SPEC D2, D5: the failure is listed, and does not hide."""
    pipe.write("a.md", "# A\n\nOld text.\n")
    await pipe.settle()
    pipe.worker.error = ProviderUnavailable("local", "down")
    pipe.write("a.md", "# A\n\nNew text.\n")
    await pipe.touched("a.md")

    failed = (await pipe.chunker.status.remote()).failed
    hits = (await pipe.keeper.search.remote(*_query("old text"))).hits
    assert [(file.path, file.stage, file.reason) for file in failed] == [
        ("a.md", "embed", "local: down")
    ]
    assert [hit.snippet for hit in hits] == ["Old text."]

    pipe.worker.error = None
    await pipe.clock.advance(120)
    await pipe.until(lambda: _finds(pipe, "new text", "New text."))
    hits = (await pipe.keeper.search.remote(*_query("new text"))).hits
    assert (await pipe.chunker.status.remote()).failed == ()
    assert [hit.snippet for hit in hits] == ["New text."]


async def test_a_file_that_is_not_utf8_is_indexed_and_told_of_until_it_is_saved_as_such(
    pipe: Pipe,
):
    (pipe.root / "latin.md").write_bytes("# Caf\u00e9\n\nna\u00efve zebra\n".encode("latin-1"))
    pipe.write("true.md", "# A sign\n\n\ufffd is a character, too.\n")
    await pipe.touched("latin.md", "true.md")
    told = (await pipe.chunker.status.remote()).skipped
    await pipe.restart_chunker()
    await pipe.settle()
    told_again = (await pipe.chunker.status.remote()).skipped
    found = await pipe.provider.search.remote("zebra", 1)
    pipe.write("latin.md", "# Caf\u00e9\n\nna\u00efve zebra\n")
    await pipe.touched("latin.md")

    assert [(file.path, file.reason) for file in told] == [
        ("latin.md", "indexed, but not UTF-8 in 2 places, where U+FFFD stands now")
    ]
    assert told_again == told
    assert [hit.path for hit in found.hits] == ["latin.md"]
    assert (await pipe.chunker.status.remote()).skipped == ()


async def test_a_name_that_is_not_unicode_is_skipped_and_holds_up_nothing(pipe: Pipe):
    """FAULTS 34: its hint carries surrogates, which no encoder takes."""
    pipe.write("caf\udce9.md", "# A\n\nText.\n")
    pipe.write("good.md", "# B\n\nText.\n")
    await pipe.settle()

    await pipe.touched("caf\udce9.md", "good.md", "gone\udcff.md")

    status = await pipe.chunker.status.remote()
    assert await pipe.paths() == ["good.md"]
    assert status.failed == ()
    assert [file.path for file in status.skipped] == ["caf\ufffd.md", "gone\ufffd.md"]
    await pipe.reconciled()
    status = await pipe.chunker.status.remote()
    assert [file.path for file in status.skipped] == ["caf\ufffd.md"]


async def test_a_root_that_is_away_for_a_moment_is_compared_at_once(pipe: Pipe):
    """SPEC D6: the hint that met no root is not lost until the next reconcile."""
    pipe.write("a.md", "# A\n\nOld.\n")
    await pipe.settle()
    real = pipe.chunker.shell._workspace.read
    elsewhere = pipe.root.with_name("elsewhere")

    def read_while_away(raw_path: str):
        pipe.root.rename(elsewhere)
        try:
            return real(raw_path)
        finally:
            elsewhere.rename(pipe.root)
            pipe.chunker.shell._workspace.read = real

    pipe.chunker.shell._workspace.read = read_while_away
    pipe.write("a.md", "# A\n\nNew.\n")
    await pipe.touched("a.md")
    await pipe.until(lambda: _finds(pipe, "new", "New."))

    assert pipe.clock.monotonic() < RECONCILE_S / 2
    assert not (await pipe.chunker.status.remote()).workspace_missing


async def test_a_vanished_root_is_no_mass_deletion(pipe: Pipe):
    """FAULTS 23."""
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.settle()
    pipe.root.rename(pipe.root.with_name("elsewhere"))

    await pipe.clock.advance(RECONCILE_S)
    await pipe.until(lambda: _is_missing(pipe))
    await pipe.touched("a.md")
    kept = await pipe.paths()
    pipe.root.with_name("elsewhere").rename(pipe.root)
    await pipe.reconciled()

    assert kept == ["a.md"]
    assert not (await pipe.chunker.status.remote()).workspace_missing
    assert await pipe.paths() == ["a.md"]


async def test_a_root_that_stays_removed_is_forgotten_after_its_grace_and_not_before(
    pipe: Pipe, monkeypatch
):
    """FAULTS 23: ``rm -rf``; no file costs an embedding when the folder comes back."""
    for name in ("a.md", "wiki/b.md"):
        pipe.write(name, f"# {name}\n\nText.\n")
    await pipe.settle()
    monkeypatch.setattr(absence, "REMOVED_GRACE_S", 3 * RECONCILE_S)
    num_embedded = len(pipe.worker.model.texts)
    elsewhere = pipe.root.with_name("elsewhere")
    pipe.root.rename(elsewhere)
    await pipe.chunker.notice.remote((), True)
    await pipe.until(lambda: _is_missing(pipe))

    await pipe.clock.advance(2 * RECONCILE_S)
    assert await pipe.paths() == ["a.md", "wiki/b.md"]
    await pipe.clock.advance(2 * RECONCILE_S)
    await pipe.until(lambda: _holds(pipe, []))
    assert await _is_missing(pipe)

    elsewhere.rename(pipe.root)
    await pipe.reconciled()
    assert await pipe.paths() == ["a.md", "wiki/b.md"]
    assert not await _is_missing(pipe)
    assert len(pipe.worker.model.texts) == num_embedded


async def test_a_root_that_is_away_with_the_folder_above_it_is_never_forgotten(
    pipe: Pipe, monkeypatch
):
    """SPEC D6: a disk that is unplugged takes its mount point with it."""
    monkeypatch.setattr(absence, "REMOVED_GRACE_S", RECONCILE_S)
    disk = pipe.root.with_name("disk")
    disk.mkdir()
    pipe.root.rename(disk / "notes")
    pipe.root.symlink_to(disk / "notes")
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.chunker.notice.remote((), True)
    await pipe.until(lambda: _holds(pipe, ["a.md"]))
    disk.rename(disk.with_name("unplugged"))

    await pipe.clock.advance(4 * RECONCILE_S)

    assert await _is_missing(pipe)
    assert await pipe.paths() == ["a.md"]


@pytest.mark.parametrize("comes_back", [True, False])
async def test_an_empty_folder_in_the_place_of_the_root_is_believed_after_a_while(
    pipe: Pipe, comes_back: bool
):
    """FAULTS 24: what a file system leaves that is not mounted."""
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.settle()
    elsewhere = pipe.root.with_name("elsewhere")
    pipe.root.rename(elsewhere)
    pipe.root.mkdir()

    await pipe.clock.advance(RECONCILE_S)
    await pipe.until(lambda: _is_missing(pipe))
    kept = await pipe.paths()
    if comes_back:
        pipe.root.rmdir()
        elsewhere.rename(pipe.root)
    await pipe.clock.advance(EMPTY_GRACE_S)
    await pipe.reconciled()
    await pipe.settle()

    assert kept == ["a.md"]
    assert not (await pipe.chunker.status.remote()).workspace_missing
    assert await pipe.paths() == (["a.md"] if comes_back else [])


def _change_secretly(pipe: Pipe, path: str, text: str) -> None:
    """Writes a text of the same length, and lets time, size and inode be what they were."""
    target = pipe.root / path
    before = target.stat()
    target.write_text(text)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = target.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
        before.st_mtime_ns,
        before.st_size,
        before.st_ino,
    )


async def test_a_change_behind_an_equal_stamp_is_found_by_the_next_rereading(pipe: Pipe):
    """FAULTS 39: ``touch -r`` while nobody watched."""
    period_s = 5 * RECONCILE_S
    memory = pipe.settings.memory.model_copy(update={"reread_interval": period_s})
    pipe.settings = pipe.settings.model_copy(update={"memory": memory})
    await pipe.restart_chunker()
    for name in ("a.md", "b.md", "c.md"):
        pipe.write(name, "# A\n\nOld.\n")
    await pipe.settle()
    await pipe.touched("a.md", "b.md", "c.md")
    _change_secretly(pipe, "b.md", "# A\n\nNew.\n")

    assert [each.path for each in pipe.differences()] == ["b.md"]
    num_revisions = (await pipe.keeper.status.remote()).revision
    await pipe.clock.advance(2 * period_s)  # by then each was read once, wherever it began
    await pipe.until(lambda: _finds(pipe, "new", "New."))

    assert pipe.differences() == []
    assert (await pipe.keeper.status.remote()).revision == num_revisions + 1


async def test_a_hint_shows_a_change_behind_an_equal_stamp_at_once(pipe: Pipe):
    """FAULTS 39: ``cp -p`` raises events like any other write."""
    pipe.write("a.md", "# A\n\nOld.\n")
    await pipe.settle()
    _change_secretly(pipe, "a.md", "# A\n\nNew.\n")

    await pipe.touched("a.md")

    assert pipe.differences() == []


async def test_a_second_change_within_one_coarse_second_is_found_by_the_next_comparison(
    pipe: Pipe,
):
    """FAULTS 39: the file was indexed between the two, and FAT counts whole seconds."""
    pipe.write("a.md", "# A\n\nOld.\n")
    now_s = int(pipe.clock.time())
    os.utime(pipe.root / "a.md", (now_s, now_s))
    await pipe.touched("a.md")
    _change_secretly(pipe, "a.md", "# A\n\nNew.\n")

    await pipe.reconciled()

    assert pipe.differences() == []


async def test_an_idle_memory_reads_no_file(pipe: Pipe):
    """FAULTS 30: five minutes of comparisons look at names and stamps alone."""
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.settle()
    before = (await pipe.chunker.status.remote()).num_reconciles
    reads: list[str] = []
    pipe.chunker.shell._workspace.read = reads.append

    for _minute in range(5):
        await pipe.reconciled()

    assert (await pipe.chunker.status.remote()).num_reconciles == before + 5
    assert reads == []


async def test_a_restarted_keeper_is_filled_again(pipe: Pipe):
    """SPEC D4: what it cannot load is indexed again, without waiting."""
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.settle()
    (pipe.data / "memory.msp").unlink()
    pipe.restart_keeper()
    assert await pipe.paths() == []

    await pipe.until(lambda: _holds(pipe, ["a.md"]))


async def test_a_restarted_keeper_has_every_change_that_was_answered(pipe: Pipe):
    """SPEC P2: no embedding is paid for twice."""
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.settle()
    num_embedded = len(pipe.worker.model.texts)
    pipe.restart_keeper()
    assert await pipe.paths() == ["a.md"]

    await pipe.chunker.notice.remote((), True)
    await pipe.reconciled()

    assert len(pipe.worker.model.texts) == num_embedded


async def test_a_dead_keeper_is_waited_for(pipe: Pipe):
    """FAULTS 66: calls fail while it restarts, and nothing is lost."""
    await pipe.settle()
    pipe.keeper.dead = True
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.chunker.notice.remote((), True)
    await pipe.clock.advance(10)
    pipe.keeper.dead = False

    await pipe.until(lambda: _holds(pipe, ["a.md"]))


async def test_the_index_is_written_after_a_pause_and_read_without_embedding(pipe: Pipe):
    """SPEC P3."""
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.settle()

    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.until(lambda: _is_saved(pipe))

    found = open_or_create(
        pipe.settings.memory,
        INFO,
        data=pipe.data,
        workspace=pipe.root,
        epoch="next",
        now=0.0,
    )
    assert [file.path for file in found.index.files()] == ["a.md"]
    assert (found.report.needs_probe, found.report.reason) == (False, "")


async def test_without_a_query_embedding_text_alone_answers_and_says_so(pipe: Pipe):
    """SPEC S8, A1."""
    pipe.write("a.md", "# Zebra\n\nStripes.\n")
    await pipe.settle()
    pipe.worker.error = ProviderUnavailable("local", "down")

    result = await pipe.provider.search.remote("zebra", 5)

    assert result.degraded == "no query embedding: local: down"
    assert [hit.path for hit in result.hits] == ["a.md"]


async def test_a_long_prompt_is_embedded_and_answered_part_by_part(pipe: Pipe):
    """SPEC A1."""
    pipe.write("a.md", "# Zebra\n\nStripes keep flies away.\n")
    await pipe.settle()
    chatter = "Fold each napkin of the banquet into a swan before any guest has come in at all. "
    question = "Do stripes keep flies away?"
    pipe.worker.model.queries.clear()

    result = await pipe.provider.search.remote(f"{chatter * 3}{question}", 5)

    assert {chatter.strip(), question} <= set(pipe.worker.model.queries)
    assert [(hit.path, hit.part) for hit in result.hits] == [("a.md", question)]
    assert result.degraded == ""
    assert result.hits[0].vector_score != 0


async def test_a_blank_prompt_and_an_empty_index_get_no_section(pipe: Pipe):
    """SPEC A1."""
    assert (await pipe.provider.section.remote("  \n")).text == ""
    assert (await pipe.provider.section.remote("anything")).text == ""


async def test_a_fact_is_queued_once_and_survives_a_restart(pipe: Pipe):
    """SPEC A4, A5."""
    pipe.write("wiki/alice.md", "# Alice\n\nAlice lives in Atlanta.\n")
    await pipe.settle()

    first = await pipe.emitter.emit.remote("Alice moved to Atlanta", ("chat-1",))
    second = await pipe.emitter.emit.remote("Alice moved to Atlanta", ())
    pipe.emitter.shell = type(pipe.emitter.shell)(pipe.data, pipe.provider, pipe.clock)
    event = await pipe.emitter.take.remote(300.0, "")
    acknowledged = await pipe.emitter.acknowledge.remote(first.event_id)
    third = await pipe.emitter.emit.remote("Alice moved to Atlanta", ())

    assert (first.state, second.state, third.state) == (
        "queued",
        "already queued",
        "already saved",
    )
    assert (event.related, event.is_related_known) == (("wiki/alice.md",), True)
    assert event.skill == "skills:memory"
    assert acknowledged
    assert await pipe.emitter.pending.remote(0.0) == ()


async def test_saving_waits_for_no_search_and_the_taker_learns_that_there_was_none(
    pipe: Pipe, monkeypatch
):
    """FAULTS 90: the caller waits for the disk alone."""
    monkeypatch.setattr("actors.event_emitter.RELATED_DEADLINE_S", 0.05)
    pipe.provider.dead = True

    receipt = await pipe.emitter.emit.remote("Alice moved to Atlanta", ())
    assert receipt.state == "queued"
    assert pipe.provider.calls == []
    taken = await pipe.emitter.take.remote(300.0, "")

    assert taken.event_id == receipt.event_id
    assert (taken.related, taken.is_related_known) == ((), False)


async def test_a_fact_is_related_to_what_was_filed_while_it_waited(pipe: Pipe):
    await pipe.settle()
    await pipe.emitter.emit.remote("Alice moved to Atlanta", ())
    pipe.write("wiki/alice.md", "# Alice\n\nAlice lives in Atlanta.\n")
    await pipe.touched("wiki/alice.md")

    taken = await pipe.emitter.take.remote(300.0, "")

    assert taken.related == ("wiki/alice.md",)


@pytest.mark.parametrize("prompt", ["", " \n", "x" * 100_001])
async def test_a_blank_or_giant_fact_is_refused(pipe: Pipe, prompt: str):
    """FAULTS 90."""
    with pytest.raises(ValueError, match="characters"):
        await pipe.emitter.emit.remote(prompt, ())


def _query(text: str):
    return Query(text, 5), None


async def _is_missing(pipe: Pipe) -> bool:
    return (await pipe.chunker.status.remote()).workspace_missing


async def _holds(pipe: Pipe, paths: list[str]) -> bool:
    return not pipe.keeper.dead and await pipe.paths() == paths


async def _finds(pipe: Pipe, text: str, snippet: str) -> bool:
    hits = (await pipe.keeper.search.remote(*_query(text))).hits
    return [hit.snippet for hit in hits] == [snippet]


async def _is_saved(pipe: Pipe) -> bool:
    return (await pipe.persister.status.remote()).num_flushes > 0


async def _are_pending(pipe: Pipe, number: int) -> bool:
    return (await pipe.chunker.status.remote()).num_pending == number


async def _are_claimed(pipe: Pipe) -> bool:
    return pipe.keeper.calls.count("plan") == 4


async def test_twelve_near_copies_take_one_row_of_the_table_and_all_are_found(pipe: Pipe):
    """SPEC A1, S7."""
    zebras, body = "zebra crossing " * 10, " ".join(f"pump{number}" for number in range(60))
    for number in range(12):
        pipe.write(f"wiki/backup ({number}).md", f"{zebras}. {body} {number}\n")
    for number in range(8):
        pipe.write(f"wiki/other-{number}.md", f"# Other\n\nzebra crossing {number}\n")
    # What every file says tells nothing.
    for number in range(100):
        pipe.write(f"wiki/else-{number}.md", f"granite{number}\n")
    await pipe.settle()

    section = await pipe.provider.section.remote("zebra crossing")
    found = await pipe.provider.search.remote("zebra crossing", 20)

    paths = [row.path for row in section.rows]
    assert len(paths) > 1
    assert sum("backup" in path for path in paths) == 1
    assert len({hit.path for hit in found.hits}) == 20
