"""The ContextProvider actor: answers prompts and searches."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING, final

import ray

from actors.calibrating import CalibrationLoop
from actors.former_model import FormerModel, open_model_of
from actors.loops import GONE, answer, call, run_forever, spawn
from actors.statuses import ProviderStatus
from memory.clock import SystemClock
from memory.context_section import section_for
from memory.errors import EmbeddingError
from memory.messages import ContextSection, Query, SearchResult
from memory.prompt_parts import in_parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import numpy as np
    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.embedder_pool import EmbedderPool
    from actors.former_model import Open
    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.config import Settings
    from memory.identity import Identity

logger = logging.getLogger(__name__)

EMBED_DEADLINE_S = 1.5
"""Seconds a prompt waits for its embedding before text alone answers (SPEC A1)."""
KEEPER_DEADLINE_S = 10.0


@final
class ContextProvider:
    """Turns a prompt into the ``# Memories`` section, and a search into hits.

    It also has the scores calibrated, see ``calibrating``, and gives questions a vector while the
    index of another model answers, see ``former_model``.

    Owns: counters, and the model of an index that is about to be replaced.
    Survives a crash: nothing is needed; the caller asks again.
    Ordering: none; up to ``max_concurrency`` answers at once.
    Called by: the composition root and every holder of its handle. Calls: EmbedderPool,
    IndexKeeper.
    """

    def __init__(
        self,
        settings: Settings,
        keeper: ActorProxy[IndexKeeper],
        pool: ActorProxy[EmbedderPool],
        clock: Clock | None = None,
        open_model: Open = open_model_of,
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._pool = pool
        self._clock = clock or SystemClock()
        self._num_sections = self._num_searches = self._num_degraded = 0
        calibration = CalibrationLoop(keeper, pool, self._clock)
        self._former = FormerModel(settings.inference, keeper, self._clock, open_model)
        self._tasks = (
            spawn("calibration", run_forever(calibration.step, clock=self._clock)),
            spawn("former model", run_forever(self._former.step, clock=self._clock)),
        )

    def __repr__(self) -> str:
        return "ContextProvider"

    @ray.method
    async def section(self, prompt: str) -> ContextSection:
        """Returns the ``# Memories`` section of a prompt; empty for a blank one.

        Raises:
            TimeoutError: the keeper did not come back within ten seconds.
        """
        self._num_sections += 1
        if not prompt.strip():
            return ContextSection("", (), "")
        limit = self._settings.memory.max_system_prompt_memory_results
        result = await self._search(
            Query(prompt, limit, wants_snippets=False, wants_distinct_files=True)
        )
        files = await call(
            self._keeper.files.remote, clock=self._clock, deadline_s=KEEPER_DEADLINE_S
        )
        return section_for(result, files, self._settings)

    @ray.method
    async def search(self, text: str, limit: int) -> SearchResult:
        """Returns the best hits of at most ``limit`` files, no score threshold.

        Raises:
            TimeoutError: the keeper did not come back within ten seconds.
        """
        self._num_searches += 1
        return await self._search(Query(text, limit))

    @ray.method
    async def status(self) -> ProviderStatus:
        """Returns the counters of this actor."""
        return ProviderStatus(
            pid=os.getpid(),
            num_sections=self._num_sections,
            num_searches=self._num_searches,
            num_degraded=self._num_degraded,
            former_trouble=self._former.trouble,
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _search(self, query: Query) -> SearchResult:
        query = in_parts(query, self._settings.memory.scoring)
        former = self._former.identity
        if former is not None:
            found = await self._search_former(query, former)
            if found is not None:
                return found
            self._former.forget()
        vectors, trouble = await self._vectors(query, self._of_pool)
        result: SearchResult = await call(
            lambda: self._keeper.search.remote(query, vectors),
            clock=self._clock,
            deadline_s=KEEPER_DEADLINE_S,
        )
        if not (result.degraded and trouble):
            return result
        return replace(result, degraded=f"{result.degraded}: {trouble}")

    async def _search_former(self, query: Query, former: Identity) -> SearchResult | None:
        vectors, trouble = await self._vectors(query, self._of_former)
        return await call(
            lambda: self._keeper.search_former.remote(query, vectors, former, trouble),
            clock=self._clock,
            deadline_s=KEEPER_DEADLINE_S,
        )

    async def _of_pool(self, query: Query) -> NDArray[np.float32]:
        if query.parts:
            return await answer(self._pool.embed_parts.remote(query.parts))
        return await answer(self._pool.embed_query.remote(query.text))

    async def _of_former(self, query: Query) -> NDArray[np.float32]:
        rows = await self._former.vectors(query.texts)
        vector: NDArray[np.float32] = rows if query.parts else rows[0]
        return vector

    async def _vectors(
        self, query: Query, embed: Callable[[Query], Awaitable[NDArray[np.float32]]]
    ) -> tuple[NDArray[np.float32] | None, str]:
        """Returns the vector of a query, or those of its parts, or why there is none."""
        if not query.text.strip():
            return None, "the query is blank"
        try:
            async with asyncio.timeout(EMBED_DEADLINE_S):
                return await embed(query), ""
        except EmbeddingError as error:
            trouble = str(error)
        except TimeoutError:
            trouble = f"the model did not answer within {EMBED_DEADLINE_S:g} s"
        except GONE:
            trouble = "the embedder is restarting"
        logger.warning("no query embedding: %s", trouble)
        self._num_degraded += 1
        return None, trouble
