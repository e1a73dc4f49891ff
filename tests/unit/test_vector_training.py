"""Does a vector index with clusters find what one without them would?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memory.vector_clusters import trained_clusters
from memory.vector_index import VectorIndex
from tests.unit.vectors import clustered_rows, filled, unit_rows


def clustered_index() -> VectorIndex:
    return filled(clustered_rows(400, 64, num_clusters=40, cosine=0.95, share_random=0.0))


def test_a_trained_index_scans_only_clusters_near_the_query(monkeypatch):
    monkeypatch.setattr("memory.vector_clusters.MAX_PROBED_SHARE", 1.0)
    index = clustered_index()
    flat = [index.search(vector, limit=5)[0].tolist() for vector in index.to_block()[:20]]
    index.train()
    state = index.cluster_state()
    trained = [index.search(vector, limit=5)[0].tolist() for vector in index.to_block()[:20]]

    assert 0 < state.num_probes < len(state.centroids)
    assert trained == flat


def test_a_row_written_after_the_training_is_found_at_once(monkeypatch):
    monkeypatch.setattr("memory.vector_clusters.MAX_PROBED_SHARE", 1.0)
    index = clustered_index()
    index.train()
    one, two = unit_rows(2, 64, seed=99)
    index.put([7], one[None])
    [added] = index.allocate(1)
    index.put([added], two[None])
    index.free([8])

    assert index.search(one, limit=1)[0].tolist() == [7]
    assert index.search(two, limit=1)[0].tolist() == [added]
    assert index.cluster_state().assignment[8] == np.iinfo(np.uint16).max


def test_rows_that_changed_during_the_training_are_in_the_clusters_of_what_they_hold(monkeypatch):
    monkeypatch.setattr("memory.vector_clusters.MAX_PROBED_SHARE", 1.0)
    index, vectors = clustered_index(), unit_rows(2, 64, seed=99)

    def meanwhile(frozen, live, *, seed):
        clusters = trained_clusters(frozen, live, seed=seed)
        index.put([3], vectors[:1])
        index.put(index.allocate(1), vectors[1:])
        index.free([5])
        return clusters

    monkeypatch.setattr("memory.vector_index.trained_clusters", meanwhile)
    index.train()

    assert index.search(vectors[0], limit=1)[0].tolist() == [3]
    assert index.search(vectors[1], limit=1)[0].tolist() == [400]
    assert index.cluster_state().assignment[5] == np.iinfo(np.uint16).max


def test_clusters_with_fewer_rows_than_wanted_do_not_shorten_the_answer(monkeypatch):
    monkeypatch.setattr("memory.vector_clusters.MAX_PROBED_SHARE", 1.0)
    index, query = clustered_index(), clustered_index().take([0])[0]
    flat = index.search(query, limit=150)[0].tolist()
    index.train()
    state = replace(index.cluster_state(), num_probes=1)
    index = VectorIndex.from_stored_block(index.to_stored_block(), index.rows(), state)

    assert index.search(query, limit=150)[0].tolist() == flat


def test_an_index_needs_training_once_it_is_very_large_and_again_when_it_has_doubled(monkeypatch):
    monkeypatch.setattr("memory.vector_index.CLUSTERS_FROM", 10 * 8)
    index, needed = VectorIndex(8), []
    for number in range(21):
        needed.append(index.needs_training)
        if index.needs_training:
            index.train()
        index.put(index.allocate(1), unit_rows(1, seed=number))

    assert [size for size, each in enumerate(needed) if each] == [10, 20]


def test_clusters_come_back_with_a_stored_block():
    index = clustered_index()
    index.train()
    state = index.cluster_state()
    again = VectorIndex.from_stored_block(index.to_stored_block(), index.rows(), state)

    assert np.array_equal(again.cluster_state().centroids, state.centroids)
    assert np.array_equal(again.cluster_state().assignment, state.assignment)


@pytest.mark.parametrize(
    ("block", "rows"),
    [
        (unit_rows(399, 64), range(399)),
        (unit_rows(400, 64), range(1, 400)),
        (unit_rows(400, 32), range(400)),
    ],
    ids=["fewer rows", "other rows in use", "other dimension"],
)
def test_clusters_of_another_index_are_refused(block, rows):
    index = clustered_index()
    index.train()

    with pytest.raises(ValueError, match="another index"):
        VectorIndex.from_stored_block(block, rows, index.cluster_state())


def test_an_empty_index_can_be_trained():
    index = VectorIndex(8)
    index.train()

    assert index.cluster_state() is None
