"""Are the scores those of Whoosh's own searcher, and the best rows the best?"""

import math
import random

import numpy as np
import pytest
from whoosh import scoring
from whoosh.index import FileIndex
from whoosh.query import Or, Term

from memory.analysis import Analyzer
from memory.inversion import AnalysedRow, invert
from memory.posting_lists import FIELDS
from memory.postings import Collection
from memory.segments import SCHEMA, MemoryStorage
from memory.term_impacts import ENTRY_BYTES, K1, B, Boosts, Lengths
from memory.text_index import TextIndex, TextRow
from memory.text_query import FIELD_BOOSTS

ANALYZER = Analyzer("english")


class SharedIdf(scoring.BM25F):
    """Whoosh's BM25F with Lucene's idf, one for all fields of a term."""

    def idf(self, searcher, fieldname, text):
        del fieldname
        frequency = max(searcher.doc_frequency(field, text) for field in FIELDS)
        documents = searcher.doc_count_all()
        return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def whoosh_scores(files, terms):
    """Returns row id to score of every document that Whoosh's own searcher finds."""
    storage = MemoryStorage()
    storage.files.update(files)
    query = Or([Term(field, term, FIELD_BOOSTS[field]) for field in FIELDS for term in terms])
    with FileIndex(storage, schema=SCHEMA).searcher(weighting=SharedIdf(B=B, K1=K1)) as searcher:
        rows = searcher.reader().column_reader("row")
        return {rows[hit.docnum]: hit.score for hit in searcher.search(query, limit=None)}


def random_text(rng, length):
    # Squaring makes some words frequent and most rare, as in a language.
    return " ".join(f"w{int(80 * rng.random() ** 2)}x" for _ in range(length))


def random_row(rng, row):
    lengths = [rng.randint(0, most) for most in (3, 6, 15, 60, 4)]
    return TextRow(row, *(random_text(rng, length) for length in lengths))


def edited_index(rng, *, num_rows, num_edits):
    index = TextIndex(ANALYZER)
    index.apply(add=[random_row(rng, row) for row in range(num_rows)], remove=())
    live = set(range(num_rows))
    for edit in range(num_edits):
        removed = rng.sample(sorted(live), 4)
        added = [num_rows + 3 * edit, num_rows + 3 * edit + 1, removed[0]]
        index.apply(add=[random_row(rng, row) for row in added], remove=removed)
        live = (live - set(removed)) | set(added)
    return index


@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_those_of_whoosh_after_updates_and_deletions(seed):
    rng = random.Random(seed)
    index = edited_index(rng, num_rows=60, num_edits=26)
    if seed == 1:
        index.compact()
    files = index.files()

    for _ in range(3):
        # The trailing word keeps the prefix rule for paths out of the comparison.
        query = random_text(rng, rng.randint(1, 8)) + " the"
        hits = index.search(query, limit=1000)
        expected = whoosh_scores(files, hits.terms)
        actual = dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))
        assert actual.keys() == expected.keys()
        assert actual == pytest.approx(expected, rel=1e-4)
        assert len(actual) > 1


def test_a_frequent_term_in_a_large_segment_scores_as_in_whoosh():
    """Terms of more than a twentieth of the documents are kept as rows of all documents."""
    rng = random.Random(7)
    index = TextIndex(ANALYZER)
    rows = [
        TextRow(row, "", "", "", random_text(rng, rng.randint(1, 9)), "") for row in range(1500)
    ]
    index.apply(add=rows, remove=())

    hits = index.search("w0x w3x w79x the", limit=2000)

    actual = dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))
    assert actual == pytest.approx(whoosh_scores(index.files(), hits.terms), rel=1e-4)


def test_bm25_of_one_document_is_the_textbook_value():
    """By hand: N = 2, df = 1, tf = 2, length 4, average length 3."""
    collection = collection_of([["a", "a", "b", "c"], ["d", "e"]])

    idf, term = collection.look_up("a", CONTENT)

    rows, scores, _ = collection.best([term], 10)
    assert idf == pytest.approx(math.log(1 + 1.5 / 1.5))
    expected = idf * 2 * (0.9 + 1) / (2 + 0.9 * (1 - 0.4 + 0.4 * 4 / 3))
    assert (rows.tolist(), scores.tolist()) == ([0], [pytest.approx(expected)])


def test_a_term_that_is_nowhere_adds_nothing():
    collection = collection_of([["a"]])

    assert collection.look_up("z", CONTENT) == (0, None)


CONTENT = Boosts((("content", 1.0),))


def collection_of(contents, live=None):
    segment = invert(
        [AnalysedRow(row, {"content": content}) for row, content in enumerate(contents)]
    )
    mask = np.ones(len(contents), np.bool_) if live is None else np.array(live)
    return Collection([(segment, mask)])


def test_deleted_documents_are_never_among_the_best():
    collection = collection_of([["a"], ["a"], ["a"]], live=[True, False, True])
    _, term = collection.look_up("a", CONTENT)

    rows, _, _ = collection.best([term], 10)

    assert rows.tolist() == [0, 2]
    assert collection.num_rows == 2


def test_terms_of_paths_are_listed_once_in_order_whatever_segment_holds_them():
    paths = [["b", "ba"], ["ab", "bz", "c"], ["ba", "bé"]]
    segments = [
        invert([AnalysedRow(row, {"path": path, "content": path})])
        for row, path in enumerate(paths)
    ]
    collection = Collection([(each, np.ones(1, np.bool_)) for each in segments])

    for field in ("path", "content"):
        assert collection.terms_with_prefix(field, "b", 9) == ["b", "ba", "bz", "bé"]
        assert collection.terms_with_prefix(field, "b", 2) == ["b", "ba"]
        assert collection.terms_with_prefix(field, "d", 9) == []


def test_average_lengths_may_drift_a_little_before_impacts_are_computed_anew():
    """So that no edit of a large index makes the next query pay for all its terms."""
    first = collection_of([["a"] * 10] * 10)
    same = Collection(first.segments, before=first)
    longer = invert([AnalysedRow(99, {"content": ["a"] * 99})])
    grown = Collection([*first.segments, (longer, np.ones(1, np.bool_))], before=first)

    assert same.lengths is first.lengths
    assert grown.lengths.of("content") == pytest.approx((100 + 99) / 11)


def test_a_collection_asks_its_groups_once_for_a_term_until_it_remembers_too_much(monkeypatch):
    collection = collection_of([["a", "b"], ["a"]])
    found = collection.look_up("a", CONTENT)

    assert collection.look_up("a", CONTENT) is found
    monkeypatch.setattr("memory.postings._MAX_REMEMBERED_BYTES", 0)
    collection.look_up("b", CONTENT)
    again = collection.look_up("a", CONTENT)
    assert again is not found
    assert again[0] == found[0]
    assert again[1].ranges[0].values.tolist() == found[1].ranges[0].values.tolist()


def test_what_a_group_remembers_grows_with_its_documents(monkeypatch):
    """Or a large index reads the postings of frequent terms again for every question."""
    monkeypatch.setattr("memory.term_impacts._CACHED_BYTES", 0)
    monkeypatch.setattr("memory.term_impacts._CACHED_BYTES_A_DOC", ENTRY_BYTES + 40)

    def remembered(num_docs):
        group = collection_of([["a", "b", "c", "d"]] + [["z"]] * (num_docs - 1)).groups[0]
        lengths = Lengths((1.0,) * len(FIELDS))
        first = [group.entry(term, CONTENT, lengths) for term in "abcd"]
        again = [group.entry(term, CONTENT, lengths) for term in "dcba"]
        return sum(one is other for one, other in zip(first[::-1], again, strict=True))

    assert [remembered(num_docs) for num_docs in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_terms_that_are_known_are_weighed_again_when_average_lengths_drift():
    """Those of few documents, of many, of one field and of several; as if nothing was known."""
    rng, num_rows = random.Random(3), 1_100
    boosts = Boosts(tuple((field, 1.0 + number) for number, field in enumerate(FIELDS)))
    index = TextIndex(ANALYZER)
    index.apply(add=[random_row(rng, row) for row in range(num_rows)], remove=())
    segments = index.frozen().parts
    terms = [f"w{number}x" for number in range(0, 80, 4)]
    first = Collection(segments)
    for term in terms:
        first.look_up(term, boosts)
    longer = invert([AnalysedRow(num_rows, {field: ["w1x"] * 9 * num_rows for field in FIELDS})])
    grown = [*segments, (longer, np.ones(1, np.bool_))]

    again, anew = Collection(grown, before=first), Collection(grown)

    assert again.lengths != first.lengths
    for term in terms:
        (idf, found), (same_idf, expected) = (each.look_up(term, boosts) for each in (again, anew))
        assert idf == same_idf
        assert (found is None) == (expected is None)
        if found is not None:
            rows, scores, bounded = again.best([found], num_rows + 1)
            expected_rows, expected_scores, expected_bounded = anew.best([expected], num_rows + 1)
            assert rows.tolist() == expected_rows.tolist()
            assert scores == pytest.approx(expected_scores, rel=1e-6)
            assert bounded == pytest.approx(expected_bounded, rel=1e-6)
