"""How do the files differ from the index, and may that be believed?"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors.loops import call
from memory.absence import Absence
from memory.errors import WorkspaceMissing
from memory.messages import Scan

if TYPE_CHECKING:
    from ray.actor import ActorProxy

    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.messages import FileUpdate
    from memory.reconcile import KnownFiles
    from memory.rereading import Rereading
    from memory.workspace import Workspace

logger = logging.getLogger(__name__)

CALL_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at everything showed."""

    scan: Scan
    """What is on disk; nothing of a workspace that is gone for good."""
    known: KnownFiles
    """What the indexes know."""
    reread: frozenset[str]
    """Keys of files to read again whatever their stamps say."""


class Comparison:
    """Looks at the whole workspace and at all that the index knows.

    Args:
        workspace: Where the files are.
        keeper: Owns the index.
        rereading: Tells which files to read again.
        clock: For times, and for pauses while the keeper restarts.
    """

    def __init__(
        self,
        workspace: Workspace,
        keeper: ActorProxy[IndexKeeper],
        rereading: Rereading,
        clock: Clock,
    ) -> None:
        self._workspace = workspace
        self._keeper = keeper
        self._rereading = rereading
        self._clock = clock
        self._absence = Absence()
        self.is_missing = False
        """Whether the workspace is not there, as far as was seen."""
        self.is_root_gone = False
        """Whether it is believed that it was removed."""
        self.num_done = 0
        self.last_at = 0.0
        """Unix time of the last one, seconds; 0 if there was none."""

    async def look(self) -> Seen | None:
        """Returns what there is to compare; None if the workspace seems to be missing."""
        scan, is_removed = await asyncio.to_thread(self._scan)
        known = await call(
            self._keeper.files_to_compare.remote, clock=self._clock, deadline_s=CALL_DEADLINE_S
        )
        files, now_s = known.newest or known.old, self._clock.monotonic()
        doubt = self._absence.doubt(scan, files, now_s, is_removed=is_removed)
        self.is_root_gone = scan is None and not doubt
        if doubt:
            self._miss(doubt)
            return None
        if self.is_root_gone and files:
            logger.warning("workspace removed for good; the index forgets %d files", len(files))
        self.is_missing = self.is_root_gone
        scan = scan or Scan((), ())
        reread = self._rereading.due([stamp.path for stamp in scan.files], now_s)
        return Seen(scan, known, reread)

    def note_read(self, update: FileUpdate) -> None:
        """Notes that a file was read and what its stamp said."""
        if update.parsed is not None:
            self._rereading.note(
                update.path,
                update.parsed.mtime_ns,
                now_s=self._clock.monotonic(),
                unix_now=self._clock.time(),
            )

    def _scan(self) -> tuple[Scan | None, bool]:
        """Returns what is on disk, None without a root, and whether that was removed."""
        try:
            return self._workspace.scan(), False
        except WorkspaceMissing:
            return None, self._workspace.is_removed()

    def done(self) -> None:
        """Notes that what was seen last is being worked on."""
        self.num_done += 1
        self.last_at = self._clock.time()

    def _miss(self, how: str) -> None:
        if not self.is_missing:
            logger.warning("workspace %s; the index keeps what it has", how)
        self.is_missing = True
