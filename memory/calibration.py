"""What do cosines and levels mean with this model, in this workspace?

Prompts that have nothing to do with the workspace tell what is noise. Two things are measured:

- *Noise of a row*: its mean cosine with the prompts most similar to it. With a model that does not
  know a language all texts of that language resemble one another; their cosines mean less.
- *Threshold*: the level that one such prompt in twenty reaches, in the language where it is
  highest.

Source:
    Nearest neighbour normalisation (Chowdhury et al., 2024, arXiv 2410.24114) subtracts the same
    mean from the score of a candidate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory.unrelated_prompts import unrelated_prompts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from memory.fusion import Weights

NEUTRAL = 0.55
"""The score of the threshold, which is the documented ``memory.minScoreToMention``."""

_NEIGHBOURS = 8
_BASE_NEIGHBOURS = 3
_MOST_BASE = 0.95
_PERCENTILE = 95
_CHANCES = 0.5
_CHATTER = 80
_ABOVE_CHATTER = 2.0
_FENCE = 2.0
"""Distances between the quartiles from which on a prompt is taken to be answered, not noise."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The level that separates answers from noise, and what it was measured with."""

    level: float
    """In (0, 1)."""
    num_chunks: int
    """Size of the index then."""
    weights: Weights
    """Of the sides then."""


class Reference:
    """The vectors of the unrelated prompts.

    Args:
        vectors: Shape (n, dim), unit norm, one a prompt, the languages one after another.
    Raises:
        ValueError: there are not as many as prompts, or one is not finite.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        languages = unrelated_prompts()
        if vectors.ndim != 2 or len(vectors) != len(languages) * len(languages[0]):  # noqa: PLR2004
            raise ValueError("not the vectors of the unrelated prompts")
        if not np.isfinite(vectors).all():
            raise ValueError("a vector of the unrelated prompts is not finite")
        # As a snapshot holds them, so that a restart measures the same.
        self.stored = vectors.astype(np.float16)
        self.vectors = self.stored.astype(np.float32)
        self.base = self._base(len(languages))

    def noise_of(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the noise of rows with these vectors, shape (n, dim); in [base, 1)."""
        similarities = block @ self.vectors.T
        similarities.partition(similarities.shape[1] - _NEIGHBOURS, axis=1)
        noise = similarities[:, -_NEIGHBOURS:].mean(axis=1)
        measured: NDArray[np.float32] = np.clip(noise, self.base, _MOST_BASE).astype(np.float32)
        return measured

    def _base(self, num_languages: int) -> float:
        """Returns the noise of texts in the language that the model tells apart best."""
        by_language = self.vectors.reshape(num_languages, -1, self.vectors.shape[1])
        similarities = by_language @ by_language.transpose(0, 2, 1)
        places = np.arange(similarities.shape[1])
        similarities[:, places, places] = -1
        nearest = np.sort(similarities, axis=2)[:, :, -_BASE_NEIGHBOURS:]
        return float(np.clip(nearest.mean(axis=(1, 2)).min(), 0, _MOST_BASE))


def threshold_of(levels: ArrayLike) -> float:
    """Returns the level that one unrelated prompt in twenty reaches.

    Everyday prompts may well be answered by a workspace, some of them: those that stand out are
    left out of account (Tukey's fence, at twice the distance between the quartiles).

    Args:
        levels: Best level of each prompt, in [0, 1], the languages one after another.
    """
    by_language = np.reshape(levels, (len(unrelated_prompts()), -1))
    low, high, usual = np.percentile(by_language, (25, 75, _PERCENTILE), axis=1)
    highest = np.minimum(usual, high + _FENCE * (high - low)).max()
    return float(np.clip(highest, 0.01, 0.99))


def threshold_of_parts(threshold: float, levels: Sequence[float]) -> float:
    """Returns the level that a part of a long prompt has to reach, in [threshold, 1).

    Each part has a chance to resemble something by accident, and what an agent is told before it is
    asked resembles some workspaces more than everyday prompts do. So what most parts reach is taken
    for the noise of the prompt, and the threshold is raised to twice of it; but no further than the
    number of parts explains, because all of a prompt may be about what the workspace holds.

    Args:
        threshold: That of a short prompt, in (0, 1).
        levels: Best level of each part, in [0, 1], at least one.
    """
    chatter = _ABOVE_CHATTER * float(np.percentile(levels, _CHATTER))
    most = 1 - math.pow(1 - threshold, 1 + _CHANCES * math.log(len(levels)))
    return max(threshold, min(most, chatter))


def meaning(level: float, threshold: float) -> float:
    """Returns a level in [0, 1] on the scale where the threshold is ``NEUTRAL``; monotone.

    Args:
        level: In [0, 1].
        threshold: In (0, 1).
    """
    if level <= threshold:
        return NEUTRAL * level / threshold
    return NEUTRAL + (1 - NEUTRAL) * (level - threshold) / (1 - threshold)
