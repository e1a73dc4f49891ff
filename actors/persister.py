"""The Persister actor: writes the index to disk when it has been quiet for a while."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, NoReturn, final

import ray

from actors.loops import call, run_forever, spawn
from actors.statuses import PersisterStatus
from memory.clock import SystemClock
from memory.errors import StoreError
from memory.identity import write_embedding_json
from memory.snapshot import SNAPSHOT_NAME, read_header, sweep_temporaries, write

if TYPE_CHECKING:
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.debounce import Debounce
    from memory.snapshot import SnapshotParts

logger = logging.getLogger(__name__)

SNAPSHOT_DEADLINE_S = 120.0
RETRY_S = 10.0
"""Pause after the disk refused."""


@final
class Persister:
    """Pulls a snapshot from the keeper and replaces ``memory.msp`` atomically.

    Owns: the debounce state and the data folder's snapshot.
    Survives a crash: the last snapshot on disk; a fresh Persister compares it with the keeper and
    flushes what is newer.
    Ordering: flushes never overlap; ``mark_dirty`` may come in any order.
    Called by: Chunker, the composition root. Calls: IndexKeeper.
    """

    def __init__(
        self,
        data: Path,
        keeper: ActorProxy[IndexKeeper],
        debounce: Debounce,
        clock: Clock | None = None,
    ) -> None:
        self._data = data
        self._keeper = keeper
        self._debounce = debounce
        self._clock = clock or SystemClock()
        self._changed = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._saved_at, self._generation = 0.0, -1
        self._saved = ("", -1)
        self._num_flushes = 0
        self._last_error = ""
        self._task = spawn("Persister", self._run())

    def __repr__(self) -> str:
        return "Persister"

    @ray.method
    async def mark_dirty(self) -> None:
        """Notes that the index may have changed; a flush follows after the quiet time."""
        self._note()

    @ray.method
    async def flush(self) -> None:
        """Writes the index now if the disk does not hold it yet.

        Raises:
            OSError: the disk refused; the index stays dirty and the old snapshot stays in place.
        """
        await self._flush()

    @ray.method
    async def status(self) -> PersisterStatus:
        """Returns the state of the snapshot on disk."""
        return PersisterStatus(
            pid=os.getpid(),
            dirty=self._debounce.due_in(self._clock.monotonic()) is not None
            or self._flushing.locked(),
            saved_at=self._saved_at,
            generation=self._generation,
            num_flushes=self._num_flushes,
            last_error=self._last_error,
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _run(self) -> NoReturn:
        await asyncio.to_thread(sweep_temporaries, self._data)
        self._saved_at, self._generation = await asyncio.to_thread(_saved, self._data)
        status = await call(
            self._keeper.status.remote, clock=self._clock, deadline_s=SNAPSHOT_DEADLINE_S
        )
        if status.revision == self._generation:
            self._saved = (status.epoch, status.revision)
        self._note()
        await run_forever(self._step, clock=self._clock)

    def _note(self) -> None:
        self._debounce.touch(self._clock.monotonic())
        self._changed.set()

    async def _step(self) -> None:
        self._changed.clear()
        due_s = self._debounce.due_in(self._clock.monotonic())
        if due_s is None:
            await self._changed.wait()
        elif due_s > 0:
            await self._clock.wait(self._changed, due_s)
        else:
            await self._flush_or_retry_later()

    async def _flush_or_retry_later(self) -> None:
        try:
            await self._flush()
        except OSError as error:
            reason = f"cannot write {SNAPSHOT_NAME}: {error.strerror or error}"
            if reason != self._last_error:
                logger.warning("%s; the index stays in memory and is tried again", reason)
            self._last_error = reason
            await self._clock.sleep(RETRY_S)

    async def _flush(self) -> None:
        async with self._flushing:
            status = await call(
                self._keeper.status.remote, clock=self._clock, deadline_s=SNAPSHOT_DEADLINE_S
            )
            self._debounce.clear()  # before the snapshot: what changes meanwhile counts anew
            if (status.epoch, status.revision) == self._saved:
                return
            try:
                await self._write(status.epoch)
            except BaseException:
                self._debounce.touch(self._clock.monotonic())
                raise

    async def _write(self, epoch: str) -> None:
        parts = await call(
            self._keeper.snapshot.remote, clock=self._clock, deadline_s=SNAPSHOT_DEADLINE_S
        )
        saved_at = self._clock.time()
        await asyncio.to_thread(_save, self._data, parts, saved_at)
        self._saved_at, self._generation = saved_at, parts.info.revision
        self._saved = (epoch, parts.info.revision)
        self._num_flushes += 1
        self._last_error = ""
        logger.info("saved revision %d", parts.info.revision)


def _saved(data: Path) -> tuple[float, int]:
    """Returns time and revision of the snapshot on disk; (0, -1) if there is none to read."""
    try:
        header = read_header(data / SNAPSHOT_NAME)
    except StoreError:
        return 0.0, -1
    return header.saved_at, header.info.revision


def _save(data: Path, parts: SnapshotParts, saved_at: float) -> None:
    write(data / SNAPSHOT_NAME, parts, saved_at=saved_at)
    write_embedding_json(data, parts.info.identity)
