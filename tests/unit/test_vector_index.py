"""Does the vector index answer as a plain matrix product would?"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import DimensionMismatch
from memory.vector_clusters import trained_clusters
from memory.vector_index import VectorIndex
from tests.unit.vectors import clustered_rows, unit_rows


def filled(vectors: np.ndarray) -> VectorIndex:
    index = VectorIndex(vectors.shape[1])
    index.put(index.allocate(len(vectors)), vectors)
    return index


def test_search_returns_what_the_matrix_product_says():
    vectors, query = unit_rows(200), unit_rows(1, seed=1)[0]
    rows, cosines = filled(vectors).search(query, limit=10)

    products = vectors.astype(np.float64) @ query
    best = np.argsort(-products)[:10]
    assert rows.tolist() == best.tolist()
    assert np.allclose(cosines, products[best], atol=1e-6)


def test_rows_that_are_not_similar_at_all_are_left_out():
    rows, _cosines = filled(np.eye(4, dtype=np.float32)).search(
        np.array([0.6, 0.8, 0, 0], np.float32), limit=4
    )

    assert rows.tolist() == [1, 0]


def test_a_freed_row_never_answers_and_is_reused_first():
    vectors = unit_rows(5)
    index = filled(vectors)
    index.free([3, 1])

    rows, _cosines = index.search(vectors[3], limit=5)
    assert not {1, 3} & set(rows.tolist())
    assert index.rows() == [0, 2, 4]
    assert index.allocate(3) == [1, 3, 5]


def test_a_row_is_overwritten_in_place():
    index = filled(unit_rows(3))
    replacement = unit_rows(1, seed=9)
    index.put([1], replacement)

    assert index.search(replacement[0], limit=1)[0].tolist() == [1]
    assert np.array_equal(index.take([1]), replacement)


def test_rows_that_tie_with_the_last_are_all_returned():
    """Which of many equal rows answers must not depend on who came first."""
    vectors = unit_rows(50)
    vectors[10:18] = vectors[10]
    rows, cosines = filled(vectors).search(vectors[10], limit=2)

    assert sorted(rows.tolist()) == list(range(10, 18))
    assert np.allclose(cosines, 1, atol=1e-6)


def test_an_empty_index_has_no_answer():
    rows, cosines = VectorIndex(8).search(unit_rows(1)[0], limit=3)

    assert rows.tolist() == cosines.tolist() == []


def test_similarities_of_chosen_rows():
    vectors, query = unit_rows(20), unit_rows(1, seed=1)[0]
    found = filled(vectors).similarities(np.array([3, 7], np.int64), query)

    assert np.allclose(found, vectors[[3, 7]].astype(np.float64) @ query, atol=1e-6)


@pytest.mark.parametrize("few_rows", [0, 1000], ids=["many rows", "few rows"])
def test_rows_that_are_asked_for_come_first_and_once(few_rows, monkeypatch):
    monkeypatch.setattr("memory.vector_candidates._FEW_ROWS", few_rows)
    vectors, query = unit_rows(40), unit_rows(1, seed=1)[0]
    products = vectors.astype(np.float64) @ query
    ranked = np.argsort(-products)
    also = ranked[[0, 30, 2, 20]]

    rows, cosines = filled(vectors).search(query, limit=3, also=also)

    assert rows.tolist() == [*also, ranked[1]]
    assert np.allclose(cosines, products[rows], atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([-0.5, 0.0, 0.2, 0.4, 0.8]), min_size=1, max_size=80),
    st.integers(1, 6),
)
def test_few_rows_are_ranked_as_many_are(cosines, limit):
    """Few different cosines make ties, some more than are returned, and freed rows are zero."""
    index, query = VectorIndex(2), np.array([1, 0], np.float32)
    vectors = np.array([(cosine, (1 - cosine**2) ** 0.5) for cosine in cosines], np.float32)
    rows = index.allocate(len(cosines) + 1)
    index.put(rows[:-1], vectors)
    also = np.arange(min(2, len(cosines)))
    similar = [cosine for cosine in sorted(cosines, reverse=True) if cosine > 0]
    num_tied = sum(cosine >= similar[:limit][-1] for cosine in similar) if similar else 0

    found, products = index.search(query, limit=limit, also=also)

    assert np.allclose(products, np.array(cosines)[found], atol=1e-6)
    assert found[: len(also)].tolist() == also.tolist()
    if num_tied <= 8 * limit:
        best, _cosines = index.search(query, limit=limit)
        assert len(best) == num_tied
        assert sorted(found) == sorted({*also.tolist(), *best.tolist()})
    else:
        assert len(found) <= 8 * limit + len(also)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_never_reach_faiss(bad):
    """FAULTS 3.4: it would store them and never return them."""
    index = filled(unit_rows(2))
    vector = unit_rows(1)
    vector[0, 3] = bad

    with pytest.raises(ValueError, match="not finite"):
        index.put([1], vector)
    with pytest.raises(ValueError, match="not finite"):
        index.search(vector[0], limit=1)
    assert np.array_equal(index.take([0, 1]), unit_rows(2))


@pytest.mark.slow
def test_another_dimension_is_refused_even_without_assertions():
    """FAULTS 3.4: under ``python -O`` FAISS reads past the buffer."""
    script = (
        "import numpy as np\n"
        "from memory.errors import DimensionMismatch\n"
        "from memory.vector_index import VectorIndex\n"
        "index = VectorIndex(8)\n"
        "index.put(index.allocate(1), np.full((1, 8), 8**-0.5, np.float32))\n"
        "for call in (lambda: index.put([0], np.ones((1, 9), np.float32)),\n"
        "             lambda: index.search(np.ones(4, np.float32), limit=1)):\n"
        "    try:\n"
        "        call()\n"
        "    except DimensionMismatch as error:\n"
        "        print(error.expected, error.found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "8 9\n8 4\n"


@pytest.mark.parametrize("rows", [[0, 0], [0, 2], [-1, 0], [0]])
def test_bad_rows_change_nothing(rows):
    index = filled(unit_rows(2))

    with pytest.raises(ValueError, match="row"):
        index.put(rows, unit_rows(2, seed=5))
    assert np.array_equal(index.take([0, 1]), unit_rows(2))


def test_arrays_from_outside_are_neither_kept_nor_written():
    vectors = unit_rows(3)
    vectors.flags.writeable = False
    before = vectors.tobytes()
    index = filled(vectors)
    index.search(vectors[0], limit=2)
    index.free([0, 1, 2])

    assert vectors.tobytes() == before


def test_a_dimension_mismatch_names_both():
    with pytest.raises(DimensionMismatch, match="dimension 8, found 3"):
        filled(unit_rows(1)).search(np.ones(3, np.float32), limit=1)


def test_a_block_keeps_its_row_numbers():
    vectors = unit_rows(3)
    index = VectorIndex.from_block(vectors, [1, 4, 5])

    assert index.rows() == [1, 4, 5]
    assert np.array_equal(index.to_block(), vectors)
    assert index.search(vectors[1], limit=1)[0].tolist() == [4]
    assert index.allocate(4) == [0, 2, 3, 6]


@given(st.lists(st.integers(-3, 3).filter(bool), max_size=40), st.integers(0, 1000))
@settings(deadline=None)
def test_any_history_answers_as_a_fresh_index_of_the_same_rows(steps, seed):
    """Positive steps add so many rows, negative ones free the lowest so many."""
    index, kept = VectorIndex(6), {}
    for number, step in enumerate(steps):
        if step > 0:
            vectors, rows = unit_rows(step, 6, seed * 100 + number), index.allocate(step)
            index.put(rows, vectors)
            kept |= dict(zip(rows, vectors, strict=True))
        else:
            rows = sorted(kept)[:-step]
            index.free(rows)
            kept = {row: vector for row, vector in kept.items() if row not in rows}
    query = unit_rows(1, 6, seed)[0]

    found = dict(zip(*(array.tolist() for array in index.search(query, limit=200)), strict=True))

    products = {row: float(vector.astype(np.float64) @ query) for row, vector in kept.items()}
    assert index.rows() == sorted(kept)
    assert len(index) == len(kept)
    assert found == pytest.approx({row: p for row, p in products.items() if p > 1e-6}, abs=1e-6)


@pytest.fixture
def float16_from_80_values(monkeypatch):
    monkeypatch.setattr("memory.vector_memory.FLOAT16_FROM", 80)


@pytest.mark.usefixtures("float16_from_80_values")
def test_an_index_that_grows_to_the_border_goes_on_in_float16():
    vectors, query = unit_rows(12), unit_rows(1, seed=1)[0]
    index = VectorIndex(8)
    index.put(index.allocate(9), vectors[:9])
    assert index.dtype == np.float32
    index.put(index.allocate(3), vectors[9:])
    index.free([4])

    rounded = vectors.astype(np.float16).astype(np.float32)
    rounded[4] = 0
    products = rounded @ query
    rows, cosines = index.search(query, limit=3)
    assert index.dtype == np.float16
    assert np.array_equal(index.take(range(12)), rounded)
    assert rows.tolist() == np.argsort(-products)[:3].tolist()
    assert np.allclose(cosines, products[rows], atol=1e-6)
    assert np.allclose(index.similarities(rows, query), cosines, atol=1e-6)
    assert index.allocate(2) == [4, 12]


@pytest.mark.usefixtures("float16_from_80_values")
def test_rows_that_tie_with_the_last_are_all_returned_in_float16():
    vectors = unit_rows(50)
    vectors[10:18] = vectors[10]
    rows, _cosines = filled(vectors).search(vectors[10], limit=2)

    assert sorted(rows.tolist()) == list(range(10, 18))


@pytest.mark.parametrize("held", [np.float32, np.float16])
@pytest.mark.usefixtures("float16_from_80_values")
def test_the_size_and_not_the_type_of_a_block_decides_how_it_is_held(held):
    few, many = unit_rows(9).astype(held), unit_rows(10).astype(held)

    assert VectorIndex.from_block(few, range(9)).dtype == np.float32
    assert VectorIndex.from_block(many, range(10)).dtype == np.float16
    assert np.array_equal(VectorIndex.from_block(few, range(9)).to_block(), few)


@pytest.mark.parametrize("count", [5, 12])
@pytest.mark.usefixtures("float16_from_80_values")
def test_a_stored_block_makes_the_same_index_again(tmp_path, count):
    index = filled(unit_rows(count))
    index.free([1, 3])
    np.save(tmp_path / "block.npy", index.to_stored_block())
    again = VectorIndex.from_stored_block(
        np.load(tmp_path / "block.npy", mmap_mode="r"), index.rows()
    )

    assert again.dtype == index.dtype
    assert again.rows() == index.rows()
    assert np.array_equal(again.to_stored_block(), index.to_stored_block())
    assert again.allocate(3) == [1, 3, count]


def test_what_a_stored_block_holds_in_free_rows_never_answers():
    block = unit_rows(3)
    block[1] = np.nan
    index = VectorIndex.from_stored_block(block, [2])

    assert index.search(block[2], limit=3)[0].tolist() == [2]
    assert not index.to_stored_block()[:2].any()


def test_the_stored_block_is_no_copy_and_read_only():
    index = filled(unit_rows(3))
    block = index.to_stored_block()
    index.free([2])

    assert not block[2].any()
    assert not block.flags.writeable


@pytest.mark.parametrize("bad", [np.nan, np.inf, 70_000])
@pytest.mark.parametrize("held", [np.float32, np.float16])
def test_a_block_with_a_value_that_no_store_can_hold_is_refused(held, bad):
    block = unit_rows(3).astype(held)
    with np.errstate(over="ignore"):
        block[1, 2] = bad

    with pytest.raises(ValueError, match="not finite"):
        VectorIndex.from_block(block, range(3))
    with pytest.raises(ValueError, match="not finite"):
        VectorIndex.from_stored_block(block, range(3))


@pytest.mark.parametrize("rows", [[0, 0, 1], [-1, 0, 1], [0, 1]])
def test_a_block_with_bad_rows_is_refused(rows):
    with pytest.raises(ValueError, match="row"):
        VectorIndex.from_block(unit_rows(3), rows)


@pytest.mark.parametrize("rows", [[0, 0], [-1, 0], [2, 3]])
def test_a_stored_block_with_bad_rows_is_refused(rows):
    with pytest.raises(ValueError, match="row"):
        VectorIndex.from_stored_block(unit_rows(3), rows)


@given(
    st.lists(st.integers(-3, 3).filter(bool), max_size=12), st.integers(1, 12), st.integers(1, 5)
)
@settings(deadline=None)
def test_frozen_blocks_are_those_of_the_moment_of_freezing(steps, count, rows_a_block):
    """Between two blocks, a positive step adds so many rows, a negative one rewrites and frees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory.vector_memory.FLOAT16_FROM", 80)
        index, seen = filled(unit_rows(count)), []
        before, dtype = index.to_stored_block().copy(), index.dtype
        with index.frozen() as frozen:
            blocks = frozen.blocks(rows_a_block)
            for number, step in enumerate(steps):
                live = index.rows()[: abs(step)]
                if step > 0:
                    index.put(index.allocate(step), unit_rows(step, seed=number + 1))
                else:
                    index.put(live, unit_rows(len(live), seed=number + 1))
                    index.free(live[::2])
                seen.extend([block] if (block := next(blocks, None)) is not None else [])
            seen.extend(blocks)
            again = frozen.read(np.arange(count)[::-1])

    assert np.array_equal(np.concatenate(seen), before)
    assert {block.dtype for block in seen} == {dtype}
    assert [len(block) for block in seen[:-1]] == [rows_a_block] * (len(seen) - 1)
    assert np.array_equal(again, before[::-1])
    assert frozen.live.tolist() == list(range(count))


def test_two_frozen_states_are_kept_apart():
    vectors = unit_rows(3)
    index = filled(vectors[:1])
    with index.frozen() as first:
        index.put([0], vectors[1:2])
        with index.frozen() as second:
            index.put([0], vectors[2:])
            blocks = [next(frozen.blocks(1)) for frozen in (first, second)]

    assert np.array_equal(np.concatenate(blocks), vectors[:2])


def test_a_frozen_state_ends_with_its_context():
    index = filled(unit_rows(2))
    with index.frozen() as frozen:
        blocks = frozen.blocks(1)
        next(blocks)

    with pytest.raises(ValueError, match="not frozen"):
        next(blocks)


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
