"""When does the index of another model take over?

As soon as it is complete; what complete means is the keeper's to say, and a little less is enough
once that has been waited for.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from actors.loops import call

if TYPE_CHECKING:
    from ray.actor import ActorProxy

    from actors.index_keeper import IndexKeeper
    from actors.persister import Persister
    from memory.clock import Clock

logger = logging.getLogger(__name__)

PATIENCE_S = 120.0
"""How long failing files and the calibration of scores are waited for."""
RETRY_S = 10.0
"""Pause after the disk refused."""
SAVE_DEADLINE_S = 300.0


class TakeOver:
    """Asks the keeper of one index, again and again."""

    def __init__(
        self, keeper: ActorProxy[IndexKeeper], persister: ActorProxy[Persister], clock: Clock
    ) -> None:
        """Does nothing until the first step."""
        self._keeper = keeper
        self._persister = persister
        self._clock = clock
        self._epoch = ""
        self._since = self._not_before = 0.0

    async def step(self, epoch: str) -> None:
        """Asks once.

        Args:
            epoch: Of an index that was compared with the disk, and for which nothing is pending.
        """
        now = self._clock.monotonic()
        if epoch != self._epoch:
            self._epoch, self._since = epoch, now
        if now < self._not_before:
            return
        is_urgent = now - self._since >= PATIENCE_S
        try:
            done = await call(
                lambda: self._keeper.take_over.remote(epoch, is_urgent),
                clock=self._clock,
                deadline_s=SAVE_DEADLINE_S,
            )
            if done:
                # embedding.json is still that of the old one.
                await call(
                    self._persister.flush.remote, clock=self._clock, deadline_s=SAVE_DEADLINE_S
                )
        except OSError as error:
            logger.warning("the new index is not in its place yet: %s", error)
            self._not_before = now + RETRY_S
