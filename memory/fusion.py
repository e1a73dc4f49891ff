"""How do text and vector hits become one ranking with one meaning?

Two questions, two answers. *Order* inside a query: each side divided by its maximum, weighted and
summed (``r``). *Level* of the whole answer: an absolute measure of its best hit, the probability
that not both sides are wrong, ``1 - (1 - c)(1 - v)``, where ``c`` is the share of the BM25 score
that the query could reach at best and ``v`` the cosine above what unrelated texts have anyway. A
score is ``sqrt(r)`` times level, so that a query about something else stays low although it, too,
has a best hit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Weights:
    """Share of each side; only their ratio matters, and zero means that a side takes no part."""

    text: float = 0.5
    vector: float = 0.5

    def __post_init__(self) -> None:
        """Refuses weights that are negative, not finite, or both zero."""
        valid = all(math.isfinite(weight) and weight >= 0 for weight in (self.text, self.vector))
        if not valid or self.text + self.vector == 0:
            raise ValueError(f"weights {self.text} and {self.vector}: need one above zero")


@dataclass(frozen=True, slots=True, eq=False)
class TextSide:
    """What the text index found."""

    rows: NDArray[np.int64]
    """Distinct rows, shape (n,)."""
    scores: NDArray[np.float32]
    """BM25, at least 0, shape (n,)."""
    best_possible: float
    """BM25 that no chunk can exceed for this query, above 0."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorSide:
    """Cosines of rows, whoever found them."""

    rows: NDArray[np.int64]
    """Distinct rows, shape (n,)."""
    similarities: NDArray[np.float32]
    """Cosines in [-1, 1], shape (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class FusedHits:
    """Hits of both sides in ascending order of rows; all arrays have shape (n,)."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    """In [0, 1], comparable between queries."""
    text_scores: NDArray[np.float64]
    """Share of the best possible BM25, in [0, 1]."""
    vector_scores: NDArray[np.float64]
    """Cosine in [-1, 1]; 0 where it is not known."""


def fuse(
    text: TextSide | None,
    vectors: VectorSide | None,
    *,
    weights: Weights,
    floor: float,
    noise: float,
) -> FusedHits:
    """Returns every hit of the sides that take part, with its score (SPEC S5).

    Args:
        text: None if the text side is unavailable; the other side is then scaled up.
        vectors: None if the vector side is unavailable.
        weights: Shares of the sides.
        floor: Least cosine of a hit that only the vector side found (SPEC S4).
        noise: Mean cosine of unrelated texts, in [0, 1).
    Source:
        ARCHITECTURE.md, "Scores".
    """
    text_share = weights.text if text is not None else 0.0
    vector_share = weights.vector if vectors is not None else 0.0
    text = text if text is not None and text_share else _NO_TEXT
    vectors = vectors if vectors is not None and vector_share else _NO_VECTORS
    rows = _union(text.rows, vectors.rows)
    bm25, cosines = np.zeros(len(rows)), np.zeros(len(rows))
    cosines[rows.searchsorted(vectors.rows)] = vectors.similarities
    kept = cosines >= floor
    places = rows.searchsorted(text.rows)
    bm25[places] = text.scores
    kept[places] = True
    chosen = kept.nonzero()[0]
    rows, bm25, cosines = rows[chosen], bm25[chosen], cosines[chosen]

    coverage = np.minimum(bm25 / text.best_possible, 1)
    relevance = np.minimum(np.maximum((cosines - noise) / (1 - noise), 0), 1)
    # The stronger side counts in full, an equal one too, a weaker one less.
    most = max(text_share, vector_share) or 1
    wrong = _power(1 - coverage, text_share / most) * _power(1 - relevance, vector_share / most)
    level = 1 - wrong.min(initial=1)
    ranks = _scaled(bm25, text_share) + _scaled(np.maximum(cosines, 0), vector_share)
    ranks /= text_share + vector_share or 1
    return FusedHits(rows, np.sqrt(ranks) * level, coverage, cosines)


_NO_TEXT = TextSide(np.empty(0, np.int64), np.empty(0, np.float32), 1.0)
_NO_VECTORS = VectorSide(np.empty(0, np.int64), np.empty(0, np.float32))


def _union(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the distinct rows, ascending; ``np.union1d`` takes several times as long."""
    every = np.concatenate((one, other))
    every.sort()
    first = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=first[1:])
    return every[first]


def _power(values: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Returns powers; to raise to the first takes as long as to any other."""
    powers: NDArray[np.float64] = values if exponent == 1 else values**exponent
    return powers


def _scaled(values: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """Returns values of at least zero in proportion, the greatest of them as ``most``."""
    scaled: NDArray[np.float64] = values * (most / (values.max(initial=0) or 1))
    return scaled
