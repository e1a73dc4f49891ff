"""The Chunker actor: decides which files must be indexed again, and does it."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, final

import ray

from actors.activity import ActivityLog
from actors.applying import Applier
from actors.building import ray_tasks
from actors.comparing import Comparison
from actors.failing import Failing
from actors.indexing import FileIndexer
from actors.loops import call, run_forever, spawn
from actors.ray_config import BuilderOptions
from actors.remarks import Remarks
from actors.statuses import ChunkerStatus
from actors.succeeding import TakeOver
from memory.chunk_limits import chunk_limits
from memory.clock import SystemClock
from memory.errors import WorkspaceMissing
from memory.globs import Globs
from memory.path_queue import Lane, PathQueue
from memory.paths import key
from memory.reconcile import by_urgency
from memory.rereading import Rereading
from memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.building import Build
    from actors.embedder_pool import EmbedderPool
    from actors.index_keeper import IndexKeeper
    from actors.indexing import Indexed, Refused
    from actors.persister import Persister
    from actors.statuses import FileIndexed
    from memory.clock import Clock
    from memory.config import MemorySettings
    from memory.messages import FileEvent
    from memory.path_queue import Work
    from memory.providers.base import ModelInfo

T = TypeVar("T")

MAX_FILES_IN_FLIGHT = 8
"""Files that are read, planned or embedded: a live edit waits for no more."""
MAX_FILES_AT_ONCE = 256
"""Those, and the ones that only wait for the keeper."""
EPOCH_POLL_S = 1.0
CALL_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class ChunkerOptions:
    """What a Chunker works on, and how."""

    root: Path
    settings: MemorySettings
    info: ModelInfo
    builder: BuilderOptions = field(default_factory=BuilderOptions)


@final
class Chunker:
    """Keeps the index equal to the disk.

    Owns: the queue of paths and its failures.
    Survives a crash: nothing; a fresh Chunker compares disk and index first.
    Ordering: one worker per path, up to MAX_FILES_AT_ONCE paths side by side. Hints may come in
    any order, twice or never, because every reconcile compares the whole disk with the whole index:
    at the start, at intervals, when the Watcher asks, and when the keeper has restarted.
    Called by: Watcher, the composition root. Calls: IndexKeeper, EmbedderPool, Persister.
    """

    def __init__(
        self,
        options: ChunkerOptions,
        keeper: ActorProxy[IndexKeeper],
        pool: ActorProxy[EmbedderPool],
        persister: ActorProxy[Persister],
        clock: Clock | None = None,
        build: Build | None = None,
    ) -> None:
        settings = options.settings
        self._workspace = Workspace(
            options.root,
            exclude=Globs(settings.exclude_globs),
            max_file_bytes=settings.max_file_bytes,
        )
        self._interval_s = settings.reconcile_interval
        self._keeper = keeper
        self._persister = persister
        self._clock = clock or SystemClock()
        self._applier = Applier(
            keeper,
            build or ray_tasks(settings.language, options.builder),
            options.builder.num_tasks(),
            self._clock,
        )
        self._indexer = FileIndexer(
            self._workspace,
            chunk_limits(settings.max_chunk_tokens, options.info),
            keeper,
            pool,
            self._applier,
            self._clock,
        )
        chance = random.Random()  # noqa: S311 - jitter, not a secret
        rereading = Rereading(settings.reread_interval, chance)
        self._comparison = Comparison(self._workspace, keeper, rereading, self._clock)
        self._take_over = TakeOver(keeper, persister, self._clock)
        self._queue = PathQueue(chance)
        self._failing = Failing(self._queue, self._clock)
        self._work_arrived = asyncio.Event()
        self._rescan_wanted = asyncio.Event()
        self._slots = asyncio.Semaphore(MAX_FILES_IN_FLIGHT)
        self._keeper_epoch = self._compared_epoch = ""
        self._next_reconcile = 0.0
        self._num_initial = 0
        self._ready = False
        self._remarks = Remarks()
        self._activity = ActivityLog()
        self._tasks = (
            spawn("Chunker.reconcile", run_forever(self._reconcile_when_due, clock=self._clock)),
            *(
                spawn(f"Chunker.work-{n}", run_forever(self._work, clock=self._clock))
                for n in range(MAX_FILES_AT_ONCE)
            ),
        )

    def __repr__(self) -> str:
        return "Chunker"

    @ray.method
    async def notice(self, events: tuple[FileEvent, ...], rescan: bool) -> None:  # noqa: FBT001
        """Takes hints that paths may have changed; with ``rescan`` anything may have."""
        for event in events:
            self._queue.put(key(event.raw_path), event.raw_path, lane=Lane.LIVE)
        if events:
            self._work_arrived.set()
        if rescan:
            self._rescan_wanted.set()

    @ray.method
    async def stop(self) -> None:
        """Ends the background work; files in flight are found again by the next start."""
        for task in self._tasks:
            task.cancel()
        self._applier.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @ray.method
    async def status(self) -> ChunkerStatus:
        """Returns the progress and the failures."""
        return ChunkerStatus(
            pid=os.getpid(),
            workspace_missing=self._comparison.is_missing,
            ready=self._ready,
            num_pending=self._queue.pending,
            num_held_up=self._queue.num_held_up,
            num_initial=self._num_initial,
            failed=self._queue.failures(now=self._clock.monotonic(), unix_now=self._clock.time()),
            skipped=self._remarks.all(),
            last_reconcile_at=self._comparison.last_at,
            num_reconciles=self._comparison.num_done,
        )

    @ray.method
    async def activity(self, after: int) -> tuple[FileIndexed, ...]:
        """Returns the newest entries of the activity log with a number above ``after``."""
        return self._activity.after(after)

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _reconcile_when_due(self) -> None:
        status = await call(
            self._keeper.status.remote,
            clock=self._clock,
            deadline_s=CALL_DEADLINE_S,
        )
        epoch = (status.building or status).epoch
        due = self._rescan_wanted.is_set() or self._clock.monotonic() >= self._next_reconcile
        if due or epoch != self._keeper_epoch:
            self._rescan_wanted.clear()
            self._next_reconcile = self._clock.monotonic() + self._interval_s
            self._keeper_epoch = epoch
            await self._reconcile()
        if status.building and epoch == self._compared_epoch and self._queue.drained:
            await self._take_over.step(epoch)
        await self._clock.wait(self._rescan_wanted, EPOCH_POLL_S)

    async def _reconcile(self) -> None:
        """Puts every path whose file and record differ into the queue (SPEC D6)."""
        epoch = self._keeper_epoch
        if (seen := await self._comparison.look()) is None:
            return
        is_first = not self._comparison.num_done
        if is_first:
            await self._recall_refused()
        self._remarks.scanned(seen.scan)
        missed, rest = by_urgency(seen.scan, seen.known, reread=seen.reread)
        for lane, events in ((Lane.SCAN, missed), (Lane.ANEW, rest)):
            for event in events:
                self._queue.put(key(event.raw_path), event.raw_path, lane=lane)
        if is_first:
            self._num_initial = self._queue.pending
        self._compared_epoch = epoch
        self._comparison.done()
        self._work_arrived.set()
        self._note_drained()

    async def _recall_refused(self) -> None:
        """Learns from the index which files have sections that the provider refuses."""
        files = await call(
            self._keeper.words_only.remote, clock=self._clock, deadline_s=CALL_DEADLINE_S
        )
        self._remarks.recall(map(self._indexer.recall, files))

    async def _work(self) -> None:
        async with self._slots:
            now = self._clock.monotonic()
            work = self._queue.take(now)
            if work is not None:
                step = self._indexer.prepare(
                    work.path, work.raw_path, is_root_gone=self._comparison.is_root_gone
                )
                prepared = await self._attempt(work, step)
                # Texts that were embedded show that the provider works.
                if prepared and prepared.claimed and self._queue.outage_is_over():
                    self._work_arrived.set()
        if work is None:
            self._work_arrived.clear()
            await self._clock.wait(self._work_arrived, self._queue.retry_in(now))
            return
        if prepared is not None:
            outcome = await self._attempt(work, self._indexer.apply(prepared))
            self._comparison.note_read(prepared.update)
            if outcome is not None:
                try:
                    await self._report(work.path, outcome)
                finally:
                    # Only now: who waits until nothing is pending wants it to be on disk.
                    self._queue.done(work.path)
        self._note_drained()

    async def _attempt(self, work: Work, step: Awaitable[T]) -> T | None:
        """Returns what a step gives; None if it failed, which is noted."""
        try:
            return await step
        except WorkspaceMissing:
            self._comparison.is_missing = True
            self._queue.done(work.path)
            self._rescan_wanted.set()  # a scan finds the change once the root is back
        except Exception as error:  # noqa: BLE001 - one odd file must not stop the others
            self._failing.failed(work, error)
            self._work_arrived.set()
        return None

    async def _report(self, path: str, outcome: Indexed | Refused) -> None:
        self._remarks.read(path, outcome.skipped)
        self._failing.worked()
        self._activity.add(path, outcome)
        await call(
            self._persister.mark_dirty.remote,
            clock=self._clock,
            deadline_s=CALL_DEADLINE_S,
        )

    def _note_drained(self) -> None:
        if self._comparison.num_done and self._queue.drained:
            self._ready = True
