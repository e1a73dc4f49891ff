"""Which hits of which files are shown?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.near_duplicates import DistinctTexts

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

    def __init__(self, limit: int, distinct: DistinctFiles | None = None) -> None:
        """Begins without a hit.

        Args:
            limit: Number of files, at least 1.
            distinct: Decides which files are kept; None keeps all.
        """
        self.kept: list[Ranked] = []
        self.limit = limit
        self._distinct = distinct
        self._per_file: dict[str, int] = {}
        self._wanted: set[str] = set()

    @property
    def num_files(self) -> int:
        """Files of which a hit is kept."""
        return len(self._per_file)

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be kept."""
        return len(self.kept) == MAX_HITS_PER_FILE * self.limit

    @property
    def is_exhausted(self) -> bool:
        """Whether no other file will be kept, however few there are."""
        return self._distinct is not None and self._distinct.is_exhausted

    @property
    def wanted(self) -> set[str] | None:
        """The only files of which another hit would be kept; None while new files may come."""
        return self._wanted if len(self._per_file) == self.limit else None

    def extend(self, ranked: Iterable[Ranked]) -> None:
        """Keeps what there is room for."""
        per_file, wanted, distinct = self._per_file, self._wanted, self._distinct
        for each in ranked:
            path = each[1]
            if path in wanted or (
                path not in per_file
                and len(per_file) < self.limit
                and (distinct is None or distinct.admits(path, each[2]))
            ):
                self.kept.append(each)
                count = per_file[path] = per_file.get(path, 0) + 1
                (wanted.add if count < MAX_HITS_PER_FILE else wanted.discard)(path)
                if not wanted and len(per_file) == self.limit:
                    return


class DistinctFiles:
    """Admits a file unless its best hit says nearly what that of a file before it says.

    Args:
        table: Where the texts are.
    """

    def __init__(self, table: ChunkTable) -> None:
        self._table = table
        self._texts = DistinctTexts()
        self._hashes: set[bytes] = set()
        self._refused: set[str] = set()

    @property
    def is_exhausted(self) -> bool:
        """Whether no other file will be admitted: too many were compared."""
        return self._texts.is_exhausted

    def admits(self, path: str, position: int) -> bool:
        """Tells whether a file that has not been admitted yet is one more, by its next hit."""
        if path in self._refused:
            return False
        packed = self._table[path].packed
        content_hash = packed.hash_of(position)
        # Of thousands of equal copies only the first is decoded.
        if content_hash not in self._hashes:
            self._hashes.add(content_hash)
            headlines, content, _start, _end = packed.section(position)
            if self._texts.admits(headlines, content):
                return True
        self._refused.add(path)
        return False


def best_of_files(table: ChunkTable, fused: FusedHits, grouping: Grouping) -> None:
    """Finds the hits to be shown, the best first, for a grouping without hits.

    The best are looked at first, with all that tie with the last of them. Once there are as many
    files as can be shown, mostly after the first batch, only further hits of these matter.
    """
    below_zero = -fused.scores.round(_SCORE_DIGITS)
    order = below_zero.argsort()
    ranked = below_zero[order]
    begin, size = 0, _BATCH_PER_FILE * grouping.limit
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
