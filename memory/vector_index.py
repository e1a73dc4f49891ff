"""Which stored vectors are most similar to a query vector?

Rows are slots with a free list in memory that is scanned exactly. Where a scan of everything takes
too long (``CLUSTERS_FROM``), a search looks at the clusters near the query, once they are trained.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.errors import DimensionMismatch
from memory.vector_candidates import candidates
from memory.vector_clusters import (
    CLUSTERS_FROM,
    RETRAIN_FACTOR,
    VectorClusters,
    trained_clusters,
)
from memory.vector_memory import VectorMemory, pieces
from memory.vector_store import check_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from memory.vector_clusters import ClusterState
    from memory.vector_memory import FrozenVectors
    from memory.vector_store import StoredBlock, VectorStore


class VectorIndex:
    """Rows of unit vectors; a freed row is zero and is reused first, lowest number first.

    One thread uses it, except for ``frozen`` and ``train``, which another may call.
    """

    def __init__(self, dim: int) -> None:
        """Makes an empty index; one of dimension 0 cannot hold a row."""
        self.dim = dim
        self._memory = VectorMemory(dim)
        self._clusters: VectorClusters | None = None
        self._free: list[int] = []
        self._live: set[int] = set()

    @classmethod
    def from_block(cls, block: StoredBlock, rows: Sequence[int]) -> VectorIndex:
        """Returns an index that holds ``block[i]`` in row ``rows[i]``.

        Args:
            block: Shape (len(rows), dim), float32 or float16, unit norm; copied once, so it may be
                a memory map.
            rows: Distinct, not negative; memory grows with the greatest.
        Raises:
            ValueError: see ``put``.
        """
        if len(block) != len(rows):
            raise ValueError(f"{len(rows)} rows but vectors of shape {block.shape}")
        index = cls(block.shape[1])
        index._load(max(rows, default=-1) + 1, rows)
        places = np.asarray(rows, np.int64)
        for piece in pieces(len(rows)):
            vectors = _copy_of(block[piece])
            check_values(vectors)
            index._store.write(places[piece], vectors)
        return index

    @classmethod
    def from_stored_block(
        cls, block: StoredBlock, rows: Sequence[int], clusters: ClusterState | None = None
    ) -> VectorIndex:
        """Returns the index whose ``to_stored_block`` this was.

        Args:
            block: Shape (n, dim), float32 or float16; row i is copied into row i.
            rows: In use, distinct, below n; the others are free, whatever the block holds there.
            clusters: What ``cluster_state`` was.
        Raises:
            ValueError: a value in use is not finite, a bad row, clusters of another index.
        """
        index = cls(block.shape[1])
        index._load(len(block), rows)
        free = np.ones(len(block), np.bool_)
        free[np.asarray(rows, np.int64)] = False
        for piece in pieces(len(block)):
            vectors = _copy_of(block[piece])
            vectors[free[piece]] = 0
            check_values(vectors)
            index._store.write(piece, vectors)
        if clusters is not None:
            index._clusters = VectorClusters(clusters)
            if not index._clusters.fit(index.dim, ~free):
                raise ValueError("the clusters are those of another index")
        return index

    def __len__(self) -> int:
        return len(self._live)

    @property
    def size(self) -> int:
        """Number of rows, free ones included."""
        return len(self._store)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values as they are held, float32 or float16."""
        return self._store.dtype

    def rows(self) -> list[int]:
        """Returns the rows in use, ascending."""
        return sorted(self._live)

    def holds(self, row: int) -> bool:
        """Tells whether a row is in use."""
        return row in self._live

    def zero_rows(self) -> set[int]:
        """Returns the rows in use whose vector is zero; looks at one value of most rows."""
        block = self._store.block()
        if not block.size:
            return set()
        likely = np.flatnonzero(block[:, 0] == 0)
        return self._live.intersection(likely[~block[likely].any(axis=1)].tolist())

    def allocate(self, count: int) -> list[int]:
        """Returns that many rows to ``put`` or ``free``; all memory they need is there."""
        size = len(self._store)
        missing = max(0, count - len(self._free))
        self._memory.resize(size + missing)
        if self._clusters is not None:
            self._clusters.grow(len(self._store))
        for row in range(size, size + missing):
            heapq.heappush(self._free, row)
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
        self._check_rows(rows)
        places = np.asarray(rows, np.int64)
        with self._memory.changing(rows) as store:
            store.write(places, checked)
            self._live.update(rows)
            if self._clusters is not None:
                self._clusters.assign(places, checked)

    def free(self, rows: Sequence[int]) -> None:
        """Gives rows back; they never answer a search again."""
        places = np.asarray(rows, np.int64)
        with self._memory.changing(rows) as store:
            store.zero(places)
            self._live.difference_update(rows)
            if self._clusters is not None:
                self._clusters.forget(places)
        for row in rows:
            heapq.heappush(self._free, row)

    def take(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """Returns copies of vectors, shape (len(rows), dim)."""
        return self._store.read(np.asarray(rows, np.int64))

    def to_block(self) -> NDArray[np.float32]:
        """Returns the vectors of ``rows()``, shape (len(self), dim), float32."""
        return self.take(self.rows())

    def to_stored_block(self) -> StoredBlock:
        """Returns all rows as they are held, free ones as zeros, read-only, without a copy.

        Shape (rows ever allocated, dim). Valid until the next change and while the index lives;
        ``frozen`` gives the same to somebody who cannot wait.
        """
        return self._store.block()

    def similarities(
        self, rows: NDArray[np.int64], vector: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Returns the cosine of a unit vector and each row, shape of ``rows``."""
        return self._store.products(self._query(vector), rows)

    def search(
        self, vector: NDArray[np.float32], *, limit: int, also: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns the rows most similar to a query, best first, with their cosines.

        Rows whose cosine is not positive are left out. Rows that tie with the last are included
        beyond the limit (up to eight times as many), so that the answer does not depend on the
        order in which rows were filled.

        Args:
            vector: Shape (dim,), unit norm; copied.
            limit: At least 1.
            also: Distinct rows that are wanted whatever their cosine is; they come first, in
                their order.
        Raises:
            DimensionMismatch: the vector has another dimension.
            ValueError: a value is not finite.
        """
        query, mask = self._query(vector), None
        if not len(self._store):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if self._clusters is not None:
            mask = self._clusters.mask(query)
        return candidates(self._store, query, limit=limit, mask=mask, also=also)

    def frozen(self) -> AbstractContextManager[FrozenVectors]:
        """Keeps the state of this moment readable, by any thread, until the context is left.

        Rows may change and be added meanwhile. Costs memory for those that are changed, and for
        the whole block as it was if the index outgrows float32 meanwhile.
        """
        return self._memory.frozen(self._live)

    @property
    def needs_training(self) -> bool:
        """Whether ``train`` would make searches faster: very large, and twice what it was."""
        trained = self._clusters.num_trained if self._clusters is not None else 0
        large = len(self._live) * self.dim >= CLUSTERS_FROM
        return large and len(self._live) >= RETRAIN_FACTOR * trained

    def train(self, *, seed: int = 0) -> None:
        """Finds clusters of the rows; until then, every search looks at all of them.

        Takes long (see ``trained_clusters``), so call it in another thread: searches and changes
        go on meanwhile.
        """
        with self.frozen() as frozen:
            if not len(frozen.live):
                return
            clusters = trained_clusters(frozen, frozen.live, seed=seed)
            with self._memory.lock:
                self._reassign(clusters, frozen.changed)
                self._clusters = clusters

    def cluster_state(self) -> ClusterState | None:
        """Returns what ``from_stored_block`` needs to go without training; None before it."""
        return self._clusters.state() if self._clusters is not None else None

    @property
    def _store(self) -> VectorStore:
        return self._memory.store

    def _load(self, size: int, rows: Sequence[int]) -> None:
        """Makes rows of an empty index, some of them in use."""
        self._memory.resize(size)
        self._check_rows(rows)
        self._live = set(rows)
        self._free = [row for row in range(size) if row not in self._live]

    def _reassign(self, clusters: VectorClusters, rows: Iterable[int]) -> None:
        """Puts rows into clusters that were found when they held something else."""
        clusters.grow(len(self._store))
        used = np.array(sorted(self._live.intersection(rows)), np.int64)
        clusters.forget(np.array(sorted(rows), np.int64))
        clusters.assign(used, self._store.read(used))

    def _check_rows(self, rows: Sequence[int]) -> None:
        in_range = min(rows, default=0) >= 0 and max(rows, default=-1) < len(self._store)
        if len(set(rows)) != len(rows) or not in_range:
            raise ValueError("a row is out of range or occurs twice")

    def _query(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns an own copy, shape (dim,), float32."""
        copy = np.array(vector, np.float32)
        if copy.shape != (self.dim,):
            raise DimensionMismatch(self.dim, copy.size)
        # A sum of squares is finite only if all values are; their maximum takes twice as long.
        if not math.isfinite(copy @ copy):
            raise ValueError("the query vector holds a value that is not finite")
        return copy

    def _checked(self, vectors: NDArray[np.float32], *, count: int) -> NDArray[np.float32]:
        """Returns an own copy, shape (count, dim), float32."""
        copy = np.array(vectors, np.float32, order="C")
        if copy.ndim != 2 or len(copy) != count:  # noqa: PLR2004 - a matrix
            raise ValueError(f"{count} rows but vectors of shape {copy.shape}")
        if copy.shape[1] != self.dim and count:
            raise DimensionMismatch(self.dim, copy.shape[1])
        check_values(copy)
        return copy.reshape(count, self.dim)


def _copy_of(block: StoredBlock) -> StoredBlock:
    """Returns an own copy, float16 if that is what it was, else float32."""
    dtype = np.float16 if block.dtype == np.float16 else np.float32
    return np.array(block, dtype)  # type: ignore[return-value] # of either type
