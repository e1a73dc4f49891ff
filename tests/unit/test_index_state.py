"""Do the parts of the index always fit together?"""

from __future__ import annotations

import numpy as np
import pytest

from memory.chunk_table import ChunkTable, IndexedFile
from memory.file_diff import diff
from memory.index_state import IndexState
from memory.records import pack_file
from memory.row_noise import RowNoise
from memory.text_index import TextIndex
from memory.vector_cache import VectorCache
from memory.vector_index import VectorIndex
from tests.unit.building import ENGLISH, parsed


@pytest.fixture
def state():
    return IndexState(
        ChunkTable(), VectorIndex(4), TextIndex(ENGLISH), VectorCache(), RowNoise(0.1), revision=0
    )


def replace_file(state: IndexState, path: str, contents: list[str] | None) -> None:
    file = parsed(path, contents) if contents is not None else None
    packed = pack_file(file) if file is not None else None
    change = diff(state.table.file(path), packed)
    vectors = np.eye(4, dtype=np.float32)[: change.rows.count(None)]
    state.replace_file(path, packed, change, vectors)


def cached(state: IndexState) -> set[bytes]:
    return {name for name, _vector in state.cache}


def hash_of(content: str) -> bytes:
    return bytes.fromhex(parsed("any.md", [content]).chunks[0].content_hash)


def test_chunks_are_matched_with_rows_by_text_and_order():
    before = IndexedFile(pack_file(parsed("a.md", ["A", "B", "A", "C"])), (10, 11, 12, 13))
    change = diff(before, pack_file(parsed("a.md", ["A", "New", "C", "A", "A"])))

    assert change.rows == (10, None, 13, 12, None)
    assert change.removed == (11,)


def test_a_new_file_has_no_rows_and_a_removed_one_keeps_none():
    assert diff(None, pack_file(parsed("a.md", ["A", "A"]))).rows == (None, None)
    assert diff(IndexedFile(pack_file(parsed("a.md", ["A", "A"])), (3, 4)), None).removed == (3, 4)


def test_only_texts_that_no_row_holds_are_cached(state):
    replace_file(state, "a.md", ["One", "Two"])
    replace_file(state, "b.md", ["One"])
    assert cached(state) == set()

    replace_file(state, "a.md", None)
    assert cached(state) == {hash_of("Two")}
    replace_file(state, "b.md", None)
    assert cached(state) == {hash_of("One"), hash_of("Two")}
    replace_file(state, "c.md", ["Two"])
    assert cached(state) == {hash_of("One")}


def test_a_change_that_the_text_half_refuses_takes_no_row(state, monkeypatch):
    replace_file(state, "a.md", ["One"])

    def refuse(*_args, **_more):
        raise MemoryError

    monkeypatch.setattr(TextIndex, "apply", refuse)
    with pytest.raises(MemoryError):
        replace_file(state, "b.md", ["Two", "Three"])
    monkeypatch.undo()
    replace_file(state, "c.md", ["Four"])

    assert state.table["c.md"].rows == (1,)
    assert state.table.file("b.md") is None
    assert state.revision == 2


def test_owners_follow_chunks_that_move(state):
    replace_file(state, "a.md", ["One", "Two"])
    replace_file(state, "a.md", ["Two", "One"])

    assert [state.table.owner(row) for row in (0, 1)] == [("a.md", 1), ("a.md", 0)]
    assert state.table.hash_of(0) == hash_of("One")


def test_hashes_forget_removed_rows(state):
    replace_file(state, "a.md", ["One", "One"])
    replace_file(state, "a.md", ["One"])
    assert state.table.rows_with(hash_of("One")) == {0}

    replace_file(state, "a.md", None)
    assert state.table.rows_with(hash_of("One")) == set()
    assert (state.table.num_files, state.table.num_chunks) == (0, 0)


def test_a_table_of_many_files_is_that_of_one_after_another():
    files = [
        IndexedFile(pack_file(parsed("b.md", ["One", "Two"])), (4, 1)),
        IndexedFile(pack_file(parsed("blank.md")), ()),
        IndexedFile(pack_file(parsed("a.md", ["Two", "Three"])), (0, 3)),
    ]
    one_by_one, at_once = ChunkTable(), ChunkTable.of(files)
    for file in files:
        one_by_one.replace(file.path, file)

    assert at_once.files() == one_by_one.files()
    assert (at_once.num_files, at_once.num_chunks) == (3, 4)
    assert [at_once.owner(row) for row in (0, 1, 3, 4)] == [
        ("a.md", 0),
        ("b.md", 1),
        ("a.md", 1),
        ("b.md", 0),
    ]
    with pytest.raises(KeyError):
        at_once.owner(2)
    for text in ("One", "Two", "Three", "Four"):
        assert at_once.rows_with(hash_of(text)) == one_by_one.rows_with(hash_of(text))


def test_rows_belong_to_the_file_that_owns_them_now():
    table = ChunkTable.of(
        [
            IndexedFile(pack_file(parsed("a.md", ["One", "Two"])), (4, 1)),
            IndexedFile(pack_file(parsed("b.md", ["Three", "Four"])), (0, 3)),
        ]
    )
    rows = np.array([3, 1, 4, 0])
    assert table.belong_to(rows, ["a.md"]).tolist() == [False, True, True, False]
    assert table.belong_to(rows, ["b.md", "a.md"]).all()
    assert not table.belong_to(rows, []).any()

    table.replace("a.md", None)
    table.replace("b.md", IndexedFile(pack_file(parsed("b.md", ["Four", "Three"])), (3, 4)))
    table.replace("c.md", IndexedFile(pack_file(parsed("c.md", ["One", "Two"])), (0, 1)))
    assert table.belong_to(rows, ["c.md"]).tolist() == [False, True, False, True]


def test_a_path_that_occurs_twice_is_refused():
    file = IndexedFile(pack_file(parsed("a.md", ["One"])), (0,))

    with pytest.raises(ValueError, match="twice"):
        ChunkTable.of([file, file])
