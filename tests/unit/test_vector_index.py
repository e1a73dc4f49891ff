"""Does the vector index answer as a plain matrix product would?"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import DimensionMismatch
from memory.vector_index import VectorIndex
from memory.vector_memory import FLOAT16_FROM
from tests.unit.vectors import filled, unit_rows


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


@pytest.mark.parametrize("size", [4, FLOAT16_FROM // 64 + 4])
def test_rows_without_a_vector_are_found_however_they_are_held(size: int):
    index = VectorIndex(64)
    rows = index.allocate(size)
    vectors = np.zeros((size, 64), np.float32)
    vectors[:, 0] = 1
    vectors[1], vectors[2] = 0, np.eye(64)[63]  # nothing, and nothing in its first value
    index.put(rows, vectors)
    before = index.zero_rows()
    index.free([rows[3]])

    assert before == index.zero_rows() == {rows[1]}
    assert VectorIndex(0).zero_rows() == set()
