"""When is the index calibrated?

Whenever it holds something and its calibration is missing or out of date, in the background, while
files and questions go on. The model embeds the unrelated prompts once; the snapshot keeps them.
"""

from __future__ import annotations

import logging
from itertools import chain
from typing import TYPE_CHECKING

from actors.loops import call
from memory.calibrating import Calibration
from memory.errors import EmbeddingError
from memory.unrelated_prompts import unrelated_prompts

if TYPE_CHECKING:
    from ray.actor import ActorProxy

    from actors.embedder_pool import EmbedderPool
    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock

logger = logging.getLogger(__name__)

POLL_S = 2.0
"""Pause between two looks at a calibrated index."""
RETRY_S = 60.0
"""Pause after the model failed."""
STEP_DEADLINE_S = 60.0
MODEL_DEADLINE_S = 600.0


class CalibrationLoop:
    """Calibrates the index of one keeper, step by step."""

    def __init__(
        self, keeper: ActorProxy[IndexKeeper], pool: ActorProxy[EmbedderPool], clock: Clock
    ) -> None:
        """Does nothing until the first step."""
        self._keeper = keeper
        self._pool = pool
        self._clock = clock

    async def step(self) -> None:
        """Goes one step, or waits until one may be needed.

        Raises:
            TimeoutError: a neighbour did not answer.
        """
        need = await call(
            lambda: self._keeper.calibrate.remote(None),
            clock=self._clock,
            deadline_s=STEP_DEADLINE_S,
        )
        if need is Calibration.VECTORS:
            await self._teach()
        elif need is Calibration.NOTHING:
            await self._clock.sleep(POLL_S)

    async def _teach(self) -> None:
        """Gives the keeper the vectors of the unrelated prompts."""
        prompts = tuple(chain.from_iterable(unrelated_prompts()))
        try:
            vectors = await call(
                lambda: self._pool.embed_queries.remote(prompts),
                clock=self._clock,
                deadline_s=MODEL_DEADLINE_S,
            )
        except (EmbeddingError, TimeoutError) as error:
            logger.warning("scores are not calibrated, the model failed: %r", error)
            await self._clock.sleep(RETRY_S)
            return
        await call(
            lambda: self._keeper.calibrate.remote(vectors),
            clock=self._clock,
            deadline_s=STEP_DEADLINE_S,
        )
        logger.info("calibrating scores with %d unrelated prompts", len(prompts))
