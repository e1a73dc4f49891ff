"""How a memory stops: whatever fails on the way, what was embedded is saved, or it is said."""

from __future__ import annotations

import asyncio
import errno
import logging
from dataclasses import dataclass
from typing import Any

import pytest

from actors import system
from actors.system import MemorySystem
from memory.errors import StoreError, WorkspaceMissing
from tests.inline.handles import InlineHandle


@dataclass
class Neighbour:
    """An actor that stops or flushes, fails with an error, or never answers."""

    error: Exception | None = None
    hangs: bool = False
    num_calls: int = 0

    async def stop(self) -> None:
        self.num_calls += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    flush = stop


def joined(*, watcher: Neighbour, chunker: Neighbour, persister: Neighbour) -> MemorySystem:
    others: dict[str, Any] = dict.fromkeys(("pool", "keeper", "provider", "emitter"))
    return MemorySystem(
        watcher=InlineHandle(watcher),  # type: ignore[arg-type]
        chunker=InlineHandle(chunker),  # type: ignore[arg-type]
        persister=InlineHandle(persister),  # type: ignore[arg-type]
        workers=(),
        arguments=(),
        **others,
    )


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("a fault"), OSError(errno.EIO, "bad disk"), WorkspaceMissing("w", "gone")],
)
async def test_actors_that_fail_to_stop_are_logged_and_the_index_is_saved(error, caplog):
    watcher, chunker, persister = Neighbour(error), Neighbour(error), Neighbour()

    await joined(watcher=watcher, chunker=chunker, persister=persister).stop()

    assert persister.num_calls == 1
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in warned] == [
        "the watcher did not stop cleanly",
        "the chunker did not stop cleanly",
    ]
    assert str(error) in caplog.text


async def test_actors_that_hang_are_left_and_the_index_is_saved(monkeypatch, caplog):
    monkeypatch.setattr(system, "STOP_DEADLINE_S", 0.02)
    persister = Neighbour()

    await joined(
        watcher=Neighbour(hangs=True), chunker=Neighbour(hangs=True), persister=persister
    ).stop()

    assert persister.num_calls == 1
    assert "the chunker did not stop in time" in caplog.text


@pytest.mark.parametrize(
    ("error", "reason", "remedy"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left", "make room"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file", "writable"),
        (StoreError("the parts do not fit"), "the parts do not fit", "next start"),
        (ZeroDivisionError("a detail for the log"), "internal error", "see ray.log"),
    ],
)
async def test_an_index_that_cannot_be_saved_is_one_line_with_a_remedy(
    error, reason, remedy, caplog
):
    with pytest.raises(StoreError) as caught:
        await joined(watcher=Neighbour(), chunker=Neighbour(), persister=Neighbour(error)).stop()

    said = str(caught.value)
    assert said.startswith(f"the index was not saved: {reason}")
    assert remedy in said
    assert "\n" not in said
    assert ("a detail for the log" in caplog.text) == isinstance(error, ZeroDivisionError)


async def test_a_save_that_takes_too_long_is_said(monkeypatch):
    monkeypatch.setattr(system, "FLUSH_DEADLINE_S", 0.02)

    with pytest.raises(StoreError, match="the index was not saved: no answer within 0 s"):
        await joined(
            watcher=Neighbour(), chunker=Neighbour(), persister=Neighbour(hangs=True)
        ).stop()
