"""Which segments are worth being merged?

Whoosh's segments never change, so edits leave small ones and deleted documents behind. Those of an
edit are merged on the spot while they are few rows, each time with all that are not much larger, so
that a row is rewritten a logarithmic number of times. The rest waits for a quiet moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.term_impacts import GROUP_SIZES, group_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_GROWTH = 2
_MAX_DELETED_SHARE = 0.25
_MAX_OF_GROUP = (1, 8, 12)
"""Segments of each group that are left alone, from the small to the large."""


def to_merge_at_once(sizes: Sequence[int], new_rows: int) -> list[int]:
    """Returns the positions of segments to be merged with new rows, smallest first.

    Args:
        sizes: Live documents of each segment.
        new_rows: At least 1.
    """
    chosen: list[int] = []
    total = new_rows
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if sizes[place] > _GROWTH * total or total + sizes[place] >= 2 * GROUP_SIZES[0]:
            break
        chosen.append(place)
        total += sizes[place]
    return chosen


def to_merge_when_idle(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Returns the positions of segments to be rewritten as one, empty if all is well.

    Args:
        sizes: Live documents and documents of each segment.
    """
    for group, most in enumerate(_MAX_OF_GROUP):
        members = [place for place, (_, size) in enumerate(sizes) if group_of(size) == group]
        if len(members) > most:
            return sorted(members, key=lambda place: sizes[place])[: 2 * most]
    wasteful = [
        place for place, (live, size) in enumerate(sizes) if size - live > _MAX_DELETED_SHARE * size
    ]
    return wasteful[:1]
