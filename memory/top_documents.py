"""Which documents have the highest sums of impacts?

What the terms add is summed up for all documents, then the best are found through the maxima of
blocks. To skip the frequent terms for documents without a chance (MaxScore, Turtle & Flood 1995)
does not pay: to add one to 100,000 documents takes 13 microseconds, to find out who has a chance
four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BLOCK = 32
_SMALL_BLOCK = 16
_FEW = 32_768
"""Documents up to which a look at each takes less time than to find those of some blocks."""
_FOLD = 8


@dataclass(frozen=True, slots=True, eq=False)
class Impacts:
    """What one term adds to the scores of the documents of one range, idf apart."""

    start: int
    """First document number of the range."""
    docnums: NDArray[np.intp] | None
    """Distinct numbers of the documents that hold the term, relative to ``start``; None if
    ``values`` has an entry for each document of the range."""
    values: NDArray[np.float32]
    excess: tuple[NDArray[np.intp], NDArray[np.float32]] | None = None
    """Documents of the collection where the term adds more than counts in full, and by how much;
    None if there are none."""

    @property
    def num_bytes(self) -> int:
        """Memory it takes."""
        listed = 0 if self.docnums is None else self.docnums.nbytes
        return self.values.nbytes + listed + sum(each.nbytes for each in self.excess or ())


@dataclass(frozen=True, slots=True, eq=False)
class QueryTerm:
    """A term of a query with its impacts on all documents."""

    scale: float
    """Everything that is the same for all documents, at least 0."""
    ranges: Sequence[Impacts]
    """Of disjoint ranges of documents."""

    @property
    def num_bytes(self) -> int:
        """Memory it takes."""
        return sum(impacts.num_bytes for impacts in self.ranges)


def best_first(
    numbers: NDArray[np.int64], values: NDArray[np.float32], limit: int
) -> NDArray[np.intp]:
    """Returns the order of at most ``limit`` values from the greatest on, ties by number.

    Args:
        numbers: Distinct, in [0, 2**32), shape (n,).
        values: Positive, shape (n,).
        limit: At least 1.
    """
    # Positive floats sort as their bits do, and one sort of integers takes half as long as two.
    keys = values.view(np.int32).astype(np.int64)
    keys <<= 32
    keys -= numbers
    return keys.argsort()[::-1][:limit]


class TopDocuments:
    """Finds the best documents of one collection.

    Args:
        num_docs: Documents, deleted ones included.
        deleted: Numbers of the deleted ones.
    """

    def __init__(self, num_docs: int, deleted: NDArray[np.intp]) -> None:
        self._num_docs = num_docs
        self._deleted = deleted
        # Scores, all zero between searches, and products. Each search takes a pair of its own, so
        # that they may run side by side.
        self._spare: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []

    def find(
        self, terms: Sequence[QueryTerm], limit: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Returns the documents with the ``limit`` best scores and all that tie with the last.

        Args:
            terms: What to add up.
            limit: At least 1.

        Returns:
            Document numbers in no order, and their scores, all positive.
        """
        scores, products = self._arrays()
        _add(terms, scores, products)
        scores[self._deleted] = 0
        docnums = promising(scores, limit)
        values = scores[docnums]
        scores.fill(0)
        self._spare.append((scores, products))
        return _cut(docnums, values, limit)

    def excess(
        self, terms: Sequence[QueryTerm], docnums: NDArray[np.intp]
    ) -> NDArray[np.float32] | None:
        """Returns by how much terms add more than counts in full; None if nowhere.

        Args:
            terms: Those of ``find``.
            docnums: What it returned.

        Returns:
            One value a document, at least 0.
        """
        beyond = [
            (impacts.excess, term.scale)
            for term in terms
            for impacts in term.ranges
            if impacts.excess is not None
        ]
        if not beyond:
            return None
        sums, products = self._arrays()
        places = np.concatenate([where for (where, _), _ in beyond])
        np.add.at(sums, places, np.concatenate([values * scale for (_, values), scale in beyond]))
        found: NDArray[np.float32] = sums[docnums]
        sums[places] = 0
        self._spare.append((sums, products))
        return found

    def _arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        try:
            return self._spare.pop()
        except IndexError:
            return np.zeros(self._num_docs, np.float32), np.zeros(self._num_docs, np.float32)


def _add(
    terms: Sequence[QueryTerm], scores: NDArray[np.float32], products: NDArray[np.float32]
) -> None:
    """Adds what the terms add to the scores of all documents, in place; overwrites ``products``."""
    docnums: list[NDArray[np.intp]] = []
    values: list[NDArray[np.float32]] = []
    scales: list[float] = []
    # Equal documents of different ranges get equal sums only if the order is the same for all.
    for term in sorted(terms, key=_is_listed):
        for impacts in term.ranges:
            if impacts.docnums is None:
                scaled = products[: len(impacts.values)]
                np.multiply(impacts.values, np.float32(term.scale), out=scaled)
                scores[impacts.start : impacts.start + len(scaled)] += scaled
            else:
                start = impacts.start
                docnums.append(impacts.docnums + start if start else impacts.docnums)
                values.append(impacts.values)
                scales.append(term.scale)
    if docnums:
        # All lists at once: most are short, and each call of NumPy takes a microsecond.
        impact = np.concatenate(values)
        impact *= np.array(scales, np.float32).repeat(list(map(len, values)))
        np.add.at(scores, np.concatenate(docnums), impact)


def _is_listed(term: QueryTerm) -> bool:
    return all(impacts.docnums is not None for impacts in term.ranges)


def promising(scores: NDArray[np.float32], limit: int, *, tie: float = 0.0) -> NDArray[np.intp]:
    """Returns at least the documents with the ``limit`` best scores and their ties, in no order.

    Only blocks whose maximum is so high can hold one of them; documents without score are left out.

    Args:
        scores: One a document.
        limit: At least 1.
        tie: Scores that differ by no more count as equal.
    """
    is_small = len(scores) < _FEW
    maxima = _block_maxima(scores, _SMALL_BLOCK if is_small else _BLOCK)
    if limit > len(maxima) or (least := _threshold(maxima, limit) - tie) <= 0:
        return (scores > 0).nonzero()[0]
    if is_small:
        return (scores >= least).nonzero()[0]
    blocks = (maxima >= least).nonzero()[0]
    inside = (blocks + (np.arange(_BLOCK) * len(maxima))[:, None]).ravel()
    candidates = np.concatenate((inside, np.arange(len(maxima) * _BLOCK, len(scores))))
    return candidates[scores[candidates] >= least]


def _threshold(maxima: NDArray[np.float32], limit: int) -> float:
    """Returns a score that at least ``limit`` documents reach, near to the best such."""
    while len(maxima) > 2 * _FOLD * limit:
        maxima = _block_maxima(maxima, _FOLD)
    return float(np.partition(maxima, len(maxima) - limit)[len(maxima) - limit])


def _block_maxima(values: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """Returns the maximum of each block, shape (len(values) // size,); what is left over is not in.

    The members of a block do not lie side by side but a stride apart, so that the maxima of all
    blocks are the maximum of a few long arrays.
    """
    num_blocks = len(values) // size
    maxima: NDArray[np.float32] = values[: num_blocks * size].reshape(size, num_blocks).max(axis=0)
    return maxima


def _cut(
    docnums: NDArray[np.intp], values: NDArray[np.float32], limit: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Returns what is not worse than the ``limit``-th best; all values are positive."""
    if len(values) <= limit:
        return docnums, values
    least = np.partition(values, len(values) - limit)[len(values) - limit]
    kept = values >= least
    return docnums[kept], values[kept]
