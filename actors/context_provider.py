"""The ContextProvider actor: answers prompts and searches."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, final

import ray
from ray.exceptions import RayActorError

from actors.calibrating import CalibrationLoop
from actors.loops import answer, call, run_forever, spawn
from actors.statuses import ProviderStatus
from memory.clock import SystemClock
from memory.context_section import section_for
from memory.errors import EmbeddingError
from memory.messages import ContextSection, Query, SearchResult
from memory.prompt_parts import in_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.embedder_pool import EmbedderPool
    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.config import Settings

logger = logging.getLogger(__name__)

EMBED_DEADLINE_S = 1.5
"""Seconds a prompt waits for its embedding before text alone answers (SPEC A1)."""
KEEPER_DEADLINE_S = 10.0


@final
class ContextProvider:
    """Turns a prompt into the ``# Memories`` section, and a search into hits.

    It also has the scores calibrated, see ``calibrating``.

    Owns: counters only.
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
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._pool = pool
        self._clock = clock or SystemClock()
        self._num_sections = self._num_searches = self._num_degraded = 0
        calibration = CalibrationLoop(keeper, pool, self._clock)
        self._task = spawn("calibration", run_forever(calibration.step, clock=self._clock))

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
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _search(self, query: Query) -> SearchResult:
        query = in_parts(query, self._settings.memory.scoring)
        vectors = await self._query_vectors(query)
        return await call(
            lambda: self._keeper.search.remote(query, vectors),
            clock=self._clock,
            deadline_s=KEEPER_DEADLINE_S,
        )

    async def _query_vectors(self, query: Query) -> NDArray[np.float32] | None:
        if not query.text.strip():
            return None
        try:
            async with asyncio.timeout(EMBED_DEADLINE_S):
                if query.parts:
                    return await answer(self._pool.embed_parts.remote(query.parts))
                return await answer(self._pool.embed_query.remote(query.text))
        except (EmbeddingError, RayActorError, TimeoutError) as error:
            logger.warning("no query embedding: %s", type(error).__name__)
            self._num_degraded += 1
            return None
