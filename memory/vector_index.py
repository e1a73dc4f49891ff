"""Which stored vectors are most similar to a query vector?

Exact cosine search over one flat FAISS index. FAISS is used as a block of memory with a fast scan:
rows are slots with a free list and are overwritten in place, because its own ``remove_ids`` moves
the whole block.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.errors import DimensionMismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Similarities of equal vectors may differ in the last bit.
_TIE = 1e-6
_MAX_TIE_FACTOR = 8


class VectorIndex:
    """Rows of unit vectors; a freed row is zero and is reused first, lowest number first.

    FAISS never sees an array that came from outside: it would write through the read-only flag of
    shared memory, and ``python -O`` removes its own checks of shape.
    """

    def __init__(self, dim: int) -> None:
        """Makes an empty index; one of dimension 0 cannot hold a row."""
        self.dim = dim
        self._index = _faiss().IndexFlatIP(dim)
        self._free: list[int] = []
        self._live: set[int] = set()

    @classmethod
    def from_block(cls, block: NDArray[np.float32], rows: Sequence[int]) -> VectorIndex:
        """Returns an index that holds ``block[i]`` in row ``rows[i]``.

        Args:
            block: Shape (len(rows), dim), float32, unit norm.
            rows: Distinct, not negative; memory grows with the greatest.
        Raises:
            ValueError: see ``put``.
        """
        index = cls(block.shape[1])
        size = max(rows, default=-1) + 1
        index._grow(size)
        index.put(rows, block)
        index._free = [row for row in range(size) if row not in index._live]
        return index

    def __len__(self) -> int:
        return len(self._live)

    def rows(self) -> list[int]:
        """Returns the rows in use, ascending."""
        return sorted(self._live)

    def allocate(self, count: int) -> list[int]:
        """Returns that many rows to ``put`` or ``free``; all memory they need is there."""
        self._grow(count - len(self._free))
        return [heapq.heappop(self._free) for _ in range(count)]

    def put(self, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Writes vectors into allocated rows; all or nothing.

        Args:
            rows: From ``allocate``, distinct.
            vectors: Shape (len(rows), dim), float32, unit norm; copied.
        Raises:
            DimensionMismatch: the vectors have another dimension.
            ValueError: another number of vectors, a value that is not finite, a bad row.
        """
        checked = self._checked(vectors, count=len(rows))
        storage = self._storage()
        if len(set(rows)) != len(rows) or not all(0 <= row < len(storage) for row in rows):
            raise ValueError("a row is out of range or occurs twice")
        storage[np.asarray(rows, np.intp)] = checked
        self._live.update(rows)

    def free(self, rows: Sequence[int]) -> None:
        """Gives rows back; they never answer a search again."""
        self._storage()[np.asarray(rows, np.intp)] = 0
        self._live.difference_update(rows)
        for row in rows:
            heapq.heappush(self._free, row)

    def take(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """Returns copies of vectors, shape (len(rows), dim)."""
        return self._storage()[np.asarray(rows, np.intp)]

    def to_block(self) -> NDArray[np.float32]:
        """Returns the vectors of ``rows()``, shape (len(self), dim), float32."""
        return self.take(self.rows())

    def similarities(
        self, rows: NDArray[np.int64], vector: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Returns the cosine of a unit vector and each row, shape of ``rows``."""
        query = self._checked(vector[None], count=1)[0]
        cosines: NDArray[np.float32] = self._storage()[rows] @ query
        return cosines

    def search(
        self, vector: NDArray[np.float32], *, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns the rows most similar to a query, best first, with their cosines.

        Rows whose cosine is not positive are left out. Rows that tie with the last are included
        beyond the limit (up to eight times as many), so that the answer does not depend on the
        order in which rows were filled.

        Args:
            vector: Shape (dim,), unit norm; copied.
            limit: At least 1.
        Raises:
            DimensionMismatch: the vector has another dimension.
            ValueError: a value is not finite.
        """
        size, wanted = self._index.ntotal, limit + 1
        if not size:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        query = self._checked(vector[None], count=1)
        while True:
            count = min(size, wanted)
            cosines, rows = (array[0] for array in self._index.search(query, count))
            least = max(float(cosines[min(limit, count) - 1]) - _TIE, 0.0)
            if count == size or cosines[-1] <= least or count > _MAX_TIE_FACTOR * limit:
                break
            wanted *= 2
        # Freed rows have cosine 0.
        found = cosines > least
        return rows[found], cosines[found]

    def _grow(self, count: int) -> None:
        """Adds free rows."""
        if count > 0:
            size = self._index.ntotal
            self._index.add(np.zeros((count, self.dim), np.float32))
            for row in range(size, size + count):
                heapq.heappush(self._free, row)

    def _storage(self) -> NDArray[np.float32]:
        """Returns the memory of FAISS, shape (rows, dim); invalid once it has grown."""
        size = self._index.ntotal
        if not size:
            return np.empty((0, self.dim), np.float32)
        flat = _faiss().rev_swig_ptr(self._index.get_xb(), size * self.dim)
        return flat.reshape(size, self.dim)  # type: ignore[no-any-return] # faiss has no types

    def _checked(self, vectors: NDArray[np.float32], *, count: int) -> NDArray[np.float32]:
        """Returns an own copy, shape (count, dim), float32."""
        copy = np.array(vectors, np.float32, order="C")
        if copy.ndim != 2 or len(copy) != count:  # noqa: PLR2004 - a matrix
            raise ValueError(f"{count} rows but vectors of shape {copy.shape}")
        if copy.shape[1] != self.dim and count:
            raise DimensionMismatch(self.dim, copy.shape[1])
        if not np.isfinite(copy).all():
            raise ValueError("vectors hold a value that is not finite")
        return copy.reshape(count, self.dim)


@lru_cache(maxsize=1)
def _faiss() -> Any:
    """Returns the module, limited to one thread: its spinning workers starve a busy machine."""
    import faiss  # noqa: PLC0415 - takes 0.14 s, and only a search needs it

    faiss.omp_set_num_threads(1)
    return faiss
