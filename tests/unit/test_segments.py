"""Do stored segments keep their rows and terms, and is only the right Whoosh accepted?"""

import pickle
import tempfile

import numpy as np
import pytest
import whoosh

from memory.errors import PackagingError
from memory.inversion import AnalysedRow, invert, merge
from memory.segments import MemoryStorage, open_index, store_index, write_segment
from memory.stored_terms import _unpickled


def stored_segment(rows):
    return write_segment(invert([AnalysedRow(row, terms) for row, terms in rows.items()]))


def test_rows_and_terms_are_read_as_they_were_written():
    segment = stored_segment(
        {70: {"content": ["b", "a", "b"]}, 0: {}, 2**40: {"content": ["b"], "path": ["a"]}}
    )

    docnums, weights = segment.postings("content", "b")
    assert (docnums.tolist(), weights.tolist()) == ([0, 2], [2, 1])
    assert segment.rows.tolist() == [70, 0, 2**40]
    assert segment.lengths["content"].tolist() == [3, 0, 1]
    assert segment.doc_frequency("content", "a") == 1
    assert segment.postings("headlines", "a") is None


def test_a_posting_list_longer_than_a_block_is_whole():
    num_rows = 4096 + 500
    segment = stored_segment({row: {"content": ["x"] * (1 + row % 3)} for row in range(num_rows)})

    docnums, weights = segment.postings("content", "x")

    assert docnums.tolist() == list(range(num_rows))
    assert weights.tolist() == [1 + row % 3 for row in range(num_rows)]


def test_terms_with_a_prefix_come_sorted_and_limited():
    segment = stored_segment({1: {"path": ["alto", "alice", "al", "bob"], "meta": ["alma"]}})

    assert segment.with_prefix("path", "al", 10) == ["al", "alice", "alto"]
    assert segment.with_prefix("path", "ali", 10) == ["alice"]
    assert segment.with_prefix("path", "al", 2) == ["al", "alice"]
    assert segment.with_prefix("path", "zz", 2) == []


def test_merging_drops_deleted_rows_and_renumbers_the_others():
    segment = stored_segment({row: {"content": ["x", f"only{row}"]} for row in range(4)})
    new = invert([AnalysedRow(9, {"content": ["x"]})])

    merged = merge([(new, np.array([True])), (segment, np.array([True, False, True, False]))])

    for each in (merged, write_segment(merged)):
        assert each.rows.tolist() == [9, 0, 2]
        assert each.postings("content", "x")[0].tolist() == [0, 1, 2]
        assert each.postings("content", "only2")[0].tolist() == [2]
        assert each.postings("content", "only1") is None
        assert each.with_prefix("content", "only", 9) == ["only0", "only2"]


def test_the_stored_index_lists_segments_with_their_deletions():
    segment = stored_segment({5: {"meta": ["a"]}, 6: {}})
    files = store_index([(segment, np.array([1]))])

    [(opened, deleted)] = open_index(files)

    assert (opened.rows.tolist(), deleted.tolist()) == ([5, 6], [1])


def test_an_index_holds_the_files_of_its_segments_and_one_table_of_contents():
    first, second = (stored_segment({row: {"meta": ["a"]}}) for row in (5, 6))
    none = np.empty(0, np.intp)

    files = store_index([(first, none), (second, none)])

    [toc] = files.keys() - first.files().keys() - second.files().keys()
    assert len(files) == len(first.files()) + len(second.files()) + 1
    assert "toc" in toc


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
