"""How similar is each row to texts that have nothing to do with it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from memory.calibration import Reference
    from memory.vector_index import VectorIndex

_ROWS_A_STEP = 4_096


class RowNoise:
    """The noise of each row; that of the model until the row was measured.

    Args:
        usual: Mean cosine of unrelated texts with the model, in [0, 1).
    """

    def __init__(self, usual: float) -> None:
        self._usual = usual
        self._values = np.empty(0, np.float32)
        self.reference: Reference | None = None

    @property
    def base(self) -> float:
        """The noise of texts in a language that the model knows, in [0, 1)."""
        return self.reference.base if self.reference is not None else self._usual

    def put(self, rows: Sequence[int], block: NDArray[np.float32]) -> None:
        """Measures rows whose vectors are new, shape (len(rows), dim)."""
        if self.reference is not None and len(rows):
            self._make_room(max(rows) + 1)
            self._values[np.asarray(rows)] = self.reference.noise_of(block)

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the noise of rows, shape (n,), in [0, 1)."""
        if self.reference is None:
            return np.full(len(rows), self._usual, np.float32)
        noise = self._values[rows]
        unknown = np.isnan(noise)
        if unknown.any():
            noise[unknown] = self.base
        return noise

    def learn(self, reference: Reference, size: int) -> None:
        """Takes another reference, by which no row was measured yet; ``size`` rows may exist."""
        self.reference = reference
        self._values = np.full(size, np.nan, np.float32)

    def measure_some(self, vectors: VectorIndex) -> bool:
        """Measures a few of the rows that were not yet; returns whether some are left."""
        self._make_room(vectors.size)
        unknown = np.isnan(self._values)
        rows = [row for row in vectors.rows() if unknown[row]]
        self.put(rows[:_ROWS_A_STEP], vectors.take(rows[:_ROWS_A_STEP]))
        return len(rows) > _ROWS_A_STEP

    def stored(self) -> NDArray[np.float32]:
        """Returns a copy of all values, for ``restore``; NaN where none was measured."""
        return self._values.copy()

    def restore(self, reference: Reference, values: NDArray[np.float32], size: int) -> None:
        """Takes what an earlier process measured.

        Args:
            reference: What it measured with.
            values: From ``stored``.
            size: All rows in use are below.
        Raises:
            ValueError: a value is outside of [0, 1).
        """
        known = values[~np.isnan(values)]
        if ((known < 0) | (known >= 1)).any():
            raise ValueError("noise outside of [0, 1)")
        self.reference = reference
        self._values = values.astype(np.float32)
        self._make_room(size)

    def _make_room(self, size: int) -> None:
        missing = size - len(self._values)
        if missing > 0:
            # More than is needed, or each row would copy all others.
            room = max(missing, len(self._values) // 8)
            self._values = np.append(self._values, np.full(room, np.nan, np.float32))
