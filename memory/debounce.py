"""When is it time to write the index to disk?"""

from __future__ import annotations


class Debounce:
    """Waits for a pause in the changes, but not for ever (SPEC P3).

    Pure state: every method takes ``now`` in monotonic seconds, so a wall clock that is set back
    delays nothing.
    """

    def __init__(self, delay_s: float, max_delay_s: float) -> None:
        if not 0 <= delay_s <= max_delay_s:
            raise ValueError(f"delay {delay_s} s must lie between 0 and {max_delay_s} s")
        self._delay_s = delay_s
        self._max_delay_s = max_delay_s
        self._first: float | None = None
        self._last = 0.0

    def touch(self, now: float) -> None:
        """Notes a change, which restarts the pause."""
        if self._first is None:
            self._first = now
        self._last = now

    def due_in(self, now: float) -> float | None:
        """Returns the seconds until the flush is due, 0 if it is, None if nothing changed."""
        if self._first is None:
            return None
        due = min(self._last + self._delay_s, self._first + self._max_delay_s)
        return max(0.0, due - now)

    def clear(self) -> None:
        """Forgets the changes so far; call it before the flush, so that later ones count anew."""
        self._first = None
