"""How far may a mean, a rate or a difference be from what more questions would show?

All intervals are of 95 %. The bootstrap is that of percentiles, with a generator of a fixed seed,
so that the same values give the same interval. It knows only what it saw: three questions that are
all answered would give an interval without width. So few values, and those that are 0 or 1, get the
interval of Wilson.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_SEED = 20_251
_NUM_RESAMPLES = 2000
_VALUES_AT_ONCE = 1 << 20
_PERCENTILES = (2.5, 97.5)
_Z = 1.959964
FEW = 30
"""Fewer values do not show how far values may lie apart."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and where it may be."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two means over the same questions, and where it may be."""

    difference: float
    low: float
    high: float

    @property
    def within_noise(self) -> bool:
        """Whether there may be no difference at all."""
        return self.low <= 0 <= self.high


def mean_interval(values: Sequence[float]) -> Interval:
    """Returns the mean of at least one value in [0, 1], with its interval.

    No values in [0, 1] of the same mean vary more than 0s and 1s, so for few values the interval of
    a rate is rather too wide than too narrow.

    Raises:
        ValueError: there is no value, or one outside.
    """
    known = np.asarray(values, np.float64)
    if len(known) < FEW or np.isin(known, (0, 1)).all():
        return rate_interval(float(known.sum()), len(known))
    return Interval(float(known.mean()), *_bootstrap(known))


def rate_interval(num_hits: float, total: int) -> Interval:
    """Returns a share of at least one trial, with its interval; wide even if it is 0 or 1.

    Args:
        num_hits: Trials that hit; some may count in part.
        total: All trials.

    Raises:
        ValueError: there is no trial, or the hits are not among them.

    Source:
        Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    if not 0 <= num_hits <= total or not total:
        raise ValueError(f"{num_hits} of {total}")
    rate, ratio = num_hits / total, _Z**2 / total
    middle = (rate + ratio / 2) / (1 + ratio)
    half = math.sqrt(rate * (1 - rate) * ratio + ratio**2 / 4) / (1 + ratio)
    # Rounding must not push the ends beyond the rate, which is an end where it is 0 or 1.
    return Interval(rate, max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate)))


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Difference:
    """Returns the mean of ``values`` minus that of ``others``, both of the same questions.

    Questions are drawn with both their values, so what makes a question hard for both sides does
    not widen the interval.

    Raises:
        ValueError: there is no value, or not the same number on both sides.
    """
    if len(values) != len(others):
        raise ValueError(f"{len(values)} values and {len(others)} others")
    differences = np.asarray(values, np.float64) - np.asarray(others, np.float64)
    low, high = _bootstrap(differences)
    return Difference(float(np.mean(differences)), low, high)


def _bootstrap(values: NDArray[np.float64]) -> tuple[float, float]:
    if not len(values):
        raise ValueError("no values")
    means = np.concatenate(list(_resampled_means(values)))
    low, high = np.percentile(means, _PERCENTILES)
    return float(low), float(high)


def _resampled_means(values: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yields the means of samples drawn with replacement, in blocks that fit into memory."""
    generator = np.random.default_rng(_SEED)
    block = max(1, _VALUES_AT_ONCE // len(values))
    for start in range(0, _NUM_RESAMPLES, block):
        num_samples = min(block, _NUM_RESAMPLES - start)
        drawn = generator.integers(len(values), size=(num_samples, len(values)))
        yield values[drawn].mean(axis=1)
