"""Do clusters narrow a search without losing what a scan of everything finds?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memory.vector_clusters import (
    MAX_PROBED_SHARE,
    NO_CLUSTER,
    ClusterState,
    VectorClusters,
    trained_clusters,
)
from memory.vector_store import Float16Store, Float32Store
from tests.unit.vectors import clustered_rows, normalised, recall, unit_rows

AXES = ClusterState(
    centroids=np.eye(3, dtype=np.float32),
    assignment=np.array([0, 1, 2, 1, NO_CLUSTER], np.uint16),
    num_probes=1,
    num_trained=4,
)


class Rows:
    """A matrix as ``VectorsAtRest``."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def read(self, rows):
        return self.rows[rows]

    def blocks(self, num_rows):
        for first in range(0, len(self.rows), num_rows):
            yield self.rows[first : first + num_rows]


def between(rows: np.ndarray, count: int, seed: int = 7) -> np.ndarray:
    """Queries between two rows each, nearer to the first."""
    first, second = np.random.default_rng(seed).choice(len(rows), (2, count), replace=False)
    return normalised(rows[first] + 0.8 * rows[second])


def test_a_mask_lets_the_rows_of_the_nearest_clusters_through():
    query = np.array([0.1, 0.9, 0.4], np.float32)

    assert VectorClusters(AXES).mask(query).tolist() == [False, True, False, True, False]
    two = VectorClusters(replace(AXES, num_probes=2)).mask(query)
    assert two.tolist() == [False, True, True, True, False]


def test_without_probes_there_is_no_mask():
    assert VectorClusters(replace(AXES, num_probes=0)).mask(np.ones(3, np.float32)) is None


def test_a_row_moves_to_the_cluster_of_its_new_vector_and_leaves_it_when_it_is_freed():
    clusters = VectorClusters(AXES)
    clusters.grow(7)
    clusters.assign(np.array([1, 6]), np.array([[0.8, 0.6, 0], [0, 0.6, 0.8]], np.float32))
    clusters.forget(np.array([0]))

    none = NO_CLUSTER
    assert clusters.state().assignment.tolist() == [none, 0, 2, 1, none, none, 2]


def test_clusters_share_no_memory_with_the_state_they_came_from():
    clusters = VectorClusters(AXES)
    clusters.assign(np.array([0]), np.eye(3, dtype=np.float32)[2:])

    assert AXES.assignment[0] == 0
    assert clusters.state().assignment[0] == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"assignment": np.array([3], np.uint16)},
        {"centroids": np.empty((0, 3), np.float32)},
        {"centroids": np.full((3, 3), np.nan, np.float32)},
        {"num_probes": 4},
    ],
)
def test_parts_that_no_training_makes_are_refused(bad):
    with pytest.raises(ValueError, match=r"cluster|finite"):
        VectorClusters(replace(AXES, **bad))


def test_training_puts_each_row_in_use_into_the_cluster_of_its_nearest_centroid():
    rows = clustered_rows(3000, 16, num_clusters=30, cosine=0.9, share_random=0.1)
    rows[[5, 17]] = 0
    live = np.setdiff1d(np.arange(3000), [5, 17])
    state = trained_clusters(Rows(rows), live).state()

    nearest = (rows @ state.centroids.T).argmax(axis=1)
    assert np.allclose(np.linalg.norm(state.centroids, axis=1), 1, atol=1e-5)
    assert len(state.centroids) == int(4 * len(live) ** 0.5)
    assert state.num_trained == len(live)
    assert np.array_equal(np.nonzero(state.assignment == NO_CLUSTER)[0], [5, 17])
    assert np.mean(state.assignment[live] == nearest[live]) > 0.999


def test_training_twice_with_one_seed_gives_the_same_clusters():
    rows = Rows(unit_rows(500, 16))
    one, two = (trained_clusters(rows, np.arange(500), seed=3).state() for _ in range(2))

    assert np.array_equal(one.centroids, two.centroids)
    assert np.array_equal(one.assignment, two.assignment)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_a_few_rows_can_be_trained(count):
    state = trained_clusters(Rows(unit_rows(count, 16)), np.arange(count)).state()

    assert len(state.assignment) == count
    assert (state.assignment < len(state.centroids)).all()


def test_vectors_without_any_structure_are_scanned_flat():
    """The nearest rows of random vectors lie in clusters everywhere."""
    rows = unit_rows(4000, 64)

    assert trained_clusters(Rows(rows), np.arange(4000)).num_probes == 0


@pytest.mark.slow
@pytest.mark.parametrize(("cosine", "share_random"), [(0.9, 0.0), (0.7, 0.0), (0.7, 0.3)])
def test_clusters_find_what_float32_finds_among_200_000_rows(monkeypatch, cosine, share_random):
    """Also where that takes more clusters than pay off, which would be scanned flat."""
    monkeypatch.setattr("memory.vector_clusters.MAX_PROBED_SHARE", 1.0)
    rows = clustered_rows(200_000, 64, num_clusters=1000, cosine=cosine, share_random=share_random)
    exact, store = Float32Store(64), Float16Store(64)
    for each in (exact, store):
        each.grow(len(rows))
        each.write(slice(None), rows)
    clusters = trained_clusters(Rows(rows), np.arange(len(rows)))
    queries = between(rows, 50)

    assert recall(queries, exact.scan, lambda q, n: store.scan(q, n, clusters.mask(q))) >= 0.98
    assert np.mean([clusters.mask(query).mean() for query in queries]) < 0.7


@pytest.mark.slow
def test_clusters_of_clustered_rows_leave_nearly_all_of_them_out():
    rows = clustered_rows(20_000, 256, num_clusters=200, cosine=0.9, share_random=0.0)
    clusters = trained_clusters(Rows(rows), np.arange(len(rows)))

    assert np.mean([clusters.mask(query).mean() for query in between(rows, 20)]) < MAX_PROBED_SHARE
