"""Does a path match one of the user's patterns (``excludeGlobs``, ``core.writablePaths``)?

The grammar (SPEC W3): ``*`` and ``**`` match any run of characters, slashes included; all else is
literal; both ends are anchored. Matching takes linear time for any pattern, because a pattern is
only its literal pieces, searched one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory import paths

if TYPE_CHECKING:
    from collections.abc import Iterable


class Globs:
    """A set of patterns; a path matches if one of them does.

    Args:
        patterns: Patterns, or one pattern as a bare string.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        listed = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        self._pieces = tuple(tuple(paths.key(pattern).split("*")) for pattern in listed)

    def matches(self, path: str) -> bool:
        """Tells whether a key matches."""
        return any(_matches(pieces, path) for pieces in self._pieces)

    def covers(self, folder: str) -> bool:
        """Tells whether everything below a folder matches, whatever it is called."""
        # A pattern that ends in * and matches "folder/" matches every longer path as well.
        return any(
            pieces[-1] == "" and len(pieces) > 1 and _matches(pieces, f"{folder}/")
            for pieces in self._pieces
        )


def _matches(pieces: tuple[str, ...], path: str) -> bool:
    head, *middle = pieces
    if not middle:
        return path == head
    tail = middle.pop()
    end = len(path) - len(tail)
    position = len(head)
    if position > end or not path.startswith(head) or not path.endswith(tail):
        return False
    for piece in middle:
        found = path.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
