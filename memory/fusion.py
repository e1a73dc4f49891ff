"""How do text and vector hits become one ranking with one meaning?

Two questions, two answers. *Order* inside a query: each side divided by its maximum, weighted and
summed (``r``); the noise of a row beyond that of the model is taken off its cosine first. A side
counts less if its best hit is a weak one, and the vectors where the model tells texts apart badly.
*Level* of the whole answer: an absolute measure of its best hit, the probability that not both
sides are wrong, ``1 - (1 - c)(1 - v)``, where ``c`` is how much of the query the row holds and
``v`` the cosine above the noise of the row; then put on a scale where 0.55 is what prompts about
something else do not reach, see ``calibration``. The best hit scores the level, so that a query
about something else stays low although it, too, has a best hit; the others score less, and below
0.55 from ``_LEAST_SHARE`` of its ``r`` on.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from memory.calibration import NEUTRAL, meaning
from memory.text_query import TextHits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_LEAST_SHARE = math.sqrt(0.75)
"""Of the best hit, by the root of ``r``: what has less is not part of the answer."""

_MOST_SIMILAR = 10
_STEEPNESS = 4


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

    def scaled(self) -> Weights:
        """Returns weights of the same ratio, the greater one 1, so that no sum is too large."""
        most = max(self.text, self.vector)
        # However small, a side takes part.
        text, vector = (
            max(weight / most, sys.float_info.min) if weight else 0.0
            for weight in (self.text, self.vector)
        )
        return Weights(text, vector)


@dataclass(frozen=True, slots=True, eq=False)
class VectorSide:
    """Cosines of rows, whoever found them."""

    rows: NDArray[np.int64]
    """Distinct rows, shape (n,): first those of the text side in its order, if it takes part."""
    similarities: NDArray[np.float32]
    """Cosines in [-1, 1], shape (n,)."""
    noise: NDArray[np.float32]
    """Cosine of each row with texts that have nothing to do with it, in [0, 1), shape (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class FusedHits:
    """Hits of both sides, those of the text side first; all arrays have shape (n,)."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    """In [0, 1], comparable between queries."""
    text_scores: NDArray[np.float64]
    """Coverage of the query, in [0, 1]."""
    vector_scores: NDArray[np.float64]
    """Cosine in [-1, 1]; 0 where it is not known."""
    shares: NDArray[np.float64]
    """Root of the share of the best hit that each has, in [0, 1]."""
    level: float
    """Of the best hit, not calibrated, in [0, 1]."""

    def at(self, threshold: float) -> FusedHits:
        """Returns the same hits, scored by another threshold in (0, 1)."""
        return replace(self, scores=_scores(self.shares, meaning(self.level, threshold)))


def fuse(
    text: TextHits | None,
    vectors: VectorSide | None,
    *,
    weights: Weights,
    floor: float,
    noise: float,
    threshold: float = NEUTRAL,
) -> FusedHits:
    """Returns every hit of the sides that take part, with its score (SPEC S5).

    Args:
        text: None if the text side is unavailable; the other side is then scaled up.
        vectors: None if the vector side is unavailable.
        weights: Shares of the sides.
        floor: Least cosine of a hit that only the vector side found (SPEC S4).
        noise: Mean cosine of unrelated texts in a language that the model knows, in [0, 1); that of
            a row is not less.
        threshold: Level that prompts about something else do not reach, in (0, 1).
    Source:
        ARCHITECTURE.md, "Scores".
    """
    weights = _in_proportion(weights)
    text_share = weights.text if text is not None else 0.0
    vector_share = weights.vector if vectors is not None else 0.0
    discernment = 1.0
    text = text if text is not None and text_share else _NO_TEXT
    num_by_text = len(text.rows)
    if vectors is not None and vector_share:
        rows, cosines = vectors.rows, vectors.similarities.astype(np.float64)
        above_noise = cosines - vectors.noise
        kept = (cosines >= floor) & (above_noise > 0)
        kept[:num_by_text] = True
        rows, cosines, above_noise = rows[kept], cosines[kept], above_noise[kept]
        discernment = _discernment(above_noise, vectors.noise[kept], noise)
    else:
        rows, cosines = text.rows, np.zeros(num_by_text)
        above_noise = cosines - noise
    bm25, coverage = np.zeros(len(rows)), np.zeros(len(rows))
    bm25[:num_by_text] = text.scores
    coverage[:num_by_text] = text.coverage

    relevance = np.minimum(np.maximum(above_noise / (1 - noise), 0), 1)
    # The stronger side counts in full, an equal one too, a weaker one less.
    most = max(text_share, vector_share) or 1
    wrong = _power(1 - coverage, text_share / most) * _power(1 - relevance, vector_share / most)
    level = 1 - float(wrong.min(initial=1))
    similar = np.maximum(above_noise + noise, 0)
    text_share *= math.sqrt(coverage.max(initial=0))
    vector_share *= math.sqrt(relevance.max(initial=0)) * discernment
    ranks = _scaled(bm25, text_share) + _scaled(similar, vector_share)
    shares = np.sqrt(_scaled(ranks, 1))
    scores = _scores(shares, meaning(level, threshold))
    return FusedHits(rows, scores, coverage, cosines, shares, level)


def best_of(answers: Sequence[FusedHits]) -> tuple[FusedHits, NDArray[np.int64]]:
    """Returns each hit of several answers once, as the one that scores it most says.

    Args:
        answers: Of the same index, at least one.

    Returns:
        The hits, and for each the number of its answer, shape (n,); of equals the first one.
    """
    lengths = [len(answer.rows) for answer in answers]
    numbers = np.repeat(np.arange(len(answers)), lengths)
    rows = np.concatenate([answer.rows for answer in answers])
    scores = np.concatenate([answer.scores for answer in answers])
    order = np.lexsort((numbers, -scores, rows))
    kept = order[np.diff(rows[order], prepend=-1) > 0]
    best = FusedHits(
        rows[kept],
        scores[kept],
        np.concatenate([answer.text_scores for answer in answers])[kept],
        np.concatenate([answer.vector_scores for answer in answers])[kept],
        np.concatenate([answer.shares for answer in answers])[kept],
        max(answer.level for answer in answers),
    )
    return best, numbers[kept]


def _discernment(
    above_noise: NDArray[np.float64], noise: NDArray[np.float32], base: float
) -> float:
    """Returns how well the model tells the most similar rows from others, in (0, 1].

    1 in a language that it knows. Their order says the less the narrower the range is that their
    cosines can be in.
    """
    if len(noise) > _MOST_SIMILAR:
        noise = noise[above_noise.argpartition(-_MOST_SIMILAR)[-_MOST_SIMILAR:]]
    elif not len(noise):
        return 1.0
    return min(1.0, (1 - float(noise.mean())) / (1 - base)) ** _STEEPNESS


def _scores(shares: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Returns scores in the order of ``shares``, shape (n,); that of the best is the level."""
    if level <= NEUTRAL:
        return shares * level
    return np.interp(shares, (0, _LEAST_SHARE, 1), (0, NEUTRAL, level))


@lru_cache(maxsize=8)
def _in_proportion(weights: Weights) -> Weights:
    """Returns ``weights.scaled()``, which takes a tenth of a fusion and is always the same."""
    return weights.scaled()


_NO_SCORES = np.empty(0, np.float32)
_NO_TEXT = TextHits(np.empty(0, np.int64), _NO_SCORES, _NO_SCORES, ())


def _power(values: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Returns powers; to raise to the first takes as long as to any other."""
    powers: NDArray[np.float64] = values if exponent == 1 else values**exponent
    return powers


def _scaled(values: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """Returns values of at least zero in proportion, the greatest of them as ``most``."""
    scaled: NDArray[np.float64] = values * (most / (values.max(initial=0) or 1))
    return scaled
