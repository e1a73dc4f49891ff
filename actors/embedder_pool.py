"""The EmbedderPool actor: shares the Embedder workers between bulk work and questions."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import ray

from actors.bulk_embedding import CONTROL_TEXT, BulkEmbedding
from actors.loops import call
from actors.model_calls import ModelCalls
from actors.statuses import PoolStatus
from actors.worker_calls import REQUEST_DEADLINE_S
from memory.clock import SystemClock
from memory.errors import InputRejected
from memory.providers.factory import token_counter
from memory.recent import Recent
from memory.spending import Spending

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.embedder import EmbedderWorker
    from memory.clock import Clock
    from memory.messages import Embedded
    from memory.providers.base import ModelInfo

MAX_REMEMBERED_QUESTIONS = 256
RECALL_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """What a pool may cost."""

    token_budget: int | None = None
    """Most tokens to spend; None for no limit."""
    price_per_million_tokens: float | None = None


@final
class EmbedderPool:
    """Spreads texts over the workers; questions never queue behind bulk work.

    Owns: the texts that wait, the gate to the provider, and the counters.
    Survives a crash: nothing but what was spent of a budget, which the workers keep; whoever waited
    asks again.
    Ordering: none between requests; the rows of one answer follow its texts. Over all workers there
    are at most as many bulk requests in flight as the provider takes, one a worker for a model that
    runs here; questions go beside them. Each worker of a provider has one request more, which goes
    out when there is room again.
    Called by: Chunker (bulk), ContextProvider (questions).
    """

    def __init__(
        self,
        info: ModelInfo,
        options: PoolOptions,
        *workers: ActorProxy[EmbedderWorker],
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._info = info
        self._workers = workers
        self._clock = clock or SystemClock()
        self._count_tokens = token_counter(info)
        self._spending = Spending(options.token_budget, options.price_per_million_tokens)
        self._calls = ModelCalls(
            info,
            workers,
            self._spending,
            clock=self._clock,
            rng=rng or random.Random(),  # noqa: S311 - jitter, not a secret
        )
        self._bulk = BulkEmbedding(
            info,
            self._calls,
            self._spending,
            count=self._count_tokens,
            clock=self._clock,
        )
        self._questions: Recent[str, NDArray[np.float32]] = Recent(MAX_REMEMBERED_QUESTIONS)
        self._asking: dict[str, asyncio.Task[NDArray[np.float32]]] = {}
        self._num_queries = 0
        self._recalling = asyncio.Lock()
        self._has_recalled = False

    def __repr__(self) -> str:
        return "EmbedderPool"

    @ray.method
    async def embed(self, texts: tuple[str, ...]) -> Embedded:
        """Returns one row per text; texts that the provider refuses have a row of zeros.

        Waits while the provider wants a pause. While it is away, callers are told at once.

        Raises:
            ProviderUnavailable: no vectors for now; ``retry_after_s`` says when to come again.
        """
        if self._spending.token_budget is None:
            return await self._bulk.embed(texts)
        await self._recall_spent()
        try:
            return await self._bulk.embed(texts)
        finally:
            for worker in self._workers:
                worker.keep_spent.remote(self._spending.spent)

    @ray.method
    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the unit vector of a question, shape (dim,), float32.

        Asked again or by two at the same time, it costs one request.

        Raises:
            EmbeddingError: the provider refused it, is away, or no worker could be reached in time.
        """
        self._num_queries += 1
        known = self._questions.get(text)
        if known is not None:
            return known
        asking = self._asking.get(text)
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self._ask(text))
            self._asking[text] = asking
            asking.add_done_callback(lambda task: self._asked(text, task))
        return await asyncio.shield(asking)

    @ray.method
    async def embed_parts(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        """Returns the unit vectors of several questions that somebody waits for.

        Those that were asked before cost nothing, the others one request of a provider, or one of
        each worker that runs a model.

        Returns:
            Shape (len(texts), dim), float32.

        Raises:
            EmbeddingError: as for ``embed_query``.
        """
        self._num_queries += 1
        known: dict[str, NDArray[np.float32]] = {}
        for text in texts:
            if (vector := self._questions.get(text)) is not None:
                known[text] = vector
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        size = self._info.limits.max_inputs
        if not self._info.limits.max_concurrent:
            size = max(1, -(-len(unknown) // len(self._workers)))
        groups = [tuple(unknown[start : start + size]) for start in range(0, len(unknown), size)]
        for group, vectors in zip(
            groups, await asyncio.gather(*map(self._ask_all, groups)), strict=True
        ):
            known.update(zip(group, vectors, strict=True))
        return np.stack([known[text] for text in texts])

    @ray.method
    async def embed_queries(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        """Returns the unit vectors of texts that nobody waits for, as if each was a question.

        They wait in line with the texts of files.

        Returns:
            Shape (len(texts), dim), float32.

        Raises:
            EmbeddingError: the provider is away, or refuses one of them.
        """
        embedded = await self._bulk.embed(texts, is_query=True)
        if embedded.refused:
            raise InputRejected(self._info.provider, embedded.refused[0][1])
        return embedded.vectors

    @ray.method
    async def warm_up(self, needs_dimension: bool = True) -> int:  # noqa: FBT001, FBT002 - Ray passes it by position
        """Shows that the model can be used, and returns the dimension of its vectors.

        A model that runs here is loaded by every worker. A provider is asked once, and only if the
        dimension is needed, else 0 is returned: an index that fits costs no call (SPEC E5).

        Raises:
            EmbeddingError: it cannot.
        """
        if self._info.limits.max_concurrent:
            return int((await self._ask(CONTROL_TEXT)).shape[0]) if needs_dimension else 0
        answers = await asyncio.gather(
            *(
                call(
                    lambda worker=worker: worker.embed_queries.remote((CONTROL_TEXT,)),  # type: ignore[misc]
                    clock=self._clock,
                    deadline_s=REQUEST_DEADLINE_S,
                )
                for worker in self._workers
            )
        )
        return int(answers[0].rows.shape[1])

    @ray.method
    async def status(self) -> PoolStatus:
        """Returns the counters of this pool."""
        return PoolStatus(
            pid=os.getpid(),
            num_workers=len(self._workers),
            num_embedded=self._bulk.num_embedded,
            num_tokens=self._bulk.num_tokens,
            num_queries=self._num_queries,
            num_waiting=self._bulk.num_waiting,
            calls=self._calls.status(),
            num_quarantined=len(self._bulk.quarantine),
            learned_limits=self._bulk.limits.saved() if self._bulk.limits.is_learned else None,
            token_budget=self._spending.token_budget,
            token_room=self._spending.room,
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _recall_spent(self) -> None:
        """Learns from the workers, once, what a pool that died has spent of the budget."""
        async with self._recalling:
            if self._has_recalled:
                return
            told = await asyncio.gather(
                *(
                    call(
                        lambda worker=worker: worker.keep_spent.remote(0),  # type: ignore[misc]
                        clock=self._clock,
                        deadline_s=RECALL_DEADLINE_S,
                    )
                    for worker in self._workers
                ),
                return_exceptions=True,
            )
            sums = [num_tokens for num_tokens in told if isinstance(num_tokens, int)]
            self._spending.recall(max(sums, default=0))
            self._has_recalled = True

    def _asked(self, text: str, task: asyncio.Task[NDArray[np.float32]]) -> None:
        del self._asking[text]
        if not task.cancelled():
            task.exception()  # marks it as seen: perhaps nobody waits any more

    async def _ask(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = (await self._ask_all((text,)))[0]
        return vector

    async def _ask_all(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        vectors = await self._calls.questions(texts, sum(map(self._count_tokens, texts)))
        for text, vector in zip(texts, vectors, strict=True):
            self._questions.put(text, vector)
        return vectors
