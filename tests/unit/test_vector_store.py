"""Do both stores scan and overwrite rows as NumPy would?"""

from __future__ import annotations

import threading

import faiss
import numpy as np
import pytest

from memory.vector_store import Float16Store, Float32Store, one_threaded_faiss
from tests.unit.vectors import recall, unit_rows

STORES = (Float32Store, Float16Store)


def filled(kind, vectors):
    store = kind(vectors.shape[1])
    store.grow(len(vectors))
    store.write(slice(None), vectors)
    return store


@pytest.mark.parametrize("kind", STORES)
def test_rows_are_held_rounded_to_the_type_of_the_store(kind):
    vectors = unit_rows(20)
    store = filled(kind, vectors)

    assert store.dtype == store.block().dtype
    assert np.array_equal(store.block(), vectors.astype(store.dtype))
    assert store.read(np.array([7, 2])).dtype == np.float32
    assert np.array_equal(store.read(np.array([7, 2])), vectors[[7, 2]].astype(store.dtype))


@pytest.mark.parametrize(("kind", "off"), [(Float32Store, 0), (Float16Store, 2.5e-4)])
def test_a_component_of_a_unit_vector_is_off_by_no_more_than_documented(kind, off):
    """Between 0.5 and 1 two float16 are 2**-11 apart, so rounding errs by 2**-12 = 2.44e-4."""
    vectors = np.linspace(-1, 1, 4001, dtype=np.float32)[:, None]

    assert np.abs(filled(kind, vectors).read(slice(None)) - vectors).max() <= off


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("masked", [False, True])
def test_a_scan_returns_what_the_matrix_product_of_the_held_rows_says(kind, masked):
    store, query = filled(kind, unit_rows(300)), unit_rows(1, seed=1)[0]
    mask = np.arange(300) % 3 == 0 if masked else None
    cosines, rows = store.scan(query, 10, mask)

    products = store.block().astype(np.float64) @ query
    if masked:
        products[~mask] = -2
    best = np.argsort(-products)[:10]
    assert rows.tolist() == best.tolist()
    assert np.allclose(cosines, products[best], atol=1e-6)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("count", [0, 1, 7, 3000], ids="{} rows".format)
def test_products_of_chosen_rows_come_in_their_order(kind, count):
    store, query = filled(kind, unit_rows(300)), unit_rows(1, seed=1)[0]
    rows = np.random.default_rng(2).integers(0, 300, count)

    for _ in range(2):  # whatever was computed before
        expected = store.block().astype(np.float64)[rows] @ query
        assert np.allclose(store.products(query, rows), expected, atol=1e-6)
        rows = rows[::-1][: count // 2]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("count", [1, 5000])
def test_products_of_all_rows_come_in_their_order(kind, count):
    store = filled(kind, unit_rows(count))

    for query in unit_rows(2, seed=1):
        expected = store.block().astype(np.float64) @ query
        assert np.allclose(store.all_products(query), expected, atol=1e-6)


@pytest.mark.parametrize("kind", STORES)
def test_a_scan_with_fewer_rows_than_wanted_ends_with_row_minus_one(kind):
    store = filled(kind, np.eye(4, dtype=np.float32))
    cosines, rows = store.scan(np.array([1, 0, 0, 0], np.float32), 3, np.arange(4) == 0)

    assert rows.tolist() == [0, -1, -1]
    assert cosines[0] == 1
    assert (cosines[1:] == np.finfo(np.float32).min).all()


@pytest.mark.parametrize("kind", STORES)
def test_an_overwritten_row_is_found_and_a_zeroed_one_is_not(kind):
    store, other = filled(kind, np.eye(6, dtype=np.float32)[:4]), np.eye(6, dtype=np.float32)[5]
    store.write(np.array([2]), other[None])
    store.zero(np.array([1]))

    assert [row.tolist() for row in store.scan(other, 1)] == [[1.0], [2]]
    assert store.block()[1].tolist() == [0] * 6


@pytest.mark.parametrize("kind", STORES)
def test_rows_keep_their_content_while_the_memory_grows(kind):
    vectors = unit_rows(3)
    store = filled(kind, vectors)
    for _ in range(12):
        store.grow(len(store))

    assert len(store) == 3 * 2**12
    assert np.array_equal(store.block()[:3], vectors.astype(store.dtype))
    assert not store.block()[3:].any()


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("dim", [0, 8])
def test_an_empty_store_can_be_read(kind, dim):
    store = kind(dim)

    assert len(store) == 0
    assert store.block().shape == store.read(np.empty(0, np.int64)).shape == (0, dim)


@pytest.mark.parametrize("kind", STORES)
def test_the_block_is_no_copy_and_cannot_be_written(kind):
    store = filled(kind, unit_rows(2))
    block = store.block()
    store.zero(np.array([1]))

    assert not block[1].any()
    with pytest.raises(ValueError, match="read-only"):
        block[0] = 1


def test_faiss_is_limited_to_one_thread_in_each_thread_that_asks():
    """OpenMP keeps the limit by thread: set once, it would hold for one of a pool."""
    found = []

    def ask():
        one_threaded_faiss()
        found.append(faiss.omp_get_max_threads())

    for _ in range(2):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    assert found == [1, 1]


@pytest.mark.slow
def test_float16_finds_what_float32_finds_among_200_000_rows():
    vectors, queries = unit_rows(200_000, 32), unit_rows(50, 32, seed=1)
    exact, rounded = filled(Float32Store, vectors), filled(Float16Store, vectors)

    assert recall(queries, exact.scan, rounded.scan) >= 0.98
