"""How do the files differ from the index, and may that be believed?"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from actors.loops import call
from memory.errors import WorkspaceMissing
from memory.reconcile import Emptiness

if TYPE_CHECKING:
    from ray.actor import ActorProxy

    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.messages import Scan
    from memory.reconcile import KnownFiles
    from memory.workspace import Workspace

logger = logging.getLogger(__name__)

CALL_DEADLINE_S = 60.0


class Comparison:
    """Looks at the whole workspace and at all that the index knows.

    Args:
        workspace: Where the files are.
        keeper: Owns the index.
        clock: For times, and for pauses while the keeper restarts.
    """

    def __init__(self, workspace: Workspace, keeper: ActorProxy[IndexKeeper], clock: Clock) -> None:
        self._workspace = workspace
        self._keeper = keeper
        self._clock = clock
        self._emptiness = Emptiness()
        self.is_missing = False
        """Whether the workspace is not there, as far as was seen."""
        self.num_done = 0
        self.last_at = 0.0
        """Unix time of the last one, seconds; 0 if there was none."""

    async def look(self) -> tuple[Scan, KnownFiles] | None:
        """Returns what is on disk and what the indexes know; None if the workspace is missing."""
        try:
            scan = await asyncio.to_thread(self._workspace.scan)
        except WorkspaceMissing:
            self._miss("missing")
            return None
        known = await call(
            self._keeper.files_to_compare.remote, clock=self._clock, deadline_s=CALL_DEADLINE_S
        )
        if self._emptiness.is_doubtful(scan, known, self._clock.monotonic()):
            self._miss("empty, as if it were not mounted")
            return None
        self.is_missing = False
        return scan, known

    def done(self) -> None:
        """Notes that what was seen last is being worked on."""
        self.num_done += 1
        self.last_at = self._clock.time()

    def _miss(self, how: str) -> None:
        if not self.is_missing:
            logger.warning("workspace %s; the index keeps what it has", how)
        self.is_missing = True
