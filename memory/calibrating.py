"""Is an index calibrated, and what is the next step towards it?

Each step is short, so that searches and changes go on in between.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING

from memory.calibration import Reference, Threshold, threshold_of
from memory.unrelated_prompts import unrelated_prompts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.fusion import Weights
    from memory.index_state import IndexState

_PROMPTS_A_STEP = 8
_MOST_DRIFT = 0.1
"""Share by which the number of chunks may change before the threshold is measured again."""


class Calibration(StrEnum):
    """What a calibration waits for."""

    VECTORS = "vectors"
    """The vectors of the unrelated prompts."""
    STEPS = "steps"
    """More steps."""
    NOTHING = "nothing"
    """It is done, until the index has changed enough."""


class Calibrator:
    """Calibrates one index, step by step."""

    def __init__(self) -> None:
        self._levels: list[float] = []

    def learn(self, state: IndexState, vectors: NDArray[np.float32]) -> None:
        """Takes the vectors of the unrelated prompts.

        Args:
            state: The index.
            vectors: Shape (n, dim), unit norm, one a prompt as ``unrelated_prompts`` lists them.
        Raises:
            ValueError: they do not fit the prompts or the index.
        """
        reference = Reference(vectors)
        if vectors.shape[1] != state.vectors.dim:
            raise ValueError("the unrelated prompts have another dimension than the index")
        state.noise.learn(reference, state.vectors.size)
        state.threshold = None
        self._levels = []

    def step(
        self,
        state: IndexState,
        weights: Weights,
        level_of: Callable[[str, NDArray[np.float32]], float],
    ) -> Calibration:
        """Goes one step, and tells what is needed next.

        Args:
            state: The index.
            weights: Of its sides.
            level_of: Returns the level of the best answer to a prompt, in [0, 1].
        """
        reference, num_chunks = state.noise.reference, state.table.num_chunks
        if not num_chunks or _is_current(state.threshold, num_chunks, weights):
            return Calibration.NOTHING
        if reference is None:
            return Calibration.VECTORS
        if state.noise.measure_some(state.vectors):
            return Calibration.STEPS
        prompts = list(chain.from_iterable(unrelated_prompts()))
        begin = len(self._levels)
        end = begin + _PROMPTS_A_STEP
        self._levels += map(level_of, prompts[begin:end], reference.vectors[begin:end])
        if end < len(prompts):
            return Calibration.STEPS
        level = threshold_of(self._levels)
        state.threshold = Threshold(level, num_chunks, weights)
        self._levels = []
        return Calibration.NOTHING


def calibrate_at_once(
    step: Callable[[NDArray[np.float32] | None], Calibration],
    embed: Callable[[Sequence[str]], NDArray[np.float32]],
) -> None:
    """Goes all steps of a calibration, for whoever has nothing else to do.

    Args:
        step: ``MemoryIndex.calibrate``.
        embed: Returns the vectors of queries, shape (n, dim), unit norm.
    """
    need = step(None)
    while need is not Calibration.NOTHING:
        prompts = list(chain.from_iterable(unrelated_prompts()))
        need = step(embed(prompts) if need is Calibration.VECTORS else None)


def _is_current(threshold: Threshold | None, num_chunks: int, weights: Weights) -> bool:
    """Tells whether a threshold still holds."""
    if threshold is None or threshold.weights != weights:
        return False
    return abs(threshold.num_chunks - num_chunks) <= _MOST_DRIFT * threshold.num_chunks
