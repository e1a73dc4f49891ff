"""The Watcher actor: turns file-system events into hints."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, NoReturn, final

import ray

from actors.loops import call, run_forever, spawn
from actors.observing import Observing, start_observing
from actors.statuses import WatcherStatus
from memory.clock import SystemClock
from memory.messages import FileEvent
from memory.paths import is_indexable_name

if TYPE_CHECKING:
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.chunker import Chunker
    from memory.clock import Clock

logger = logging.getLogger(__name__)

COALESCE_S = 0.05
HEARTBEAT_S = 1.0
SEND_DEADLINE_S = 60.0
MAX_HINTS = 5_000
"""More distinct paths than this between two deliveries are told as one rescan."""


@final
class Watcher:
    """Tells the Chunker which paths may have changed.

    Owns: the watchdog observer and the hints not delivered yet.
    Survives a crash: nothing; a fresh Watcher asks for a rescan once its observer runs.
    Ordering: none; a hint only names a path and the disk decides.
    Called by: the composition root. Calls: Chunker, one call in flight.
    """

    def __init__(
        self, root: Path, chunker: ActorProxy[Chunker], clock: Clock | None = None
    ) -> None:
        self._root = root
        self._chunker = chunker
        self._clock = clock or SystemClock()
        self._loop = asyncio.get_running_loop()
        self._hints: dict[str, None] = {}
        self._rescan = True
        self._noticed = asyncio.Event()
        self._noticed.set()
        self._observing: Observing | None = None
        self._num_events = self._num_overflows = self._num_starts = 0
        self._last_event_at = 0.0
        self._tasks = (
            spawn("Watcher.deliver", run_forever(self._deliver, clock=self._clock)),
            spawn("Watcher.heartbeat", self._heartbeat()),
        )

    def __repr__(self) -> str:
        return "Watcher"

    @ray.method
    async def stop(self) -> None:
        """Ends the observer; later changes are found by the scan of the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._observing is not None:
            await asyncio.to_thread(self._observing.stop)

    @ray.method
    async def status(self) -> WatcherStatus:
        """Returns the counters of this Watcher."""
        return WatcherStatus(
            pid=os.getpid(),
            mode=self._observing.mode if self._observing else "waiting",
            last_event_at=self._last_event_at,
            num_events=self._num_events,
            num_overflows=self._num_overflows,
            num_restarts=max(0, self._num_starts - 1),
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _heartbeat(self) -> NoReturn:
        await run_forever(self._check_observer, clock=self._clock)

    async def _check_observer(self) -> None:
        """Replaces an observer that died, lost events or its root, then asks for a rescan."""
        if self._observing is None or not self._observing.is_healthy():
            if (dead := self._observing) is not None:
                self._observing = None
                await asyncio.to_thread(dead.stop)
                self._ask_for_rescan()  # at once: there may be no root to observe
            self._observing = await self._start_observing()
            if self._observing is not None:
                self._num_starts += 1
                self._ask_for_rescan()
        await self._clock.sleep(HEARTBEAT_S)

    async def _start_observing(self) -> Observing | None:
        """Starts an observer, and ends it again if this Watcher is stopped meanwhile."""
        starting = asyncio.ensure_future(
            asyncio.to_thread(start_observing, self._root, self._on_paths, self._on_overflow)
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if (late := await starting) is not None:
                await asyncio.to_thread(late.stop)
            raise

    def _on_paths(self, raw_paths: tuple[str, ...], is_directory: bool) -> None:  # noqa: FBT001
        """Receives one event in watchdog's thread."""
        self._loop.call_soon_threadsafe(self._note, raw_paths, is_directory)

    def _on_overflow(self) -> None:
        """Receives a lost-events notice in watchdog's thread."""
        self._loop.call_soon_threadsafe(self._note_overflow)

    def _note(self, raw_paths: tuple[str, ...], is_directory: bool) -> None:  # noqa: FBT001
        if is_directory:
            self._rescan = self._rescan or not all(map(_is_hidden, raw_paths))
        else:
            self._hints.update(dict.fromkeys(filter(is_indexable_name, raw_paths)))
        if len(self._hints) > MAX_HINTS:
            self._hints.clear()
            self._rescan = True
        if self._hints or self._rescan:
            self._num_events += 1
            self._last_event_at = self._clock.time()
            self._noticed.set()

    def _note_overflow(self) -> None:
        self._num_overflows += 1
        self._ask_for_rescan()

    def _ask_for_rescan(self) -> None:
        self._rescan = True
        self._noticed.set()

    async def _deliver(self) -> None:
        """Sends what has gathered since the last delivery; nothing is lost if the call fails."""
        await self._noticed.wait()
        await self._clock.sleep(COALESCE_S)
        self._noticed.clear()
        hints, self._hints = self._hints, {}
        rescan, self._rescan = self._rescan, False
        events = tuple(FileEvent(raw_path) for raw_path in hints)
        try:
            await call(
                lambda: self._chunker.notice.remote(events, rescan),
                clock=self._clock,
                deadline_s=SEND_DEADLINE_S,
            )
        except BaseException:
            self._hints = hints | self._hints
            self._rescan = self._rescan or rescan
            self._noticed.set()
            raise


def _is_hidden(raw_path: str) -> bool:
    """Tells whether a relative folder lies in one that is never indexed, such as ``.git``."""
    return any(part.startswith(".") for part in raw_path.split("/")) and raw_path != "."
