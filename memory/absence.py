"""Is a workspace of which nothing is to be seen gone for good?

A file system that is not mounted leaves an empty folder in its place or takes the folder with it,
and who removes a workspace can wait until the index knows it (SPEC D6, FAULTS 23 and 24).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sized

    from memory.messages import Scan

EMPTY_GRACE_S = 600.0
"""How long a workspace without a single file counts as one that is not there."""
REMOVED_GRACE_S = 3_600.0
"""How long a folder that was removed counts as one that will come back: a disk that is plugged in
again brings it unchanged, and embedding everything anew costs more than an hour of old hits."""
MISSING = "missing"
EMPTY = "empty, as if it were not mounted"


class Absence:
    """Whether it is to be believed that nothing is left of a workspace.

    Pure state: ``now_s`` is monotonic seconds.
    """

    def __init__(self) -> None:
        self._kind = ""
        self._since_s = 0.0

    def doubt(self, scan: Scan | None, known: Sized, now_s: float, *, is_removed: bool) -> str:
        """Returns how the workspace is missing; empty if what was seen is to be believed.

        Args:
            scan: What is on disk; None if there is no root.
            known: What the index knows.
            now_s: Of the scan.
            is_removed: Whether a missing root was removed, as far as can be told; what cannot be
                reached for another reason is doubted for ever.
        """
        if scan is not None and (scan.files or scan.skipped or not known):
            self._kind = ""
            return ""
        kind = EMPTY if scan is not None else MISSING
        if kind != self._kind or (scan is None and not is_removed):
            self._kind, self._since_s = kind, now_s
        grace_s = EMPTY_GRACE_S if scan is not None else REMOVED_GRACE_S
        return kind if now_s - self._since_s < grace_s else ""
