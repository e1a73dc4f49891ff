"""When the index is written, and what happens when the disk refuses."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from actors import persister as module
from actors.persister import RETRY_S, Persister
from memory.debounce import Debounce
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
    """FAULTS 4, 5, 6: the reason is logged once."""
    await written(pipe, "a.md")
    old = (pipe.data / SNAPSHOT_NAME).read_bytes()
    real, attempts = module.write, []

    def refuse(*_arguments, **_options):
        attempts.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write", refuse)
    pipe.write("b.md", "# B\n\nText.\n")
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

    monkeypatch.setattr(module, "write", real)
    await pipe.clock.advance(FLUSH_S + RETRY_S + 1)
    await pipe.until(lambda: saved(pipe, 2))
    assert read_header(pipe.data / SNAPSHOT_NAME).info.num_files == 2
    assert (await pipe.persister.status.remote()).last_error == ""


async def test_an_index_that_did_not_change_is_not_written_again(pipe: Pipe):
    await written(pipe, "a.md")
    before = (pipe.data / SNAPSHOT_NAME).stat().st_mtime_ns

    await pipe.persister.mark_dirty.remote()
    await pipe.persister.flush.remote()

    assert (pipe.data / SNAPSHOT_NAME).stat().st_mtime_ns == before
    assert (await pipe.persister.status.remote()).num_flushes == 1


async def test_a_fresh_persister_sweeps_and_writes_what_is_newer(pipe: Pipe):
    """FAULTS 7."""
    await written(pipe, "a.md")
    stray = pipe.data / f".{SNAPSHOT_NAME}.0badf00d.tmp"
    stray.write_bytes(b"half")
    pipe.write("b.md", "# B\n\nText.\n")
    await pipe.touched("b.md")
    pipe.persister.shell._task.cancel()

    debounce = Debounce(FLUSH_S, 10 * FLUSH_S)
    pipe.persister.shell = Persister(pipe.data, pipe.keeper, debounce, pipe.clock)
    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.until(lambda: saved(pipe, 1))

    assert not stray.exists()
    assert read_header(pipe.data / SNAPSHOT_NAME).info.num_files == 2


async def test_a_restarted_keeper_with_an_equal_revision_is_written(pipe: Pipe):
    """The number of a revision alone does not say which incarnation counted it."""
    await written(pipe, "a.md")
    (pipe.data / SNAPSHOT_NAME).unlink()
    (pipe.root / "a.md").unlink()
    pipe.write("b.md", "# B\n\nOther.\n")
    pipe.restart_keeper()

    await pipe.chunker.notice.remote((), True)
    await pipe.reconciled()
    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.until(lambda: saved(pipe, 2))

    assert (await pipe.keeper.status.remote()).revision == 1
    assert await pipe.paths() == ["b.md"]


async def _reached(attempts: list[int], number: int) -> bool:
    return len(attempts) >= number
