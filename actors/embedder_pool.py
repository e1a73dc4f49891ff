"""The EmbedderPool actor: shares the Embedder workers between bulk work and questions."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, final

import numpy as np
import ray
from ray.exceptions import RayActorError

from actors.loops import answer, call
from actors.statuses import PoolStatus
from memory.clock import SystemClock
from memory.errors import ProviderUnavailable
from memory.providers.factory import token_counter

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.embedder import EmbedderWorker
    from memory.clock import Clock
    from memory.providers.base import ModelInfo

MAX_UNIT = 8
"""Most texts in one call to a worker: small enough that a lost call costs about a second."""
UNIT_DEADLINE_S = 300.0
QUERY_DEADLINE_S = 30.0
WARM_UP_TEXT = "memory"


@final
class EmbedderPool:
    """Spreads texts over the workers; questions never queue behind bulk work.

    Owns: the list of idle workers and the counters.
    Survives a crash: nothing; whoever waited asks again.
    Ordering: none between requests; the rows of one answer follow its texts. Requests may run at
    the same time, and each worker has at most one batch in flight.
    Called by: Chunker (bulk), ContextProvider (questions).
    """

    def __init__(
        self,
        info: ModelInfo,
        *workers: ActorProxy[EmbedderWorker],
        clock: Clock | None = None,
    ) -> None:
        self._info = info
        self._workers = workers
        self._clock = clock or SystemClock()
        self._count_tokens = token_counter(info)
        self._idle: asyncio.Queue[ActorProxy[EmbedderWorker]] = asyncio.Queue()
        for worker in workers:
            self._idle.put_nowait(worker)
        self._num_embedded = self._num_tokens = self._num_queries = self._num_waiting = 0
        self._turn = 0

    def __repr__(self) -> str:
        return "EmbedderPool"

    @ray.method
    async def embed(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        """Returns one unit vector per text, shape (len(texts), dim), float32.

        Raises:
            EmbeddingError: the provider refused a text, or no worker could be reached in time.
        """
        self._num_waiting += len(texts)
        try:
            answers = await asyncio.gather(
                *(self._embed_unit(unit) for unit in units(texts, len(self._workers))),
                return_exceptions=True,
            )
        finally:
            self._num_waiting -= len(texts)
        vectors: list[NDArray[np.float32]] = []
        for rows in answers:
            if isinstance(rows, BaseException):
                raise rows
            vectors.append(rows)
        return np.concatenate(vectors) if vectors else np.empty((0, self._info.dim), np.float32)

    @ray.method
    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the unit vector of a question, shape (dim,), float32.

        Raises:
            EmbeddingError: the provider refused it, or no worker could be reached in time.
        """
        self._num_queries += 1
        return await self._embed_question(text)

    @ray.method
    async def embed_queries(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        """Returns the unit vectors of texts that nobody waits for, as if each was a question.

        One after another on each worker, so that a real question waits for one of them at most.

        Returns:
            Shape (len(texts), dim), float32.

        Raises:
            EmbeddingError: see ``embed_query``.
        """
        rest = iter(enumerate(texts))
        vectors: dict[int, NDArray[np.float32]] = {}

        async def take_turns() -> None:
            for number, text in rest:
                vectors[number] = await self._embed_question(text)

        turns = [asyncio.ensure_future(take_turns()) for _worker in self._workers]
        try:
            await asyncio.gather(*turns)
        finally:
            for turn in turns:
                turn.cancel()
        return np.stack([vectors[number] for number in range(len(texts))])

    @ray.method
    async def warm_up(self) -> int:
        """Loads the model on every worker and returns the dimension of its vectors.

        Raises:
            EmbeddingError: a worker cannot use the model.
        """
        answers = await asyncio.gather(
            *(
                call(
                    lambda worker=worker: worker.embed_query.remote(WARM_UP_TEXT),  # type: ignore[misc]
                    clock=self._clock,
                    deadline_s=UNIT_DEADLINE_S,
                )
                for worker in self._workers
            )
        )
        return int(answers[0].shape[0])

    @ray.method
    async def status(self) -> PoolStatus:
        """Returns the counters of this pool."""
        return PoolStatus(
            pid=os.getpid(),
            num_workers=len(self._workers),
            num_embedded=self._num_embedded,
            num_tokens=self._num_tokens,
            num_queries=self._num_queries,
            num_waiting=self._num_waiting,
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _embed_question(self, text: str) -> NDArray[np.float32]:
        last_error: RayActorError | None = None
        self._turn += 1
        for offset in range(len(self._workers)):
            worker = self._workers[(self._turn + offset) % len(self._workers)]
            try:
                async with asyncio.timeout(QUERY_DEADLINE_S):
                    return await answer(worker.embed_query.remote(text))
            except RayActorError as error:
                last_error = error
        reason = f"no embedder is reachable ({type(last_error).__name__})"
        raise ProviderUnavailable(self._info.provider, reason)

    async def _embed_unit(self, unit: tuple[str, ...]) -> NDArray[np.float32]:
        worker = await self._idle.get()
        try:
            vectors = await call(
                lambda: worker.embed.remote(unit), clock=self._clock, deadline_s=UNIT_DEADLINE_S
            )
        except TimeoutError:
            reason = f"no answer for {len(unit)} texts in {UNIT_DEADLINE_S:.0f} s"
            raise ProviderUnavailable(self._info.provider, reason) from None
        finally:
            self._idle.put_nowait(worker)
        self._num_embedded += len(unit)
        self._num_tokens += sum(self._count_tokens(text) for text in unit)
        return vectors


def units(texts: tuple[str, ...], num_workers: int) -> list[tuple[str, ...]]:
    """Cuts texts into calls so that a short request still uses every worker."""
    size = max(1, min(MAX_UNIT, -(-len(texts) // num_workers)))
    return [texts[start : start + size] for start in range(0, len(texts), size)]
