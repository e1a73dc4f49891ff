"""Do stored segments keep their rows and terms, and is only the right Whoosh accepted?"""

import pickle
import tempfile

import numpy as np
import pytest
import whoosh

from memory.errors import PackagingError
from memory.segments import (
    AnalysedRow,
    MemoryStorage,
    SegmentData,
    drop_segment,
    open_index,
    store_index,
    write_segment,
)
from memory.stored_terms import _unpickled


def stored_segment(rows):
    storage, data = MemoryStorage(), SegmentData()
    for row, terms in rows.items():
        data.add_row(AnalysedRow(row, terms))
    return storage, write_segment(storage, data)


def test_rows_and_terms_are_read_as_they_were_written():
    _, segment = stored_segment(
        {70: {"content": ["b", "a", "b"]}, 0: {}, 2**40: {"content": ["b"], "path": ["a"]}}
    )

    docnums, weights = segment.terms.postings("content", "b")
    assert (docnums.tolist(), weights.tolist()) == ([0, 2], [2, 1])
    assert segment.rows.tolist() == [70, 0, 2**40]
    assert segment.lengths["content"].tolist() == [3, 0, 1]
    assert segment.terms.doc_frequency("content", "a") == 1
    assert segment.terms.postings("headlines", "a") is None


def test_a_posting_list_longer_than_a_block_is_whole():
    num_rows = 4096 + 500
    _, segment = stored_segment(
        {row: {"content": ["x"] * (1 + row % 3)} for row in range(num_rows)}
    )

    docnums, weights = segment.terms.postings("content", "x")

    assert docnums.tolist() == list(range(num_rows))
    assert weights.tolist() == [1 + row % 3 for row in range(num_rows)]


def test_terms_with_a_prefix_come_sorted_and_limited():
    _, segment = stored_segment({1: {"path": ["alto", "alice", "al", "bob"], "meta": ["alma"]}})

    assert segment.terms.with_prefix("path", "al", 10) == ["al", "alice", "alto"]
    assert segment.terms.with_prefix("path", "ali", 10) == ["alice"]
    assert segment.terms.with_prefix("path", "al", 2) == ["al", "alice"]
    assert segment.terms.with_prefix("path", "zz", 2) == []


def test_merging_drops_deleted_rows_and_renumbers_the_others():
    _, segment = stored_segment({row: {"content": ["x", f"only{row}"]} for row in range(4)})
    data = SegmentData()
    data.add_row(AnalysedRow(9, {"content": ["x"]}))
    data.add_segment(segment, np.array([True, False, True, False]))

    merged = write_segment(MemoryStorage(), data)

    assert merged.rows.tolist() == [9, 0, 2]
    assert merged.terms.postings("content", "x")[0].tolist() == [0, 1, 2]
    assert merged.terms.postings("content", "only2")[0].tolist() == [2]
    assert merged.terms.postings("content", "only1") is None


def test_the_stored_index_lists_segments_with_their_deletions():
    storage, segment = stored_segment({5: {"meta": ["a"]}, 6: {}})
    store_index(storage, [(segment, np.array([1]))])

    [(opened, deleted)] = open_index(storage)

    assert (opened.rows.tolist(), deleted.tolist()) == ([5, 6], [1])


def test_storing_again_leaves_only_files_that_are_listed():
    storage, kept = stored_segment({5: {"meta": ["a"]}})
    data = SegmentData()
    data.add_row(AnalysedRow(6, {}))
    write_segment(storage, data)
    store_index(storage, [(kept, np.empty(0, np.intp))])
    once = set(storage.files)

    store_index(storage, [(kept, np.empty(0, np.intp))])

    assert len(storage.files) == len(once)
    drop_segment(storage, kept)
    assert len(storage.files) == 1


def test_nothing_is_written_to_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    stored_segment({1: {"content": ["a"]}})

    assert not list(tmp_path.iterdir())


def test_a_successor_under_the_same_import_name_is_refused(monkeypatch):
    monkeypatch.setattr(whoosh, "__version__", (3, 54, 0))

    with pytest.raises(PackagingError, match=r"3\.54\.0.*2\.7\.4"):
        MemoryStorage()


def test_a_posting_that_would_run_code_is_refused():
    class Harmful:
        def __reduce__(self):
            return print, ("run",)

    with pytest.raises(pickle.UnpicklingError, match="unexpected"):
        _unpickled(pickle.dumps(Harmful()))
