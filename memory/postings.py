"""How much does each document count for a term?

Scores BM25F as Whoosh defines it - the weighted sum of the BM25 of each field - but on arrays: the
postings of a term are read once per segment and kept together with their term-frequency factor, so
that a query is a handful of vector additions. One thing differs: the inverse document frequency is
Lucene's and the same for all fields of a term, taken where the term is most frequent, because a
common word that is rare in headings is common all the same. Document counts and average lengths
include deleted documents until their segment is merged, as in Whoosh.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from memory.segments import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from memory.segments import StoredSegment

K1 = 0.9
"""How soon further occurrences of a term stop to count (Robertson & Zaragoza 2009)."""
B = 0.4
"""How much long fields are held against their terms, in [0, 1]; both as in Anserini."""

_DENSE_SHARE = 20
_DENSE_MIN_DOCS = 1024
_BLOCK = 128
_MAX_CACHED_TERMS = 50_000
_MAX_CACHED_POSTINGS = 8_000_000


class TermPostings:
    """Postings of one term in one field of one segment, with their factors.

    Args:
        docnums: Document numbers, ascending, shape (df,), intp.
        weights: Occurrences in each of them, shape (df,), float32.
        num_docs: Documents of the segment.
    """

    __slots__ = ("_docnums", "_factors", "_is_dense", "_num_docs", "_weights", "doc_frequency")

    def __init__(
        self, docnums: NDArray[np.intp], weights: NDArray[np.float32], num_docs: int
    ) -> None:
        self.doc_frequency = len(docnums)
        self._docnums = docnums
        self._weights = weights
        self._num_docs = num_docs
        self._is_dense = num_docs >= _DENSE_MIN_DOCS and len(docnums) * _DENSE_SHARE > num_docs
        # One tuple, so that searches in two threads never mix a length with other factors.
        self._factors = (-1.0, weights)

    def add_to(
        self,
        scores: NDArray[np.float32],
        scale: float,
        *,
        lengths: NDArray[np.float32],
        average_length: float,
    ) -> None:
        """Adds ``scale`` times the factor of each document, in place.

        Args:
            scores: Scores of the documents of the segment, shape (num_docs,), float32.
            scale: Everything that is the same for all documents.
            lengths: Length of the field in each document, shape (num_docs,), float32.
            average_length: Its mean over the whole index.
        """
        known_length, factors = self._factors
        if average_length != known_length:
            factors = self._computed_factors(lengths, average_length)
            self._factors = (average_length, factors)
        if self._is_dense:
            scores += factors * np.float32(scale)
        else:
            # Document numbers are distinct, so the buffered addition loses nothing.
            scores[self._docnums] += factors * np.float32(scale)

    def _computed_factors(
        self, lengths: NDArray[np.float32], average_length: float
    ) -> NDArray[np.float32]:
        """Returns w / (w + k1 (1 - b + b l / avg l)), one a posting, or one a document if dense."""
        norms = np.float32(K1 * B / average_length) * lengths[self._docnums]
        norms += np.float32(K1 * (1 - B))
        factors = np.divide(self._weights, self._weights + norms, dtype=np.float32)
        if not self._is_dense:
            return factors
        row = np.zeros(self._num_docs, np.float32)
        row[self._docnums] = factors
        return row


class SegmentPostings:
    """Postings of one immutable segment, read on first use and kept within bounds."""

    def __init__(self, stored: StoredSegment) -> None:
        self.stored = stored
        self._cache: dict[tuple[str, str], TermPostings] = {}
        self._num_postings = 0

    def get(self, field: str, term: str) -> TermPostings | None:
        """Returns the postings of a term, None if the segment does not hold it."""
        known = self._cache.get((field, term))
        if known is not None:
            return known
        found = self.stored.terms.postings(field, term)
        if found is None:
            return None
        if len(self._cache) > _MAX_CACHED_TERMS or self._num_postings > _MAX_CACHED_POSTINGS:
            self._cache.clear()
            self._num_postings = 0
        self._num_postings += len(found[0])
        postings = TermPostings(*found, self.stored.num_docs)
        self._cache[field, term] = postings
        return postings


class Collection:
    """The documents of some segments, numbered through; never changes.

    Args:
        segments: Each segment with a mask of its documents that are not deleted.
    """

    def __init__(self, segments: Sequence[tuple[SegmentPostings, NDArray[np.bool_]]]) -> None:
        self.segments = tuple(segments)
        sizes = [segment.stored.num_docs for segment, _ in segments]
        self._starts = [0, *accumulate(sizes)]
        self.num_docs: int = self._starts[-1]
        """Documents, deleted ones included."""
        self._deleted = np.concatenate(
            [
                np.flatnonzero(~live) + start
                for (_, live), start in zip(segments, self._starts, strict=False)
            ]
            or [np.empty(0, np.intp)]
        )
        self._rows = np.concatenate(
            [segment.stored.rows for segment, _ in segments] or [np.empty(0, np.int64)]
        )
        self._average_lengths = {
            field: sum(segment.stored.total_lengths[field] for segment, _ in segments)
            / max(self.num_docs, 1)
            for field in FIELDS
        }

    @property
    def num_rows(self) -> int:
        """Documents that are not deleted."""
        return self.num_docs - len(self._deleted)

    def zeros(self) -> NDArray[np.float32]:
        """Returns a score of 0 for each document, shape (num_docs,), float32."""
        return np.zeros(self.num_docs, np.float32)

    def doc_frequency(self, term: str) -> int:
        """Returns how many documents hold a term in the field where it is most frequent."""
        return max(
            sum(segment.stored.terms.doc_frequency(field, term) for segment, _ in self.segments)
            for field in FIELDS
        )

    def terms_with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        found = {
            term
            for segment, _ in self.segments
            for term in segment.stored.terms.with_prefix(field, prefix, limit)
        }
        return sorted(found)[:limit]

    def idf(self, doc_frequency: int) -> float:
        """Returns the inverse document frequency, above 0: ln(1 + (N - df + 0.5) / (df + 0.5))."""
        return math.log1p((self.num_docs - doc_frequency + 0.5) / (doc_frequency + 0.5))

    def add_term(
        self, scores: NDArray[np.float32], term: str, boosts: Mapping[str, float]
    ) -> float:
        """Adds the BM25F of a term to the scores of all documents, in place.

        Args:
            scores: Shape (num_docs,), float32.
            term: As the analyzer made it.
            boosts: Field to its weight; other fields are not looked at.
        Returns:
            The inverse document frequency of the term; 0 if no document holds it.
        """
        found = {field: self._postings(field, term) for field in boosts}
        doc_frequency = max(
            sum(postings.doc_frequency for *_, postings in segments) for segments in found.values()
        )
        if not doc_frequency:
            return 0.0
        idf = self.idf(doc_frequency)
        for field, segments in found.items():
            for start, segment, postings in segments:
                postings.add_to(
                    scores[start : start + segment.num_docs],
                    boosts[field] * idf * (K1 + 1),
                    lengths=segment.lengths[field],
                    average_length=self._average_lengths[field],
                )
        return idf

    def _postings(self, field: str, term: str) -> list[tuple[int, StoredSegment, TermPostings]]:
        """Returns (first document number, segment, postings) of the segments that hold a term."""
        return [
            (start, segment.stored, postings)
            for (segment, _), start in zip(self.segments, self._starts, strict=False)
            if (postings := segment.get(field, term))
        ]

    def best(
        self, scores: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns (rows, scores) of the best documents, best first, ties by row.

        Args:
            scores: As ``zeros`` and ``add_term`` made them; deleted documents are set to 0.
            limit: Most documents, at least 1; those without score are left out.
        """
        scores[self._deleted] = 0
        candidates = _positive(scores, limit)
        values = scores[candidates]
        if len(candidates) > limit:
            # Everything that ties with the last one stays, so that the order decides.
            least = np.partition(values, len(values) - limit)[len(values) - limit]
            candidates, values = candidates[values >= least], values[values >= least]
        rows = self._rows[candidates]
        order = np.lexsort((rows, -values))[:limit]
        return rows[order], values[order]


def _positive(scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Returns where scores are positive, at least for the ``limit`` best and their ties.

    Only blocks whose maximum is among the ``limit`` best maxima can hold one of the best scores.
    """
    num_blocks = len(scores) // _BLOCK
    if limit >= num_blocks:
        return np.flatnonzero(scores > 0)
    split = num_blocks * _BLOCK
    maxima = scores[:split].reshape(num_blocks, _BLOCK).max(axis=1)
    least = max(float(np.partition(maxima, num_blocks - limit)[num_blocks - limit]), 0.0)
    blocks = np.flatnonzero((maxima >= least) & (maxima > 0))
    inside = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
    candidates = np.concatenate((inside, np.arange(split, len(scores))))
    return candidates[scores[candidates] > 0]
