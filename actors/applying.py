"""How do changed files get to the keeper: one by one, or many new ones at once?

Whatever comes while others are under way waits for them, and what waits goes together. So a single
edit is never delayed, and a whole workspace does not make the keeper analyse it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from actors.loops import answer, call
from memory.messages import ApplyResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.building import Build
    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.messages import FileUpdate, ParsedFile

logger = logging.getLogger(__name__)

KEEPER_DEADLINE_S = 300.0
BUILD_DEADLINE_S = 60.0
MIN_BATCH_CHUNKS = 256
"""Fewer are applied by the keeper itself, in less time than a process for them takes to start."""
MAX_BATCH_CHUNKS = 1_500
"""Enough for a segment that is not merged again at once, and 25 ms of the keeper's time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    update: FileUpdate
    parsed: ParsedFile
    result: asyncio.Future[ApplyResult]

    @property
    def num_chunks(self) -> int:
        return len(self.parsed.chunks)


class Applier:
    """Hands updates to the keeper; one event loop.

    Args:
        keeper: Owns the index.
        build: Prepares files.
        num_groups: Groups of new files that may be under way at the same time.
        clock: For pauses while the keeper restarts.
    """

    def __init__(
        self, keeper: ActorProxy[IndexKeeper], build: Build, num_groups: int, clock: Clock
    ) -> None:
        self._keeper = keeper
        self._build = build
        self._num_groups = num_groups
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._groups: set[asyncio.Task[None]] = set()

    async def apply(self, update: FileUpdate, *, is_new: bool = False) -> ApplyResult:
        """Returns the keeper's answer to an update.

        Args:
            update: Of one file.
            is_new: Whether the keeper did not know the file a moment ago.

        Raises:
            StaleUpdate: see IndexKeeper.apply.
        """
        if update.parsed is None or not is_new:
            return await self._apply(update)
        result: asyncio.Future[ApplyResult] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(update, update.parsed, result))
        self._start()
        return await result

    def stop(self) -> None:
        """Ends what is under way; whoever waits for it is cancelled too."""
        for group in self._groups:
            group.cancel()

    def _start(self) -> None:
        while self._waiting and len(self._groups) < self._num_groups:
            group = asyncio.get_running_loop().create_task(self._run(self._next_group()))
            self._groups.add(group)
            group.add_done_callback(self._finished)

    def _finished(self, group: asyncio.Task[None]) -> None:
        self._groups.discard(group)
        if not group.cancelled():
            self._start()

    def _next_group(self) -> list[_Waiting]:
        group, num_chunks = [self._waiting.popleft()], 0
        while self._waiting:
            num_chunks += group[-1].num_chunks
            if num_chunks + self._waiting[0].num_chunks > MAX_BATCH_CHUNKS:
                break
            group.append(self._waiting.popleft())
        return group

    async def _run(self, group: Sequence[_Waiting]) -> None:
        """Gives every member its result, or its error."""
        try:
            if sum(each.num_chunks for each in group) < MIN_BATCH_CHUNKS or not await self._added(
                group
            ):
                await asyncio.gather(*map(self._settle, group))
        finally:
            for each in group:
                each.result.cancel()

    async def _added(self, group: Sequence[_Waiting]) -> bool:
        """Returns whether the keeper took the group as a whole."""
        hashes, vectors = _together(group)
        try:
            batch = self._build(tuple(each.parsed for each in group))
            async with asyncio.timeout(BUILD_DEADLINE_S):
                # The keeper's answers to later calls would wait for it, too.
                await answer(batch)
            result = await call(
                lambda: self._keeper.add.remote(batch, hashes, vectors),  # type: ignore[arg-type] # Ray resolves it
                clock=self._clock,
                deadline_s=KEEPER_DEADLINE_S,
            )
        except Exception as error:  # noqa: BLE001 - one odd file must not stop its neighbours
            logger.info("%d files are applied one by one: %r", len(group), error)
            return False
        for each in group:
            done = ApplyResult(result.epoch, result.revision, each.num_chunks, 0, 0)
            _set(each.result, done)
        return True

    async def _settle(self, waiting: _Waiting) -> None:
        try:
            _set(waiting.result, await self._apply(waiting.update))
        except Exception as error:  # noqa: BLE001 - for whoever waits
            if not waiting.result.done():
                waiting.result.set_exception(error)

    async def _apply(self, update: FileUpdate) -> ApplyResult:
        return await call(
            lambda: self._keeper.apply.remote(update),
            clock=self._clock,
            deadline_s=KEEPER_DEADLINE_S,
        )


def _together(group: Sequence[_Waiting]) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Returns the distinct hashes of all updates, and their vectors."""
    vectors: dict[str, NDArray[np.float32]] = {}
    for each in group:
        vectors.update(zip(each.update.hashes, each.update.vectors, strict=True))
    block = np.stack(list(vectors.values())) if vectors else np.empty((0, 0), np.float32)
    return tuple(vectors), block


def _set(future: asyncio.Future[ApplyResult], result: ApplyResult) -> None:
    if not future.done():
        future.set_result(result)
