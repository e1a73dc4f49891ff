"""When the index is written, and what happens when the disk refuses."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from actors.persister import RETRY_S
from memory import storage as module
from memory.identity import EMBEDDING_JSON, read_embedding_json
from memory.reader import SnapshotReader
from memory.snapshot import SNAPSHOT_NAME, read_header
from tests.inline.conftest import FLUSH_S

if TYPE_CHECKING:
    from tests.inline.conftest import Pipe


async def saved(pipe: Pipe, count: int) -> bool:
    return (await pipe.persister.status.remote()).num_flushes >= count


async def written(pipe: Pipe, name: str) -> None:
    """Indexes one file and lets the quiet time pass, so that it is on disk."""
    before = (await pipe.persister.status.remote()).num_flushes
    pipe.write(name, f"# {name}\n\nText.\n")
    await pipe.touched(name)
    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.until(lambda: saved(pipe, before + 1))


async def test_constant_edits_delay_a_flush_only_so_long(pipe: Pipe):
    """FAULTS 17."""
    await pipe.settle()
    for number in range(12 * 3):
        pipe.write("a.md", f"# A\n\nText {number}.\n")
        await pipe.touched("a.md")
        await pipe.clock.advance(FLUSH_S / 3)

    await pipe.until(lambda: saved(pipe, 1))


async def test_a_disk_that_refuses_keeps_the_old_file_and_is_tried_again(
    pipe: Pipe, monkeypatch, caplog
):
    """FAULTS 4, 5, 6: the reason is logged once, and nothing is lost meanwhile."""
    await written(pipe, "a.md")
    old = (pipe.data / SNAPSHOT_NAME).read_bytes()
    real, attempts = module.write, []

    def refuse(*_arguments, **_options):
        attempts.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write", refuse)
    pipe.write("b.md", "".join(f"# H{number}\n\nText {number}.\n\n" for number in range(50)))
    before = (await pipe.persister.status.remote()).num_flushes
    with caplog.at_level(logging.WARNING):
        await pipe.touched("b.md")
        await pipe.clock.advance(FLUSH_S + 1)
        for number in range(1, 4):
            await pipe.until(lambda number=number: _reached(attempts, number))
            await pipe.clock.advance(FLUSH_S + RETRY_S + 1)

    status = await pipe.persister.status.remote()
    assert status.dirty
    assert status.last_error == "cannot write memory.msp: No space left on device"
    assert (pipe.data / SNAPSHOT_NAME).read_bytes() == old
    assert sum("No space left" in record.getMessage() for record in caplog.records) == 1
    with SnapshotReader(pipe.data) as reader:
        assert [file.path for file in reader.files()] == ["a.md", "b.md"]

    monkeypatch.setattr(module, "write", real)
    await pipe.clock.advance(FLUSH_S + RETRY_S + 1)
    await pipe.until(lambda: saved(pipe, before + 1))
    assert read_header(pipe.data / SNAPSHOT_NAME).info.num_files == 2
    assert (await pipe.persister.status.remote()).last_error == ""


async def test_a_journal_that_cannot_be_written_is_replaced_by_a_snapshot(pipe: Pipe, monkeypatch):
    await written(pipe, "a.md")

    def refuse(*_arguments):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(module.JournalWriter, "append", refuse)
    pipe.write("b.md", "# B\n\nText.\n")
    started = pipe.clock.monotonic()
    await pipe.touched("b.md")

    async def both_saved() -> bool:
        return read_header(pipe.data / SNAPSHOT_NAME).info.num_files == 2

    await pipe.until(both_saved)
    assert pipe.clock.monotonic() - started < FLUSH_S / 2  # at once


async def test_a_change_that_is_nowhere_on_disk_is_told(pipe: Pipe, monkeypatch):
    """Until a save succeeds; later changes are in the journal again."""
    await written(pipe, "a.md")
    real_append, real_write = module.JournalWriter.append, module.write

    def refuse(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.JournalWriter, "append", refuse)
    monkeypatch.setattr(module, "write", refuse)
    pipe.write("b.md", "# B\n\nText.\n")
    await pipe.touched("b.md")
    assert "No space left on device" in (await pipe.persister.status.remote()).last_error
    monkeypatch.setattr(module.JournalWriter, "append", real_append)
    await pipe.until(lambda: complains_of(pipe, SNAPSHOT_NAME))

    before = (await pipe.persister.status.remote()).num_flushes
    monkeypatch.setattr(module, "write", real_write)
    await pipe.clock.advance(FLUSH_S + RETRY_S + 1)
    await pipe.until(lambda: saved(pipe, before + 1))
    assert (await pipe.persister.status.remote()).last_error == ""
    pipe.write("c.md", "# C\n\nText.\n")
    await pipe.touched("c.md")

    pipe.restart_keeper()
    assert await pipe.paths() == ["a.md", "b.md", "c.md"]


async def complains_of(pipe: Pipe, name: str) -> bool:
    return f"cannot write {name}:" in (await pipe.persister.status.remote()).last_error


async def test_a_mirror_that_cannot_be_written_is_told_and_the_index_is_saved(pipe: Pipe):
    """A folder has its name; once it is gone, the next flush writes the file."""
    await pipe.settle()
    await pipe.persister.flush.remote()
    (pipe.data / EMBEDDING_JSON).unlink()
    (pipe.data / EMBEDDING_JSON).mkdir()
    pipe.write("a.md", "# A\n\nText.\n")
    await pipe.touched("a.md")

    await pipe.persister.flush.remote()

    assert await complains_of(pipe, EMBEDDING_JSON)
    with SnapshotReader(pipe.data) as reader:
        assert [file.path for file in reader.files()] == ["a.md"]
    (pipe.data / EMBEDDING_JSON).rmdir()
    await pipe.persister.flush.remote()
    assert (await pipe.persister.status.remote()).last_error == ""
    assert read_embedding_json(pipe.data) is not None


async def test_an_index_that_did_not_change_is_not_written_again(pipe: Pipe):
    await written(pipe, "a.md")
    before = (pipe.data / SNAPSHOT_NAME).stat().st_mtime_ns
    num_flushes = (await pipe.persister.status.remote()).num_flushes

    await pipe.persister.mark_dirty.remote()
    await pipe.persister.flush.remote()

    assert (pipe.data / SNAPSHOT_NAME).stat().st_mtime_ns == before
    assert (await pipe.persister.status.remote()).num_flushes == num_flushes


async def test_a_small_change_of_a_large_index_does_not_write_it_anew(pipe: Pipe):
    """SPEC P3: it stands in the journal."""
    await written(pipe, "a.md")
    pipe.write("large.md", "".join(f"# H{number}\n\nText {number}.\n\n" for number in range(50)))
    await pipe.touched("large.md")
    await pipe.clock.advance(FLUSH_S + 1)
    before = (await pipe.persister.status.remote()).num_flushes

    pipe.write("a.md", "# A\n\nOther text.\n")
    await pipe.touched("a.md")
    assert 56 < (await pipe.persister.status.remote()).journal_bytes < 5_000
    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.persister.flush.remote()

    assert (await pipe.persister.status.remote()).num_flushes == before
    with SnapshotReader(pipe.data) as reader:
        assert reader.chunks("a.md")[1][0].content == "Other text."


async def test_a_removed_mirror_is_written_again(pipe: Pipe):
    """Otherwise every start would make a trial call."""
    await written(pipe, "a.md")
    (pipe.data / EMBEDDING_JSON).unlink()

    await pipe.persister.flush.remote()

    assert read_embedding_json(pipe.data) is not None


async def test_an_empty_index_is_saved_at_once(pipe: Pipe):
    """A journal continues a snapshot, so that the first embedding already outlives a kill."""
    await pipe.until(lambda: saved(pipe, 1))

    assert read_header(pipe.data / SNAPSHOT_NAME).info.num_files == 0


async def test_a_fresh_keeper_sweeps_what_a_killed_one_left(pipe: Pipe):
    """FAULTS 7."""
    await written(pipe, "a.md")
    stray = pipe.data / f".{SNAPSHOT_NAME}.0badf00d.tmp"
    stray.write_bytes(b"half")

    pipe.restart_keeper()

    assert not stray.exists()
    assert await pipe.paths() == ["a.md"]


async def test_a_keeper_that_found_nothing_is_written_anew(pipe: Pipe):
    await written(pipe, "a.md")
    (pipe.data / SNAPSHOT_NAME).unlink()
    (pipe.root / "a.md").unlink()
    pipe.write("b.md", "# B\n\nOther.\n")
    pipe.restart_keeper()

    await pipe.chunker.notice.remote((), True)
    await pipe.reconciled()
    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.until(lambda: _is_on_disk(pipe))

    assert await pipe.paths() == ["b.md"]


async def _is_on_disk(pipe: Pipe) -> bool:
    return (pipe.data / SNAPSHOT_NAME).exists()


async def _reached(attempts: list[int], number: int) -> bool:
    return len(attempts) >= number
