"""Do stored segments keep their rows and terms, and is only the right Whoosh accepted?"""

import os
import pickle
import tempfile

import numpy as np
import pytest
import whoosh
from whoosh.codec.whoosh3 import W3Codec
from whoosh.index import TOC

from memory.errors import PackagingError
from memory.inversion import AnalysedRow, InvertedSegment, invert, merge
from memory.posting_blocks import BLOCK
from memory.posting_lists import FIELDS, FieldPostings
from memory.posting_reading import unpickled
from memory.segments import (
    SCHEMA,
    MemoryStorage,
    StoredSegment,
    open_index,
    store_index,
    write_segment,
)


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


def test_the_first_look_ups_find_what_the_later_ones_do():
    rng = np.random.default_rng(5)
    words = [f"{number:x}" for number in rng.integers(0, 4000, 300)]
    segment = stored_segment(
        {row: {"content": [word], "path": ["x"]} for row, word in enumerate(words)}
    )
    asked = [*words, "", "0x", "zz", "x"]

    def answers(segment, words):
        return [
            (segment.doc_frequency("content", word), segment.with_prefix("content", word, 5))
            for word in words
        ]

    # Many look-ups in one segment, and each first one in a segment that was just opened.
    later = answers(segment, asked)
    first = [answers(segment.with_rows(segment.rows), [word])[0] for word in asked]

    assert first == later
    assert [count for count, _ in later] == [words.count(word) for word in asked]


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


class Evil:
    """Makes a folder when it is unpickled, as an attacker would run a program."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_a_table_of_contents_that_would_run_code_is_refused(tmp_path):
    """Checksums do not help against who writes them, too."""
    forged = MemoryStorage()
    TOC(SCHEMA, [Evil(tmp_path / "ran")], 1).write(forged, "MAIN")

    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        list(open_index(forged.files))
    assert not (tmp_path / "ran").exists()


def test_no_file_that_whoosh_opens_can_run_code(tmp_path):
    """The term file, too, has a pickle at its end."""
    storage = MemoryStorage()
    storage.files["MAIN.trm"] = pickle.dumps(Evil(tmp_path / "ran"))

    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        storage.open_file("MAIN.trm").read_pickle()
    assert not (tmp_path / "ran").exists()


def test_a_posting_that_would_run_code_is_refused():
    class Harmful:
        def __reduce__(self):
            return print, ("run",)

    with pytest.raises(pickle.UnpicklingError, match="unexpected"):
        unpickled(pickle.dumps(Harmful()))


def written_by_the_codec(data):
    """Returns (storage, segment) as Whoosh's own writers store rows."""
    storage = MemoryStorage()
    codec = W3Codec(BLOCK)
    segment = codec.new_segment(storage, "MAIN")
    lengths = {field: data.lengths[field].astype(int).tolist() for field in FIELDS}
    documents = codec.per_document_writer(storage, segment)
    for docnum, row in enumerate(data.rows.tolist()):
        documents.start_doc(docnum)
        for field in FIELDS:
            documents.add_field(field, SCHEMA[field], None, lengths[field][docnum])
        documents.add_column_value("row", SCHEMA["row"].column_type, row)
        documents.finish_doc()
    documents.close()
    terms = codec.field_writer(storage, segment)
    for field in FIELDS:
        postings = data.field_postings(field)
        terms.start_field(field, SCHEMA[field])
        for term, start, end in zip(
            postings.terms, postings.starts, postings.starts[1:], strict=False
        ):
            terms.start_term(term.encode())
            for place in range(start, end):
                docnum, count = int(postings.docnums[place]), int(postings.counts[place])
                terms.add(docnum, float(count), b"", lengths[field][docnum])
            terms.finish_term()
        terms.finish_field()
    terms.close()
    segment.set_doc_count(len(data.rows))
    return storage, segment


def columns_of(storage, segment):
    """Returns column name to content."""
    prefix = segment.make_filename("")
    return {
        name.removeprefix(prefix): bytes(content)
        for name, content in storage.files.items()
        if name.endswith(".col")
    }


def blocks_of(matcher):
    """Yields all Whoosh knows of each block of a posting list, and its postings."""
    while matcher.is_active():
        statistics = (
            matcher._blocklength,
            matcher.block_max_id(),
            matcher.block_max_weight(),
            matcher.block_min_length(),
            matcher.block_max_length(),
        )
        matcher._read_ids()
        matcher._read_weights()
        yield statistics, list(matcher._ids), list(matcher._weights)
        matcher._next_block()


def terms_of(storage, segment):
    """Returns each (field, term) as Whoosh's reader finds it, with its statistics and blocks."""
    reader = W3Codec().terms_reader(storage, segment)
    found = {}
    for field, term in reader.terms():
        info = reader.term_info(field, term)
        statistics = (
            info.weight(),
            info.doc_frequency(),
            info.min_length(),
            info.max_length(),
            info.max_weight(),
            info.min_id(),
            info.max_id(),
        )
        matcher = reader.matcher(field, term, SCHEMA[field].format)
        found[field, term] = statistics, list(blocks_of(matcher))
    return found


def assert_same_postings(segment, expected):
    """Compares what is read of all terms at once and of each term alone."""
    for field in FIELDS:
        read, postings = segment.field_postings(field), expected.field_postings(field)
        assert read.terms == postings.terms
        for name in ("starts", "docnums", "counts"):
            assert getattr(read, name).tolist() == getattr(postings, name).tolist()
        for term in postings.terms:
            docnums, weights = segment.postings(field, term)
            expected_docnums, expected_weights = expected.postings(field, term)
            assert docnums.tolist() == expected_docnums.tolist()
            assert weights.tolist() == expected_weights.tolist()


def random_rows(rng, *, num_rows, num_words):
    """Returns rows in which a field may be empty and a few terms occur very often."""
    words = ["a", "é", "日本語", "🙂", *(f"w{number}" for number in range(num_words))]
    rows = []
    for row in rng.permutation(num_rows * 3)[:num_rows].tolist():
        terms = {
            field: [words[int(len(words) * place**3)] for place in rng.random(rng.integers(0, 9))]
            for field in FIELDS[:4]
        }
        terms["content"] += ["often"] * int(rng.choice([0, 1, 2, 300, 70_000], p=PORTIONS))
        rows.append(AnalysedRow(row, terms))
    return rows


PORTIONS = [0.5, 0.3, 0.18, 0.018, 0.002]


@pytest.mark.parametrize(
    ("num_rows", "num_words"), [(1, 3), (2, 3), (60, 30), (200, 400), (700, 8)]
)
def test_whoosh_reads_the_same_as_from_what_its_codec_writes(num_rows, num_words):
    rng = np.random.default_rng(num_rows)
    data = invert(random_rows(rng, num_rows=num_rows, num_words=num_words))
    oracle_storage, oracle = written_by_the_codec(data)

    written = write_segment(data)

    segment = written.whoosh_segment
    storage = MemoryStorage()
    storage.files.update(written.files())
    assert terms_of(storage, segment) == terms_of(oracle_storage, oracle)
    assert columns_of(storage, segment) == columns_of(oracle_storage, oracle)
    totals = {field: int(data.field_postings(field).counts.sum()) for field in FIELDS}
    assert segment._fieldlengths == {field: total for field, total in totals.items() if total}
    assert segment.doc_count_all() == oracle.doc_count_all()
    assert_same_postings(written, data)


def test_whoosh_reads_several_blocks_of_a_term_as_from_its_codec():
    num_rows = BLOCK + 600
    terms = {row: {"content": ["x"] * (1 + row % 2)} for row in range(num_rows)}
    terms |= {0: {"content": ["x", "y"]}, num_rows - 1: {"content": ["x", "y"]}}
    data = invert([AnalysedRow(row, terms[row]) for row in range(num_rows)])
    oracle_storage, oracle = written_by_the_codec(data)

    written = write_segment(data)

    storage = MemoryStorage()
    storage.files.update(written.files())
    found = terms_of(storage, written.whoosh_segment)
    assert found == terms_of(oracle_storage, oracle)
    assert len(found["content", b"x"][1]) == 2
    assert_same_postings(written, data)
    assert columns_of(storage, written.whoosh_segment) == columns_of(oracle_storage, oracle)


def test_documents_that_are_far_apart_are_found_by_us_and_by_whoosh():
    """Differences of document numbers take one byte, two and four."""
    docnums = np.array([0, 200, 65_000, 300_000, 300_001], np.int32)
    postings = FieldPostings(["x"], np.array([0, 5]), docnums, np.ones(5, np.uint16))
    nothing = invert([]).field_postings("meta")
    lengths = np.zeros(300_002, np.float32)
    lengths[docnums] = 1
    data = InvertedSegment(
        np.arange(300_002),
        {field: lengths if field == "content" else 0 * lengths for field in FIELDS},
        {field: postings if field == "content" else nothing for field in FIELDS},
    )

    written = write_segment(data)

    storage = MemoryStorage()
    storage.files.update(written.files())
    [(_, ids, weights)] = terms_of(storage, written.whoosh_segment)["content", b"x"][1]
    assert (ids, weights) == (docnums.tolist(), [1] * 5)
    assert_same_postings(written, data)


def test_a_segment_that_whooshs_codec_wrote_is_read_too():
    data = invert(random_rows(np.random.default_rng(5), num_rows=80, num_words=20))

    segment = StoredSegment(*written_by_the_codec(data))

    assert_same_postings(segment, data)


def test_a_segment_without_any_term_is_written():
    segment = stored_segment({0: {}, 1: {}})

    assert segment.rows.tolist() == [0, 1]
    assert segment.field_postings("content").terms == []
    assert segment.postings("content", "a") is None
