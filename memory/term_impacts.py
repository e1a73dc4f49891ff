"""What does a term add to each document of a group of segments?

Scores BM25F as Whoosh defines it - the weighted sum of the BM25 of each field - but on arrays: what
a term adds to each document, in all fields together and idf apart, is computed once for a group of
segments and kept, so that a query is a handful of vector additions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from sys import maxsize
from typing import TYPE_CHECKING

import numpy as np

from memory.posting_lists import FIELDS
from memory.top_documents import Impacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from memory.posting_lists import Segment

K1 = 0.9
"""How soon further occurrences of a term stop to count (Robertson & Zaragoza 2009)."""
B = 0.4
"""How much long fields are held against their terms, in [0, 1]; both as in Anserini."""

FULL_IMPACT = 1.4
"""What a term adds to a document that has it between two and three times in one field of average
length, idf apart. More of it, in this field or in others, does not say that the document holds more
of a query."""

_MAX_DRIFT = 1.5e-4
"""Average lengths may move by this share before impacts are computed anew. A score then moves by at
most half of it, unless a field is many times longer than the average."""
_DENSE_SHARE = 8
_MIN_DENSE_DOCS = 1024
_CACHED_BYTES = 128 * 1024 * 1024
_CACHED_BYTES_A_DOC = 1024
"""A frequent term takes 4 bytes a document and 6 for each that holds it, and questions hold about a
hundred such. With room for half of them each question evicts what the next one needs."""
ENTRY_BYTES = 400
"""Memory of an entry without its arrays, about."""
GROUP_SIZES = (512, 8_192)
"""Documents from which on a segment belongs to the next group."""


@dataclass(frozen=True, slots=True, eq=False)
class Boosts:
    """Fields to look into, and what a match in each counts; two of them are never equal."""

    by_field: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Average lengths that impacts were computed with."""

    averages: tuple[float, ...]
    """One for each of ``FIELDS``."""

    def drifted_to(self, averages: tuple[float, ...]) -> Lengths:
        """Returns itself, or the new averages if they are too far away."""
        near = all(
            abs(new - old) <= _MAX_DRIFT * old
            for old, new in zip(self.averages, averages, strict=True)
        )
        return self if near else Lengths(averages)

    def of(self, field: str) -> float:
        """Returns the average length of a field."""
        return self.averages[FIELDS.index(field)]


@dataclass(frozen=True, slots=True, eq=False)
class _Matches:
    """The documents of one group that hold a term in one field."""

    field: str
    boost: float
    docnums: NDArray[np.int32]
    """Distinct, relative to the group."""
    counts: NDArray[np.uint16]
    """Occurrences in each."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """One term in one group."""

    impacts: Impacts | None
    """None if no document holds the term."""
    frequencies: tuple[int, ...]
    """Documents that hold the term in each field of the boosts."""
    lengths: Lengths
    matches: Sequence[_Matches]
    """Of the fields where there are some; average lengths drift, and to read them again takes
    several times as long as to weigh them."""

    @property
    def num_bytes(self) -> int:
        """Memory it takes."""
        impacts = self.impacts
        if impacts is None:
            return ENTRY_BYTES
        kept = sum(each.docnums.nbytes + each.counts.nbytes for each in self.matches)
        return ENTRY_BYTES + impacts.num_bytes + kept


class Group:
    """Segments of similar size, with the impacts of the terms that were asked for.

    Never changes but for what it remembers. Deleted documents are not its business.

    Args:
        segments: In the order of their document numbers.
        start: Document number of the first.
    """

    def __init__(self, segments: Sequence[Segment], start: int) -> None:
        self.segments = tuple(segments)
        self.start = start
        sizes = [len(segment.rows) for segment in segments]
        self._starts = list(accumulate(sizes, initial=0))
        self.rows = np.concatenate([segment.rows for segment in segments])
        """Row ids by document number."""
        self.num_docs: int = self._starts[-1]
        self._entries: OrderedDict[tuple[str, Boosts], _Entry] = OrderedDict()
        self._num_bytes = 0
        self._most_bytes = max(_CACHED_BYTES, _CACHED_BYTES_A_DOC * self.num_docs)
        self._lengths_of: dict[str, NDArray[np.float32]] = {}

    def entry(self, term: str, boosts: Boosts, lengths: Lengths) -> _Entry:
        """Returns what the group knows of a term, computed on first use."""
        key = (term, boosts)
        known = self._entries.get(key)
        if known is not None and known.lengths is lengths:
            self._entries.move_to_end(key)
            return known
        if known is None:
            matches = self._matches(term, boosts)
            entry = self._weighed(matches, _frequencies(matches, boosts), lengths)
        else:
            entry = self._weighed(known.matches, known.frequencies, lengths, known.impacts)
        if known is not None:
            self._num_bytes -= known.num_bytes
        self._entries[key] = entry
        self._num_bytes += entry.num_bytes
        while self._num_bytes > self._most_bytes:
            _key, oldest = self._entries.popitem(last=False)
            self._num_bytes -= oldest.num_bytes
        return entry

    def doc_frequency(self, field: str, term: str) -> int:
        """Returns how many documents hold a term, deleted ones included."""
        return sum(segment.doc_frequency(field, term) for segment in self.segments)

    def with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        if len(self.segments) == 1:
            return self.segments[0].with_prefix(field, prefix, limit)
        if field != "path" or self.num_docs < _MIN_DENSE_DOCS:
            lists = (segment.with_prefix(field, prefix, limit) for segment in self.segments)
            return sorted(set(chain.from_iterable(lists)))[:limit]
        terms = self._path_terms
        first = bisect_left(terms, prefix)
        return [term for term in terms[first : first + limit] if term.startswith(prefix)]

    @cached_property
    def _path_terms(self) -> list[str]:
        """Sorted. Nearly every query asks for some, and to ask many segments takes too long."""
        lists = (segment.with_prefix("path", "", maxsize) for segment in self.segments)
        return sorted(set(chain.from_iterable(lists)))

    def _matches(self, term: str, boosts: Boosts) -> list[_Matches]:
        """Reads where a term stands."""
        every: list[_Matches] = []
        for field, boost in boosts.by_field:
            docnums, counts = [], []
            for start, segment in zip(self._starts, self.segments, strict=False):
                found = segment.postings(field, term)
                if found is not None:
                    docnums.append(found[0] + start if start else found[0])
                    counts.append(found[1])
            if docnums:
                numbers, times = np.concatenate(docnums), np.concatenate(counts)
                every.append(
                    _Matches(field, boost, numbers.astype(np.int32), times.astype(np.uint16))
                )
        return every

    def _weighed(
        self,
        matches: Sequence[_Matches],
        frequencies: tuple[int, ...],
        lengths: Lengths,
        before: Impacts | None = None,
    ) -> _Entry:
        """Adds up what a term counts in all fields; ``before``: the same, weighed otherwise."""
        if not matches:
            return _Entry(None, frequencies, lengths, matches)
        values = [self._factors(each, lengths) for each in matches]
        docnums = before.docnums if before is not None else self._distinct(matches)
        if docnums is not None and len(matches) == 1:
            sums = values[0]
        else:
            sums = np.zeros(self.num_docs if docnums is None else len(docnums), np.float32)
            for each, factors in zip(matches, values, strict=True):
                if docnums is None:
                    sums[each.docnums] += factors
                else:
                    sums[np.searchsorted(docnums, each.docnums + self.start)] += factors
        start = self.start if docnums is None else 0
        excess = self._excess(docnums, sums)
        return _Entry(Impacts(start, docnums, sums, excess), frequencies, lengths, matches)

    def _excess(
        self,
        docnums: NDArray[np.intp] | None,
        sums: NDArray[np.float32],
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Returns where the fields of a document add more than ``FULL_IMPACT``, see Impacts."""
        places = (sums > FULL_IMPACT).nonzero()[0]
        if not len(places):
            return None
        beyond = sums[places] - np.float32(FULL_IMPACT)
        return (places + self.start if docnums is None else docnums[places]), beyond

    def _distinct(self, matches: Sequence[_Matches]) -> NDArray[np.intp] | None:
        """Returns the documents of the index that hold a term, ascending; None if they are many."""
        count = sum(len(each.docnums) for each in matches)
        if self.num_docs >= _MIN_DENSE_DOCS and count * _DENSE_SHARE > self.num_docs:
            return None
        every = np.concatenate([each.docnums for each in matches]).astype(np.intp) + self.start
        if len(matches) == 1:
            return every
        every.sort()
        # Not np.unique, which imports much that a cold search can do without.
        is_first = np.ones(len(every), np.bool_)
        np.not_equal(every[1:], every[:-1], out=is_first[1:])
        return every[is_first]

    def _factors(self, matches: _Matches, lengths: Lengths) -> NDArray[np.float32]:
        """Returns boost · (k1 + 1) · w / (w + k1 (1 - b + b l / avg l)) of each document."""
        weights = matches.counts.astype(np.float32)
        average = lengths.of(matches.field)
        norms = np.float32(K1 * B / average) * self._lengths(matches.field)[matches.docnums]
        norms += np.float32(K1 * (1 - B))
        norms += weights
        weights *= np.float32(matches.boost * (K1 + 1))
        weights /= norms
        return weights

    def _lengths(self, field: str) -> NDArray[np.float32]:
        """Returns the number of terms of each document in a field."""
        known = self._lengths_of.get(field)
        if known is None:
            known = np.concatenate([segment.lengths[field] for segment in self.segments])
            self._lengths_of[field] = known
        return known


def _frequencies(matches: Sequence[_Matches], boosts: Boosts) -> tuple[int, ...]:
    found = {each.field: len(each.docnums) for each in matches}
    return tuple(found.get(field, 0) for field, _ in boosts.by_field)


def group_of(num_docs: int) -> int:
    """Returns the number of the group that a segment of so many documents belongs to."""
    return sum(num_docs >= size for size in GROUP_SIZES)
