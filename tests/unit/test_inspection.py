"""An index whose parts disagree is told from one whose parts do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memory.inspection import record_of
from memory.records import pack_file
from memory.text_index import TextRow
from tests.doubles import HashEmbedder
from tests.unit.building import chunk, new_index, parsed, put


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def index(embedder):
    index = new_index(embedder)
    put(index, embedder, parsed("a.md", ["One.", "Two."]))
    put(index, embedder, parsed("b.md", ["Two.", "Three."]))
    return index


def faults(index):
    return [(fault.kind, fault.path) for fault in index.inspect().faults]


def row_of(index, path, position):
    return index._state.table[path].rows[position]


def test_a_sound_index_has_no_fault(index):
    assert faults(index) == []


def test_a_row_that_words_cannot_find_is_a_fault_of_both_sides(index):
    index._state.text.apply(add=[], remove=[row_of(index, "a.md", 1)])

    assert faults(index) == [("sides", ""), ("row", "a.md")]


def test_a_row_without_a_vector_is_a_fault_of_both_sides(index):
    index._state.vectors.free([row_of(index, "b.md", 1)])

    assert faults(index) == [("sides", ""), ("row", "b.md")]


def test_a_row_that_nobody_owns_is_a_fault(index):
    index._state.text.apply(add=[TextRow(99, "c.md", "", "", "stray", "")], remove=[])

    assert faults(index) == [("sides", "")]


def test_a_row_of_two_sections_is_a_fault(index):
    file = index._state.table["a.md"]
    shared = replace(file, rows=(file.rows[0], file.rows[0]))
    index._state.table._files["a.md"] = shared

    assert ("row", "a.md") in faults(index)


@pytest.mark.parametrize("value", [0.5, 0.0, np.nan, np.inf])
def test_a_vector_that_is_not_of_length_one_is_a_fault(index, value):
    row = row_of(index, "a.md", 0)
    with index._state.vectors._memory.changing([row]) as store:
        store.write(np.array([row]), np.full((1, 16), value, np.float32))

    expected = [] if value == 0 else [("vector", "a.md")]  # zeros: a provider refuses the text
    assert faults(index) == expected


def test_a_model_of_ones_own_refuses_nothing():
    embedder = HashEmbedder()
    embedder.info = replace(embedder.info, provider="local")
    index = new_index(embedder)
    put(index, embedder, parsed("a.md", ["One."]))
    index._state.vectors.put([0], np.zeros((1, 16), np.float32))

    assert faults(index) == [("vector", "a.md")]


def test_equal_texts_with_other_vectors_are_a_fault(index, embedder):
    other = embedder.embed_documents(["other"])
    index._state.vectors.put([row_of(index, "b.md", 0)], other)

    (fault,) = index.inspect().faults
    assert (fault.kind, fault.path) == ("vector", "b.md")
    assert "same text in a.md" in fault.detail


def test_only_the_files_that_are_asked_for_are_told(index):
    found = index.inspect(paths=["b.md", "none.md"], wants_vectors=True)

    assert [record.path for record in found.records] == ["b.md"]
    assert len(found.hashes) == len(found.vectors) == 2
    assert (found.num_files, found.num_chunks) == (2, 4)


BASE = parsed("a.md", ["One.", "Two."], title="T", description="D", tags=("x",))


@pytest.mark.parametrize(
    "changed",
    [
        {"raw_path": "A.md"},
        {"mtime_ns": 2},
        {"size": 1},
        {"inode": 8},
        {"title": "U"},
        {"description": "E"},
        {"summary": "S"},
        {"tags": ("y",)},
        {"dates": ()},
        {"num_replaced_bytes": 1},
        {"chunks": BASE.chunks[::-1]},
        {"chunks": BASE.chunks[:1]},
        {"chunks": (chunk("One.", line=2), BASE.chunks[1])},
        {"chunks": (replace(BASE.chunks[0], num_parts=2), BASE.chunks[1])},
    ],
    ids=str,
)
def test_everything_that_is_known_of_a_file_shows_in_its_record(changed):
    record = record_of(pack_file(BASE))

    assert record == record_of(pack_file(replace(BASE)))
    assert record != record_of(pack_file(replace(BASE, **changed)))
