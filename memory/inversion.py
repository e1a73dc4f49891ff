"""Which documents hold each term of some rows?

Rows are inverted, and segments merged, on whole arrays: terms become numbers, a posting becomes one
number made of term and document, and sorting those numbers is all there is to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, compress, count
from typing import TYPE_CHECKING

import numpy as np

from memory.posting_lists import FIELDS, FieldPostings
from memory.segments import quantised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from memory.posting_lists import Segment
    from memory.segments import StoredSegment

MAX_COUNT = 65_535
"""More occurrences of a term in one field of a row count as this many."""
_FEW_DOCS = 2_048


@dataclass(frozen=True, slots=True)
class AnalysedRow:
    """The terms of one row."""

    row: int
    terms: Mapping[str, Sequence[str]]
    """Field name to its terms in any order, repeated as often as they occur."""


class InvertedSegment:
    """A segment in arrays that were made here and are not stored yet.

    Args:
        rows: Row ids by document number, shape (n,), int64.
        lengths: Field to quantised lengths, each shape (n,), float32.
        fields: Field to its postings.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        lengths: Mapping[str, NDArray[np.float32]],
        fields: Mapping[str, FieldPostings],
    ) -> None:
        self.rows = rows
        self.lengths = lengths
        self.total_lengths = {
            field: float(postings.counts.sum(dtype=np.int64)) for field, postings in fields.items()
        }
        self._fields = fields
        self.stored: StoredSegment | None = None
        """The same segment as Whoosh stores it, once it was written."""

    def doc_frequency(self, field: str, term: str) -> int:
        """Returns how many documents hold a term, deleted ones included."""
        postings = self._fields[field]
        place = postings.place(term)
        return 0 if place is None else int(postings.starts[place + 1] - postings.starts[place])

    def postings(
        self, field: str, term: str
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Returns (document numbers, occurrences) of a term, None if it is not there."""
        postings = self._fields[field]
        place = postings.place(term)
        if place is None:
            return None
        inside = slice(postings.starts[place], postings.starts[place + 1])
        docnums = postings.docnums[inside].astype(np.intp)
        return docnums, postings.counts[inside].astype(np.float32)

    def with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        terms = self._fields[field].terms
        first = bisect_left(terms, prefix)
        return [term for term in terms[first : first + limit] if term.startswith(prefix)]

    def most_frequent(self, field: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that most documents hold."""
        postings = self._fields[field]
        order = np.argsort(-np.diff(postings.starts), kind="stable")[:limit]
        return [postings.terms[place] for place in order.tolist()]

    def field_postings(self, field: str) -> FieldPostings:
        """Returns every term of a field."""
        return self._fields[field]


def invert(rows: Sequence[AnalysedRow]) -> InvertedSegment:
    """Returns rows as a segment; document numbers follow their order."""
    texts = {field: [row.terms.get(field, ()) for row in rows] for field in FIELDS}
    lengths = {
        field: np.fromiter((quantised(len(terms)) for terms in texts[field]), np.float32)
        for field in FIELDS
    }
    ids = np.fromiter((row.row for row in rows), np.int64, len(rows))
    return InvertedSegment(ids, lengths, _inverted(texts, len(rows)))


def merge(parts: Sequence[tuple[Segment, NDArray[np.bool_]]]) -> InvertedSegment:
    """Returns the live documents of some segments as one, in their order.

    Args:
        parts: Each segment with a mask of its live documents.
    """
    rows = [segment.rows[live] for segment, live in parts]
    starts = np.cumsum([0, *map(len, rows)])
    numbers = [
        np.where(live, np.cumsum(live) - 1 + start, -1)
        for (_, live), start in zip(parts, starts, strict=False)
    ]
    lengths = {
        field: np.concatenate([segment.lengths[field][live] for segment, live in parts])
        for field in FIELDS
    }
    num_docs = int(starts[-1])
    # All at once takes a third of the time for a few rows, and more memory for many.
    together = [FIELDS] if num_docs <= _FEW_DOCS else [(field,) for field in FIELDS]
    postings: dict[str, FieldPostings] = {}
    for fields in together:
        sides = [{field: segment.field_postings(field) for field in fields} for segment, _ in parts]
        postings |= _merged(list(zip(sides, numbers, strict=True)), num_docs)
    return InvertedSegment(np.concatenate(rows), lengths, postings)


def _inverted(
    texts: Mapping[str, Sequence[Sequence[str]]], num_docs: int
) -> dict[str, FieldPostings]:
    """Returns the postings of all fields; ``texts`` are the terms of a field in each document."""
    keys: list[NDArray[np.int64]] = []
    terms: dict[str, list[str]] = {}
    first = 0
    for field, documents in texts.items():
        sizes = np.fromiter(map(len, documents), np.int64, num_docs)
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        tokens = chain.from_iterable(documents)
        ids = np.fromiter(map(numbers.__getitem__, tokens), np.int64, int(sizes.sum()))
        terms[field] = sorted(numbers)
        ranks = np.empty(len(numbers), np.int64)
        ranks[[numbers[term] for term in terms[field]]] = np.arange(first, first + len(numbers))
        keys.append(ranks[ids] * num_docs + np.repeat(np.arange(num_docs), sizes))
        first += len(numbers)
    distinct, counts = np.unique(np.concatenate(keys), return_counts=True)
    return _by_field(terms, distinct, counts, num_docs)


def _merged(
    parts: Sequence[tuple[Mapping[str, FieldPostings], NDArray[np.intp]]], num_docs: int
) -> dict[str, FieldPostings]:
    """Returns the postings of some fields of several segments.

    Args:
        parts: Each with the new number of each of its documents, -1 for those that are left out.
        num_docs: Documents that are left.
    """
    keys: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.uint16]] = []
    terms: dict[str, list[str]] = {}
    first = 0
    for field in parts[0][0]:
        sides = [(postings[field], new_numbers) for postings, new_numbers in parts]
        terms[field] = sorted(set(chain.from_iterable(postings.terms for postings, _ in sides)))
        ranks = dict(zip(terms[field], count(first)))
        first += len(ranks)
        for postings, new_numbers in sides:
            own = np.fromiter(map(ranks.__getitem__, postings.terms), np.int64, len(postings.terms))
            docnums = new_numbers[postings.docnums]
            kept = docnums >= 0
            owners = np.repeat(own, postings.starts[1:] - postings.starts[:-1])
            keys.append((owners * num_docs + docnums)[kept])
            counts.append(postings.counts[kept])
    every = np.concatenate(keys)
    order = np.argsort(every, kind="stable")
    return _by_field(terms, every[order], np.concatenate(counts)[order], num_docs)


def _by_field(
    terms: Mapping[str, list[str]],
    keys: NDArray[np.int64],
    counts: NDArray[np.integer],
    num_docs: int,
) -> dict[str, FieldPostings]:
    """Returns postings from sorted keys ``term * num_docs + document``; unused terms go.

    Args:
        terms: Field to its terms, sorted; they are numbered through.
        keys: Distinct.
        counts: Occurrences, one a key.
        num_docs: Documents.
    """
    owners, docnums = np.divmod(keys, max(num_docs, 1))
    numbers, times = docnums.astype(np.int32), np.minimum(counts, MAX_COUNT).astype(np.uint16)
    firsts = np.searchsorted(owners, np.arange(sum(map(len, terms.values())) + 1))
    is_used = firsts[1:] > firsts[:-1]
    found: dict[str, FieldPostings] = {}
    first = 0
    for field, names in terms.items():
        end = first + len(names)
        starts, used = firsts[first : end + 1], is_used[first:end]
        if not used.all():
            names = list(compress(names, used.tolist()))  # noqa: PLW2901 - the rest of them
            starts = np.append(starts[:-1][used], starts[-1])
        own = slice(starts[0], starts[-1])
        found[field] = FieldPostings(names, starts - starts[0], numbers[own], times[own])
        first = end
    return found
