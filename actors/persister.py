"""The Persister actor: has the index written to disk when it has been quiet for a while."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, NoReturn, TypeVar, final

import ray

from actors.loops import call, run_forever, spawn
from actors.statuses import PersisterStatus
from memory.clock import SystemClock
from memory.identity import EMBEDDING_JSON, needs_writing, write_embedding_json
from memory.journal import JOURNAL_NAME
from memory.snapshot import SNAPSHOT_NAME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.debounce import Debounce
    from memory.storage import StorageStatus

logger = logging.getLogger(__name__)

T = TypeVar("T")

KEEPER_DEADLINE_S = 120.0
RETRY_S = 10.0
"""Pause after the disk refused."""


@final
class Persister:
    """Decides when changes are synced and when the snapshot is written; the keeper does both.

    Owns: the debounce state, and ``embedding.json``.
    Survives a crash: nothing; a fresh Persister asks the keeper what is on disk.
    Ordering: saves never overlap, nor do syncs; ``mark_dirty`` may come in any order.
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
        self._saving, self._syncing = asyncio.Lock(), asyncio.Lock()
        self._num_marks = self._num_synced = 0
        self._storage: StorageStatus | None = None
        self._num_flushes = 0
        self._last_error, self._num_complaints = "", 0
        self._is_urgent = False
        """Whether a save must not wait for a quiet moment."""
        self._task = spawn("Persister", self._run())

    def __repr__(self) -> str:
        return "Persister"

    @ray.method
    async def mark_dirty(self) -> None:
        """Returns once every change so far survives a power loss; a save follows when it is due."""
        self._note()
        await self._sync()

    @ray.method
    async def flush(self) -> None:
        """Makes sure that the disk holds the whole index now, by the journal or by a snapshot.

        Raises:
            OSError: neither could be written; the index stays dirty and the old snapshot in place.
        """
        await self._flush()

    @ray.method
    async def status(self) -> PersisterStatus:
        """Returns the state of the snapshot on disk."""
        storage = self._storage
        return PersisterStatus(
            pid=os.getpid(),
            dirty=self._debounce.due_in(self._clock.monotonic()) is not None
            or self._saving.locked(),
            saved_at=storage.saved_at if storage is not None else 0.0,
            generation=storage.saved_revision if storage is not None else -1,
            journal_bytes=storage.journal_bytes if storage is not None else 0,
            num_flushes=self._num_flushes,
            last_error=self._last_error,
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _run(self) -> NoReturn:
        # At once: without a snapshot there is nothing that a journal could continue.
        await self._flush_or_retry_later()
        await self._ask(self._keeper.warm_up.remote)
        await run_forever(self._step, clock=self._clock)

    def _note(self) -> None:
        self._num_marks += 1
        self._debounce.touch(self._clock.monotonic())
        self._changed.set()

    async def _step(self) -> None:
        self._changed.clear()
        due_s = 0.0 if self._is_urgent else self._debounce.due_in(self._clock.monotonic())
        if due_s is None:
            await self._changed.wait()
        elif due_s > 0:
            await self._clock.wait(self._changed, due_s)
        else:
            await self._flush_or_retry_later()

    async def _sync(self) -> None:
        """Syncs the changes noted so far; those who wait for one sync share the next."""
        wanted = self._num_marks
        async with self._syncing:
            if self._num_synced >= wanted:
                return
            covered = self._num_marks
            try:
                self._storage = await self._ask(self._keeper.sync.remote)
                trouble = self._storage.trouble
            except OSError as error:
                trouble = f"cannot sync {JOURNAL_NAME}: {error.strerror or error}"
            if trouble:
                # The snapshot that is due is tried until the disk takes it; at once if this is new.
                self._is_urgent = trouble != self._last_error
                self._complain(trouble)
                self._changed.set()
            self._num_synced = covered

    async def _flush_or_retry_later(self) -> None:
        try:
            await self._flush()
        except OSError as error:
            self._complain(f"cannot write {SNAPSHOT_NAME}: {error.strerror or error}")
            self._debounce.touch(self._clock.monotonic())
            await self._clock.sleep(RETRY_S)

    def _complain(self, reason: str) -> None:
        self._num_complaints += 1
        if reason != self._last_error:
            logger.warning("%s; the index stays in memory and is tried again", reason)
        self._last_error = reason

    async def _flush(self) -> None:
        async with self._saving:
            # Before the disk is asked about: what changes meanwhile counts anew.
            self._debounce.clear()
            complaints = self._num_complaints
            await self._sync()
            self._is_urgent = False
            self._storage = await self._ask(self._keeper.storage.remote)
            if self._storage.needs_save:
                self._storage = await self._saved(self._storage)
            await self._mirror(self._storage)
            if self._num_complaints == complaints:
                self._last_error = ""

    async def _saved(self, before: StorageStatus) -> StorageStatus:
        try:
            revision = await self._ask(self._keeper.save.remote)
        except OSError as error:
            if not before.is_complete:
                raise
            # Nothing is lost while the journal takes the changes.
            self._complain(f"cannot write {SNAPSHOT_NAME}: {error.strerror or error}")
            self._debounce.touch(self._clock.monotonic())
            return before
        self._num_flushes += 1
        self._last_error = ""
        logger.info("saved revision %d", revision)
        return await self._ask(self._keeper.storage.remote)

    async def _mirror(self, storage: StorageStatus) -> None:
        """Writes ``embedding.json``, which people may have removed, beside its snapshot."""
        try:
            if await asyncio.to_thread(needs_writing, self._data, storage.identity):
                await asyncio.to_thread(write_embedding_json, self._data, storage.identity)
        except OSError as error:
            # Without it the next start asks the model for the dimension.
            self._complain(f"cannot write {EMBEDDING_JSON}: {error.strerror or error}")
            self._debounce.touch(self._clock.monotonic())

    async def _ask(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await call(attempt, clock=self._clock, deadline_s=KEEPER_DEADLINE_S)
