"""Which files were indexed lately, and what did that take?"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from actors.indexing import Indexed
from actors.statuses import FileIndexed

if TYPE_CHECKING:
    from actors.indexing import Refused

MAX_LINES = 1_000


class ActivityLog:
    """The newest lines of what became of files; those where nothing changed are left out."""

    def __init__(self) -> None:
        self._lines: deque[FileIndexed] = deque(maxlen=MAX_LINES)
        self._num_lines = 0

    def add(self, path: str, outcome: Indexed | Refused) -> None:
        """Notes what became of a file."""
        result = outcome.result
        if not (result.num_added or result.num_removed):
            return
        self._num_lines += 1
        num_embedded = outcome.num_embedded if isinstance(outcome, Indexed) else 0
        self._lines.append(
            FileIndexed(
                number=self._num_lines,
                path=path,
                num_embedded=num_embedded,
                num_reused=max(0, result.num_added - num_embedded),
                num_kept=result.num_kept,
                num_removed=result.num_removed,
                removed=not isinstance(outcome, Indexed) or outcome.removed,
            )
        )

    def after(self, number: int) -> tuple[FileIndexed, ...]:
        """Returns the newest lines with a number above ``number``."""
        return tuple(line for line in self._lines if line.number > number)
