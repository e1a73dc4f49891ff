"""Which hits of which files are shown?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memory.chunk_table import ChunkTable
    from memory.fusion import FusedHits

MAX_HITS_PER_FILE = 3
_BATCH_PER_FILE = 2
_BATCH_GROWTH = 2
# Scores that differ by less differ only by the rounding of float32.
_SCORE_DIGITS = 6

Ranked = tuple[float, str, int, int]
"""Score below zero, path, position in the file, number of the hit it was made of: they sort best
first, ties by path and position. A plain tuple, because many are made and few are shown."""


class Grouping:
    """The first hits of each of the first ``limit`` files, in the order they come (SPEC S7)."""

    def __init__(self, limit: int) -> None:
        """Begins without a hit; ``limit`` is the number of files, at least 1."""
        self.kept: list[Ranked] = []
        self._limit = limit
        self._per_file: dict[str, int] = {}
        self._wanted: set[str] = set()

    @property
    def num_files(self) -> int:
        """Files of which a hit is kept."""
        return len(self._per_file)

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be kept."""
        return len(self.kept) == MAX_HITS_PER_FILE * self._limit

    @property
    def wanted(self) -> set[str] | None:
        """The only files of which another hit would be kept; None while new files may come."""
        return self._wanted if len(self._per_file) == self._limit else None

    def extend(self, ranked: Iterable[Ranked]) -> None:
        """Keeps what there is room for."""
        per_file, wanted = self._per_file, self._wanted
        for each in ranked:
            path = each[1]
            if path in wanted or (path not in per_file and len(per_file) < self._limit):
                self.kept.append(each)
                count = per_file[path] = per_file.get(path, 0) + 1
                (wanted.add if count < MAX_HITS_PER_FILE else wanted.discard)(path)
                if not wanted and len(per_file) == self._limit:
                    return


def best_of_files(table: ChunkTable, fused: FusedHits, limit: int) -> Grouping:
    """Returns the hits to be shown of at most ``limit`` files, the best first.

    The best are looked at first, with all that tie with the last of them. Once there are as many
    files as can be shown, mostly after the first batch, only further hits of these matter.
    """
    grouping = Grouping(limit)
    below_zero = -fused.scores.round(_SCORE_DIGITS)
    order = below_zero.argsort()
    ranked = below_zero[order]
    begin, size = 0, _BATCH_PER_FILE * limit
    while begin < len(order) and not grouping.is_full:
        wanted = grouping.wanted
        if wanted is None:
            last = ranked[min(begin + size, len(order)) - 1]
            end = int(ranked.searchsorted(last, side="right"))
            places = order[begin:end]
        else:
            end = len(order)
            places = order[begin:]
            places = places[table.belong_to(fused.rows[places], wanted)]
        owners = map(table.owner, fused.rows[places].tolist())
        batch = zip(below_zero[places].tolist(), owners, places.tolist(), strict=True)
        grouping.extend(sorted([(score, *owner, number) for score, owner, number in batch]))
        begin, size = end, _BATCH_GROWTH * size
    return grouping
