"""How much does each document of the index count for a term?

One thing differs from Whoosh's BM25F (see ``term_impacts``): the inverse document frequency is
Lucene's and the same for all fields of a term, taken where the term is most frequent, because a
common word that is rare in headings is common all the same. Document counts and average lengths
include deleted documents until their segment is merged, as in Whoosh.
"""

from __future__ import annotations

import math
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from memory.posting_lists import FIELDS
from memory.term_impacts import ENTRY_BYTES, Group, Lengths, group_of
from memory.top_documents import QueryTerm, TopDocuments, best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from memory.posting_lists import Segment
    from memory.term_impacts import Boosts
    from memory.top_documents import Impacts

    _Found = tuple[float, QueryTerm | None]

_MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Of impacts that a collection holds on to, even if a group let them go."""


class Collection:
    """The documents of some segments, numbered through; never changes.

    Args:
        segments: Each segment with a mask of its documents that are not deleted.
        before: An earlier collection, whose groups are taken over where they are the same.
    """

    def __init__(
        self,
        segments: Sequence[tuple[Segment, NDArray[np.bool_]]],
        before: Collection | None = None,
    ) -> None:
        self.segments = tuple(sorted(segments, key=lambda each: -group_of(len(each[0].rows))))
        """Those of the group of the largest segments first, otherwise as given."""
        self.groups: tuple[Group, ...] = self._grouped(before.groups if before is not None else ())
        self.num_docs = sum(group.num_docs for group in self.groups)
        """Documents, deleted ones included."""
        live = np.concatenate([live for _, live in self.segments] or [np.empty(0, np.bool_)])
        deleted = np.flatnonzero(~live)
        self.num_rows = self.num_docs - len(deleted)
        """Documents that are not deleted."""
        self.lengths = self._drifted(before)
        """Average lengths in use."""
        self._rows = np.concatenate(
            [group.rows for group in self.groups] or [np.empty(0, np.int64)]
        )
        self._top = TopDocuments(self.num_docs, deleted)
        self._looked_up: dict[tuple[str, Boosts], _Found] = {}
        self._num_bytes = 0

    def idf(self, doc_frequency: int) -> float:
        """Returns the inverse document frequency, above 0: ln(1 + (N - df + 0.5) / (df + 0.5))."""
        return math.log1p((self.num_docs - doc_frequency + 0.5) / (doc_frequency + 0.5))

    def doc_frequency(self, term: str, boosts: Boosts) -> int:
        """Returns how many documents hold a term in the field where it is most frequent."""
        return max(
            sum(group.doc_frequency(field, term) for group in self.groups)
            for field, _ in boosts.by_field
        )

    def terms_with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        if len(self.groups) == 1:
            return self.groups[0].with_prefix(field, prefix, limit)
        found = {term for group in self.groups for term in group.with_prefix(field, prefix, limit)}
        return sorted(found)[:limit]

    def look_up(self, term: str, boosts: Boosts) -> _Found:
        """Returns the inverse document frequency of a term, and what it adds to the documents.

        Returns:
            (0, None) if no document holds it in any of the fields.
        """
        found = self._looked_up.get((term, boosts))
        if found is None:
            found = self._gathered(term, boosts)
            self._remember(term, boosts, found)
        return found

    def _remember(self, term: str, boosts: Boosts, found: _Found) -> None:
        num_bytes = ENTRY_BYTES + (found[1].num_bytes if found[1] is not None else 0)
        if self._num_bytes + num_bytes > _MAX_REMEMBERED_BYTES:
            self._looked_up.clear()
            self._num_bytes = 0
        self._looked_up[term, boosts] = found
        self._num_bytes += num_bytes

    def _gathered(self, term: str, boosts: Boosts) -> _Found:
        ranges: list[Impacts] = []
        frequencies: Sequence[int] = ()
        for group in self.groups:
            entry = group.entry(term, boosts, self.lengths)
            if entry.impacts is not None:
                ranges.append(entry.impacts)
                known, new = frequencies, entry.frequencies
                frequencies = list(map(add, known, new)) if known else new
        if not ranges:
            return 0.0, None
        idf = self.idf(max(frequencies))
        return idf, QueryTerm(idf, ranges)

    def warm_up(self, max_terms: int, boosts: Boosts) -> None:
        """Prepares the terms with the most postings in the largest segment, and those of paths."""
        if not self.segments:
            return
        self.terms_with_prefix("path", "", 1)
        largest = max((segment for segment, _ in self.segments), key=lambda each: len(each.rows))
        for term in largest.most_frequent("content", max_terms):
            self.look_up(term, boosts)

    def best(
        self, terms: Sequence[QueryTerm], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Returns the documents with the best sums, best first, ties by row.

        Args:
            terms: From ``look_up``.
            limit: Most documents, at least 1; those without score are left out.
        Returns:
            Rows, scores, and what is left of the scores if no term counts for more than
            ``FULL_IMPACT``.
        """
        docnums, scores = self._top.find(terms, limit)
        rows = self._rows[docnums]
        order = best_first(rows, scores, limit)
        best = scores[order]
        excess = self._top.excess(terms, docnums[order])
        return rows[order], best, best if excess is None else best - excess

    def _grouped(self, before: Sequence[Group]) -> tuple[Group, ...]:
        members: dict[int, list[Segment]] = {}
        for segment, _ in self.segments:
            members.setdefault(group_of(len(segment.rows)), []).append(segment)
        groups: list[Group] = []
        start = 0
        for segments in members.values():
            known = (
                group
                for group in before
                if group.start == start
                and len(group.segments) == len(segments)
                and all(map(_is, group.segments, segments))
            )
            groups.append(next(known, None) or Group(segments, start))
            start += groups[-1].num_docs
        return tuple(groups)

    def _drifted(self, before: Collection | None) -> Lengths:
        averages = tuple(
            sum(segment.total_lengths[field] for segment, _ in self.segments)
            / max(self.num_docs, 1)
            for field in FIELDS
        )
        return before.lengths.drifted_to(averages) if before is not None else Lengths(averages)


def _is(one: object, other: object) -> bool:
    return one is other
