"""Which rows of a very large index are worth scanning for a query?

Those of the clusters whose centroids are nearest to it. The vectors stay where they are, in the
order of their rows: a search masks the rows of the other clusters. Against an inverted file this
saves its second copy of the vectors, and a row that is overwritten only changes its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from memory.vector_store import check_values, one_threaded_faiss

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from memory.vector_store import Rows, StoredBlock

CLUSTERS_FROM = 400_000_000
"""Values (rows times dimension) from which a scan of all takes long enough (1M x 384: 36 ms; 9 ms
with the right clusters) to be worth 87 s of training; see ARCHITECTURE.md, "Vector borders"."""
RETRAIN_FACTOR = 2
"""Clusters serve until there are that many times the rows they were trained on."""
MAX_PROBED_SHARE = 0.04
"""Share of the rows beyond which a search had better look at all of them: a masked scan jumps
through memory, so that an eighth of the rows takes as long as all (dimension 384)."""
NO_CLUSTER = np.iinfo(np.uint16).max

_CLUSTERS_PER_ROOT = 4
_SAMPLE_PER_CLUSTER = 40
_NUM_ITERATIONS = 6

_NUM_QUERIES = 512
_NEIGHBOURS = 10
# Questions of people are harder than these. On real ones, noise and recall as here gave 0.98.
_NOISE = 3.0
_RECALL = 0.995
_MIN_PROBES = 16

_ROWS_A_BLOCK = 16_384
_LEAST_NORM = 1e-12


class VectorsAtRest(Protocol):
    """Rows of unit vectors, zeros where a row is free, that do not change meanwhile."""

    def __len__(self) -> int:
        """Number of rows."""

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns copies of rows, shape (n, dim)."""

    def blocks(self, num_rows: int) -> Iterator[StoredBlock]:
        """Yields all rows in order, so many at a time."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What a snapshot keeps of clusters."""

    centroids: NDArray[np.float32]
    """Shape (clusters, dim), unit norm."""
    assignment: NDArray[np.uint16]
    """Cluster of each row, ``NO_CLUSTER`` for a free one."""
    num_probes: int
    """Clusters a search looks at; 0 if a flat search is no slower."""
    num_trained: int
    """Rows in use at the training."""


class VectorClusters:
    """Centroids, and which row belongs to which."""

    def __init__(self, state: ClusterState) -> None:
        """Takes clusters over; the arrays are copied.

        Raises:
            ValueError: the parts do not fit together.
        """
        check_values(state.centroids)
        count = len(state.centroids)
        known = state.assignment[state.assignment != NO_CLUSTER]
        if not 0 < count < NO_CLUSTER or (known >= count).any() or state.num_probes > count:
            raise ValueError("a cluster is out of range")
        self.num_probes = state.num_probes
        self.num_trained = state.num_trained
        self._centroids = np.array(state.centroids, np.float32, order="C")
        self._assignment = np.array(state.assignment, np.uint16)
        self._size = len(state.assignment)
        self._index = _index_of(self._centroids)

    def __len__(self) -> int:
        return self._size

    def fit(self, dim: int, live: NDArray[np.bool_]) -> bool:
        """Returns whether they are of vectors of a dimension, and of exactly the rows in use."""
        rows = self._assignment[: self._size] != NO_CLUSTER
        return self._centroids.shape[1] == dim and np.array_equal(rows, live)

    def state(self) -> ClusterState:
        """Returns copies of everything."""
        assignment = self._assignment[: self._size].copy()
        return ClusterState(self._centroids.copy(), assignment, self.num_probes, self.num_trained)

    def grow(self, size: int) -> None:
        """Makes room for so many rows."""
        if size > len(self._assignment):
            spare = np.full(size + size // 4 - len(self._assignment), NO_CLUSTER, np.uint16)
            self._assignment = np.concatenate((self._assignment, spare))
        self._size = max(size, self._size)

    def assign(self, rows: Rows, vectors: NDArray[np.float32]) -> None:
        """Puts rows into the clusters of their vectors.

        Args:
            rows: Shape (n,), in range.
            vectors: Shape (n, dim), own memory, C-contiguous, finite.
        """
        if len(vectors):
            self._assignment[rows] = self._nearest(vectors, 1)[:, 0]

    def forget(self, rows: Rows) -> None:
        """Takes freed rows out of their clusters."""
        self._assignment[rows] = NO_CLUSTER

    def mask(self, query: NDArray[np.float32]) -> NDArray[np.bool_] | None:
        """Returns which rows to scan for a unit query, shape (len(self),); None for all of them.

        Args:
            query: Shape (dim,), own memory, C-contiguous.
        """
        if not self.num_probes:
            return None
        probed = np.zeros(NO_CLUSTER + 1, np.bool_)
        probed[self._nearest(query[None], self.num_probes)[0]] = True
        return probed[self._assignment[: self._size]]

    def _nearest(self, vectors: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Returns the clusters nearest to vectors, shape (len(vectors), count)."""
        one_threaded_faiss()
        clusters: NDArray[np.int64] = self._index.search(vectors, count)[1]
        return clusters


def trained_clusters(
    vectors: VectorsAtRest, live: NDArray[np.int64], *, seed: int = 0
) -> VectorClusters:
    """Finds clusters, and how many of them a search must look at.

    The number of probes is the least (but 16) whose clusters hold 99.5 % of the ten nearest rows of
    512 trial queries: rows of the index under noise, at a cosine of 0.32 to what they were. If
    that is more than ``MAX_PROBED_SHARE`` of the rows, it is 0. See ARCHITECTURE.md, "Vector
    borders", for how that compares with real questions.

    Args:
        vectors: All rows; read once in order, and before that a sample of them.
        live: Rows in use, ascending, at least one.
        seed: Of the sample and of k-means.
    Returns:
        As many as four times the square root of the number of rows.
    """
    random = np.random.default_rng(seed)
    count = int(min(max(1, _CLUSTERS_PER_ROOT * len(live) ** 0.5), len(live), NO_CLUSTER - 1))
    sample = vectors.read(_sample(live, _SAMPLE_PER_CLUSTER * count, random))
    trial_rows = _sample(live, _NUM_QUERIES, random)
    trial = vectors.read(trial_rows)
    noise = _normalised(random.standard_normal(trial.shape, np.float32))
    queries = _normalised(trial + _NOISE * noise)

    centroids = _centroids(sample, count, seed)
    index = _index_of(centroids)
    assignment, nearest = _passed(vectors, index, queries)
    assignment[np.setdiff1d(np.arange(len(vectors)), live)] = NO_CLUSTER
    # A query finds the row it was made of too easily.
    nearest = np.where(nearest == trial_rows[:, None], -1, nearest)
    num_probes = _num_probes(index, queries, nearest, assignment)
    return VectorClusters(ClusterState(centroids, assignment, num_probes, len(live)))


def _centroids(sample: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    """Returns unit vectors, shape (count, dim); ``sample`` has at least as many rows."""
    kmeans = one_threaded_faiss().Kmeans(
        sample.shape[1],
        count,
        niter=_NUM_ITERATIONS,
        spherical=True,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=2 * _SAMPLE_PER_CLUSTER,
    )
    kmeans.train(sample)
    centroids: NDArray[np.float32] = kmeans.centroids
    return centroids


def _passed(
    vectors: VectorsAtRest, index: Any, queries: NDArray[np.float32]
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Returns the cluster of each row and, shape (queries, n), the rows nearest to each query."""
    faiss = one_threaded_faiss()
    assignment = np.empty(len(vectors), np.uint16)
    products = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    first = 0
    for stored in vectors.blocks(_ROWS_A_BLOCK):
        block = np.array(stored, np.float32, order="C")
        assignment[first : first + len(block)] = index.search(block, 1)[1][:, 0]
        count = min(_NEIGHBOURS + 1, len(block))
        more, places = faiss.knn(queries, block, count, metric=faiss.METRIC_INNER_PRODUCT)
        products = np.hstack((products, more))
        rows = np.hstack((rows, places + first))
        best = np.argsort(-products, axis=1, kind="stable")[:, : _NEIGHBOURS + 1]
        products = np.take_along_axis(products, best, axis=1)
        rows = np.take_along_axis(rows, best, axis=1)
        first += len(block)
    return assignment, np.where(products > 0, rows, -1)


def _num_probes(
    index: Any,
    queries: NDArray[np.float32],
    nearest: NDArray[np.int64],
    assignment: NDArray[np.uint16],
) -> int:
    """Returns how many clusters must be probed; 0 if they hold too many rows.

    Args:
        index: Of the centroids.
        queries: Shape (queries, dim).
        nearest: Shape (queries, n), rows that must be found; -1 is none.
        assignment: Cluster of each row.
    """
    order = index.search(queries, index.ntotal)[1]
    ranks = np.argsort(order, axis=1)
    query, _place = wanted = np.nonzero(nearest >= 0)
    if not len(query):
        return 0
    needed = ranks[query, assignment[nearest[wanted]]]
    least = int(np.quantile(needed, _RECALL, method="higher")) + 1
    num_probes = min(max(least, _MIN_PROBES), index.ntotal)
    sizes = np.bincount(assignment[assignment != NO_CLUSTER], minlength=index.ntotal)
    probed = sizes[order[:, :num_probes]].sum(axis=1).mean()
    return num_probes if probed <= MAX_PROBED_SHARE * sizes.sum() else 0


def _index_of(centroids: NDArray[np.float32]) -> Any:
    """Returns a FAISS index over centroids, which it copies."""
    index = one_threaded_faiss().IndexFlatIP(centroids.shape[1])
    index.add(centroids)
    return index


def _sample(rows: NDArray[np.int64], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    return random.choice(rows, min(count, len(rows)), replace=False)


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _LEAST_NORM)
    normalised: NDArray[np.float32] = vectors / norms
    return normalised
