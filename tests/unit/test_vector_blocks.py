"""Is a vector index that is stored, loaded or read while it changes the same index?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.vector_index import VectorIndex
from tests.unit.vectors import filled, unit_rows


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
