"""The Chunker actor: decides which files must be indexed again, and does it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, final

import ray

from actors.applying import Applier
from actors.building import ray_tasks
from actors.indexing import FileIndexer, Indexed
from actors.loops import call, run_forever, spawn
from actors.ray_config import BuilderOptions
from actors.statuses import ChunkerStatus, FileIndexed
from actors.succeeding import TakeOver
from memory.absence import Absence
from memory.chunk_limits import chunk_limits
from memory.clock import SystemClock
from memory.errors import (
    EmbeddingError,
    ProviderAwaited,
    ProviderUnavailable,
    TextsUnanswered,
    WorkspaceMissing,
)
from memory.globs import Globs
from memory.messages import Scan
from memory.path_queue import Fault, Lane, PathQueue
from memory.paths import key
from memory.reconcile import changes
from memory.rereading import Rereading
from memory.workspace import FileUnsettled, Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.building import Build
    from actors.embedder_pool import EmbedderPool
    from actors.index_keeper import IndexKeeper
    from actors.indexing import Refused
    from actors.persister import Persister
    from memory.clock import Clock
    from memory.config import MemorySettings
    from memory.messages import FileEvent, FileUpdate, SkippedFile
    from memory.path_queue import Work
    from memory.providers.base import ModelInfo

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_FILES_IN_FLIGHT = 8
"""Files that are read, planned or embedded: a live edit waits for no more."""
MAX_FILES_AT_ONCE = 256
"""Those, and the ones that only wait for the keeper."""
EPOCH_POLL_S = 1.0
ACTIVITY_LINES = 1_000
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
        self._take_over = TakeOver(keeper, persister, self._clock)
        chance = random.Random()  # noqa: S311 - jitter, not a secret
        self._queue = PathQueue(chance)
        self._rereading = Rereading(settings.reread_interval, chance)
        self._work_arrived = asyncio.Event()
        self._rescan_wanted = asyncio.Event()
        self._slots = asyncio.Semaphore(MAX_FILES_IN_FLIGHT)
        self._keeper_epoch = self._compared_epoch = ""
        self._next_reconcile = 0.0
        self._last_reconcile_at, self._num_reconciles, self._num_initial = 0.0, 0, 0
        self._workspace_missing = self._root_gone = self._ready = False
        self._absence = Absence()
        self._refused: dict[str, SkippedFile] = {}
        self._skipped_by_scan: tuple[SkippedFile, ...] = ()
        self._activity: deque[FileIndexed] = deque(maxlen=ACTIVITY_LINES)
        self._num_activities = 0
        self._embed_failure = ""
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
        skipped = {file.path: file for file in (*self._skipped_by_scan, *self._refused.values())}
        return ChunkerStatus(
            pid=os.getpid(),
            workspace_missing=self._workspace_missing,
            ready=self._ready,
            num_pending=self._queue.pending,
            num_held_up=self._queue.num_held_up,
            num_initial=self._num_initial,
            failed=self._queue.failures(now=self._clock.monotonic(), unix_now=self._clock.time()),
            skipped=tuple(skipped[path] for path in sorted(skipped)),
            last_reconcile_at=self._last_reconcile_at,
            num_reconciles=self._num_reconciles,
        )

    @ray.method
    async def activity(self, after: int) -> tuple[FileIndexed, ...]:
        """Returns the newest entries of the activity log with a number above ``after``."""
        return tuple(entry for entry in self._activity if entry.number > after)

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
        scan, is_removed = await asyncio.to_thread(self._look)
        epoch = self._keeper_epoch
        known = await call(
            self._keeper.files_to_compare.remote,
            clock=self._clock,
            deadline_s=CALL_DEADLINE_S,
        )
        now_s = self._clock.monotonic()
        doubt = self._absence.doubt(scan, known, now_s, is_removed=is_removed)
        self._root_gone = scan is None and not doubt
        if doubt:
            self._miss_workspace(doubt)
            return
        if self._root_gone and known:
            logger.warning("workspace removed for good; the index forgets %d files", len(known))
        self._workspace_missing = self._root_gone
        scan = scan or Scan((), ())
        if not self._num_reconciles:
            await self._recall_refused()
        self._skipped_by_scan = scan.skipped
        present = {stamp.path for stamp in scan.files}
        self._refused = {path: file for path, file in self._refused.items() if path in present}
        reread = self._rereading.due([stamp.path for stamp in scan.files], now_s)
        for event in changes(scan, known, reread=reread):
            self._queue.put(key(event.raw_path), event.raw_path, lane=Lane.SCAN)
        if not self._num_reconciles:
            self._num_initial = self._queue.pending
        self._num_reconciles += 1
        self._compared_epoch = epoch
        self._last_reconcile_at = self._clock.time()
        self._work_arrived.set()
        self._note_drained()

    def _look(self) -> tuple[Scan | None, bool]:
        """Returns what is on disk, None without a root, and whether that was removed."""
        try:
            return self._workspace.scan(), False
        except WorkspaceMissing:
            return None, self._workspace.is_removed()

    def _miss_workspace(self, how: str) -> None:
        if not self._workspace_missing:
            logger.warning("workspace %s; the index keeps what it has", how)
        self._workspace_missing = True

    async def _recall_refused(self) -> None:
        """Learns from the index which files have sections that the provider refuses."""
        files = await call(
            self._keeper.words_only.remote, clock=self._clock, deadline_s=CALL_DEADLINE_S
        )
        for file in files:
            self._refused.setdefault(file.path, self._indexer.recall(file))

    async def _work(self) -> None:
        async with self._slots:
            now = self._clock.monotonic()
            work = self._queue.take(now)
            if work is not None:
                step = self._indexer.prepare(work.path, work.raw_path, is_root_gone=self._root_gone)
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
            self._note_read(prepared.update)
            if outcome is not None:
                try:
                    await self._report(work.path, outcome)
                finally:
                    # Only now: who waits until nothing is pending wants it to be on disk.
                    self._queue.done(work.path)
        self._note_drained()

    def _note_read(self, update: FileUpdate) -> None:
        if update.parsed is not None:
            self._rereading.note(
                update.path,
                update.parsed.mtime_ns,
                now_s=self._clock.monotonic(),
                unix_now=self._clock.time(),
            )

    async def _attempt(self, work: Work, step: Awaitable[T]) -> T | None:
        """Returns what a step gives; None if it failed, which is noted."""
        try:
            return await step
        except WorkspaceMissing:
            self._workspace_missing = True
            self._queue.done(work.path)
            self._rescan_wanted.set()  # a scan finds the change once the root is back
        except FileUnsettled as error:
            self._fail(work, stage="read", reason=error.reason)
        except ProviderUnavailable as error:
            wait_s, fault = error.retry_after_s or 0.0, _fault(error)
            self._fail(work, stage="embed", reason=str(error), retry_after_s=wait_s, fault=fault)
        except EmbeddingError as error:
            self._fail(work, stage="embed", reason=str(error))
        except Exception as error:
            # One odd file must not take the others down with it: it fails and is tried again.
            logger.exception("%s: unexpected error", work.path)
            self._fail(work, stage="apply", reason=type(error).__name__)
        return None

    def _fail(
        self,
        work: Work,
        *,
        stage: str,
        reason: str,
        retry_after_s: float = 0.0,
        fault: Fault = Fault.OWN,
    ) -> None:
        # While the provider is away, every file fails for the same reason, which is said once.
        is_news = stage != "embed" or reason != self._embed_failure
        level = logging.WARNING if is_news and fault is not Fault.UNTRIED else logging.DEBUG
        logger.log(level, "%s: %s failed: %s", work.path, stage, reason)
        if stage == "embed" and fault is not Fault.UNTRIED:
            self._embed_failure = reason
        self._queue.failed(
            work.path,
            stage=stage,
            reason=reason,
            now=self._clock.monotonic(),
            retry_after_s=retry_after_s,
            fault=fault,
        )
        self._work_arrived.set()

    async def _report(self, path: str, outcome: Indexed | Refused) -> None:
        self._refused.pop(path, None)
        self._embed_failure = ""
        if outcome.skipped is not None:
            self._refused[path] = outcome.skipped
        result = outcome.result
        if result.num_added or result.num_removed:
            self._num_activities += 1
            num_embedded = outcome.num_embedded if isinstance(outcome, Indexed) else 0
            self._activity.append(
                FileIndexed(
                    number=self._num_activities,
                    path=path,
                    num_embedded=num_embedded,
                    num_reused=max(0, result.num_added - num_embedded),
                    num_kept=result.num_kept,
                    num_removed=result.num_removed,
                    removed=not isinstance(outcome, Indexed) or outcome.removed,
                )
            )
        await call(
            self._persister.mark_dirty.remote,
            clock=self._clock,
            deadline_s=CALL_DEADLINE_S,
        )

    def _note_drained(self) -> None:
        if self._num_reconciles and self._queue.drained:
            self._ready = True


def _fault(error: ProviderUnavailable) -> Fault:
    match error:
        case ProviderAwaited():
            return Fault.UNTRIED
        case TextsUnanswered():
            return Fault.OWN
        case _:
            return Fault.OUTAGE
