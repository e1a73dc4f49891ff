"""Which files are read again although their stamps say that they did not change?

Time, size and inode may stay while the content changes: by ``touch -r`` or a tool that restores
times, or because the file system counts whole seconds (FAT, SMB). If no event told of it, only
another look at the content does (FAULTS 39).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

SETTLED_S = 3.0
"""After so long a further change shows in the time of any file system; FAT counts two seconds."""
_COARSE_NS = 1_000_000_000
_CLOCKS_DIFFER_S = 3_600.0
"""By how much the clock of a file server may be wrong."""


class Rereading:
    """Deals every file out once a period, evenly spread, and each doubtful one once more soon.

    Pure state: ``now_s`` is monotonic seconds. It begins anywhere, so that files at the end come
    first at times although no process lives for a whole period.

    Args:
        period_s: In which every file is dealt out once.
        rng: Decides where to begin.
    """

    def __init__(self, period_s: float, rng: random.Random) -> None:
        self._period_s = period_s
        self._rng = rng
        self._last: str | None = None
        self._asked_at_s: float | None = None
        self._owed = 0.0
        self._doubtful: dict[str, float] = {}
        """When each was read."""
        self._noted: dict[str, int] = {}
        """Time of each file that was doubtful once, nanoseconds: a second look settles it."""

    def note(self, path: str, mtime_ns: int, *, now_s: float, unix_now: float) -> None:
        """Notes that a file was read, which may have changed afterwards within the same second."""
        is_young = abs(unix_now - mtime_ns / 1e9) < _CLOCKS_DIFFER_S
        if mtime_ns % _COARSE_NS == 0 and is_young and self._noted.get(path) != mtime_ns:
            self._noted[path] = mtime_ns
            self._doubtful[path] = now_s

    def due(self, paths: Sequence[str], now_s: float) -> frozenset[str]:
        """Returns which files to read again now.

        Args:
            paths: All there are, sorted.
            now_s: Monotonic seconds.
        """
        settled = {path for path, at in self._doubtful.items() if now_s - at >= SETTLED_S}
        for path in settled:
            del self._doubtful[path]
        self._noted = {path: self._noted[path] for path in self._noted.keys() & set(paths)}
        return frozenset(settled.union(self._in_turn(paths, now_s)))

    def _in_turn(self, paths: Sequence[str], now_s: float) -> list[str]:
        elapsed_s = 0.0 if self._asked_at_s is None else now_s - self._asked_at_s
        self._asked_at_s = now_s
        owed = self._owed + len(paths) * elapsed_s / self._period_s
        number = min(int(owed), len(paths))
        self._owed = min(owed - number, 1.0)
        if not number:
            return []
        last = self._rng.choice(paths) if self._last is None else self._last
        first = bisect_right(paths, last)
        turn = [paths[(first + step) % len(paths)] for step in range(number)]
        self._last = turn[-1]
        return turn
