"""Which worker gets a request, and what if its process ends meanwhile?"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from actors.loops import GONE, answer, call
from memory.errors import InputRejected, ProviderUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from ray.actor import ActorProxy

    from actors.embedder import EmbedderWorker, Vectors
    from memory.clock import Clock
    from memory.providers.base import ModelInfo

    Ask: TypeAlias = Callable[[ActorProxy[EmbedderWorker]], Awaitable[Vectors]]

logger = logging.getLogger(__name__)

REQUEST_DEADLINE_S = 300.0
QUERY_DEADLINE_S = 30.0
MAX_DEATHS = 3
"""So often may a worker end amid one request; the first end may have begun before it."""
NUM_SPARE = 1
"""Requests to a provider that each worker is handed beyond those that it makes at once."""


class WorkerCalls:
    """Spreads requests over the workers; one event loop.

    Args:
        info: The model.
        workers: At least one.
        clock: Time for pauses.
    """

    def __init__(
        self, info: ModelInfo, workers: Sequence[ActorProxy[EmbedderWorker]], clock: Clock
    ) -> None:
        self._provider = info.provider
        self._workers = workers
        self._clock = clock
        self._num_in_flight = [0] * len(workers)
        limits, num_workers = info.limits, len(workers)
        self._num_at_once = [limits.of_worker(n, num_workers) for n in range(num_workers)]
        self.num_at_once = sum(self._num_at_once)
        """Requests that the provider takes at once, one a worker for a model that runs here."""
        num_used = sum(1 for number in self._num_at_once if number)
        self._num_spare = NUM_SPARE * num_used if limits.max_concurrent else 0
        self._turn = 0

    @property
    def num_in_flight(self) -> int:
        """Requests with texts of files that a worker has or is about to get."""
        return sum(self._num_in_flight)

    def num_handed_over(self, *, is_query: bool) -> int:
        """Returns how many requests the workers may have, those that wait there included."""
        return self.num_at_once + (0 if is_query else self._num_spare)

    def take(self) -> int:
        """Returns the worker with most room, for one request; ``give_back`` must follow."""
        used = (number for number, most in enumerate(self._num_at_once) if most)
        best = min(used, key=lambda each: self._num_in_flight[each] - self._num_at_once[each])
        self._num_in_flight[best] += 1
        return best

    def give_back(self, number: int) -> None:
        """Notes that a request has ended."""
        self._num_in_flight[number] -= 1

    async def survived(self, number: int, ask: Ask, num_texts: int) -> Vectors:
        """Returns the answer of a worker, which is waited for if it ends, but not for ever.

        The system ends the largest process when memory runs out, and the same request would have
        the next one ended, too.

        Raises:
            TimeoutError: no answer before the deadline.
            InputRejected: it ends again and again; fewer texts may pass.
            ProviderUnavailable: it does so with a single one.
            EmbeddingError: what the worker says.
        """
        worker = self._workers[number]
        async with asyncio.timeout(REQUEST_DEADLINE_S):
            for _death in range(MAX_DEATHS):
                try:
                    return await answer(ask(worker))
                except GONE as error:
                    logger.info("waiting for an embedder: %s", type(error).__name__)
                await call(worker.ping.remote, clock=self._clock, deadline_s=REQUEST_DEADLINE_S)
        reason = f"the embedder ended {MAX_DEATHS} times amid the request, see Ray's logs"
        if num_texts > 1:
            raise InputRejected(self._provider, reason, too_large=True)
        raise ProviderUnavailable(self._provider, reason)

    async def ask_any(self, texts: tuple[str, ...]) -> Vectors:
        """Returns the vectors of questions from the first worker that is there.

        Raises:
            TimeoutError: no answer before the deadline.
            Unreachable: none is.
            EmbeddingError: what the worker says.
        """
        last_error = ""
        self._turn += 1
        async with asyncio.timeout(QUERY_DEADLINE_S):
            for offset in range(len(self._workers)):
                worker = self._workers[(self._turn + offset) % len(self._workers)]
                try:
                    return await answer(worker.embed_queries.remote(texts))
                except GONE as error:
                    last_error = type(error).__name__
        raise Unreachable(last_error)

    def hold_back(self) -> None:
        """Has what waits at any worker come back, because a pause has begun."""
        if self._num_spare:
            for worker in self._workers:
                worker.hold_back.remote()


class Unreachable(Exception):
    """No worker can be called right now."""
