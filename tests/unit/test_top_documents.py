"""Are the best documents exactly the best?"""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.top_documents import Impacts, QueryTerm, TopDocuments, best_first, promising

NUM_DOCS = 1500


def sparse(start, impacts):
    docnums = np.array(sorted(impacts), np.intp)
    values = np.array([impacts[docnum] for docnum in sorted(impacts)], np.float32)
    return Impacts(start, docnums, values)


def dense(start, impacts, num_docs):
    values = np.zeros(num_docs, np.float32)
    values[list(impacts)] = list(impacts.values())
    return Impacts(start, None, values)


def sorted_out(terms, deleted, limit):
    """Returns the same answer from scores of all documents."""
    scores = np.zeros(NUM_DOCS, np.float64)
    for scale, impacts in terms:
        for docnum, value in impacts.items():
            scores[docnum] += scale * value
    scores[deleted] = 0
    order = sorted((-score, docnum) for docnum, score in enumerate(scores.tolist()) if score > 0)
    return {
        docnum: -score for score, docnum in order if score <= order[min(limit, len(order)) - 1][0]
    }


# Few different values make ties; all are exact in binary.
impacts_of_a_term = st.dictionaries(
    st.integers(0, NUM_DOCS - 1), st.sampled_from([0.25, 0.5, 1.0]), min_size=1, max_size=60
)
queries = st.lists(
    st.tuples(st.sampled_from([0.125, 1.0, 8.0]), impacts_of_a_term, st.booleans()),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("few", [0, NUM_DOCS + 1], ids=["many documents", "few documents"])
@given(queries, st.sets(st.integers(0, NUM_DOCS - 1), max_size=30), st.integers(1, 20))
@settings(max_examples=100, deadline=None)
def test_the_best_agree_with_sorting_everything(few, query, deleted, limit):
    terms = [
        QueryTerm(scale, [dense(0, values, NUM_DOCS) if is_dense else sparse(0, values)])
        for scale, values, is_dense in query
    ]
    deleted = np.array(sorted(deleted), np.intp)
    top = TopDocuments(NUM_DOCS, deleted)
    expected = sorted_out([each[:2] for each in query], deleted, limit)

    for _ in range(2):  # the second search finds clean scores
        with mock.patch("memory.top_documents._FEW", few):
            docnums, scores = top.find(terms, limit)

        assert len(docnums) == len(expected)
        assert dict(zip(docnums.tolist(), scores.tolist(), strict=True)) == expected


def test_what_terms_add_beyond_one_field_is_known_by_document():
    top = TopDocuments(30, np.empty(0, np.intp))
    plain = sparse(0, {3: 1.0, 4: 1.0, 15: 1.0})
    first = Impacts(0, None, np.ones(10, np.float32), (np.array([3]), np.float32([0.5])))
    second = Impacts(10, np.array([15]), np.float32([4]), (np.array([15]), np.float32([2])))
    terms = [QueryTerm(1.0, [plain]), QueryTerm(2.0, [first, second]), QueryTerm(3.0, [first])]

    for _ in range(2):  # the second call finds clean sums
        assert top.excess(terms, np.array([15, 4, 3])).tolist() == [4, 0, 2.5]
    assert top.excess(terms[:1], np.array([3])) is None


def test_ranges_of_a_term_add_to_their_own_documents():
    top = TopDocuments(30, np.array([12]))
    term = QueryTerm(
        2.0, [dense(0, {3: 1.0}, 10), sparse(10, {1: 0.5, 2: 1.0}), sparse(20, {9: 4.0})]
    )

    docnums, scores = top.find([term], 10)

    assert dict(zip(docnums.tolist(), scores.tolist(), strict=True)) == {3: 2, 11: 1, 29: 8}


def test_equal_documents_of_two_ranges_have_equal_scores():
    """Sums of float32 depend on the order; the third term is dense in the first range only."""
    values = np.random.default_rng(1).random((3, 50), np.float32)
    impacts = [dict(enumerate(each.tolist())) for each in values]
    terms = [QueryTerm(1.0, [sparse(0, each), sparse(50, each)]) for each in impacts[:2]]
    terms.append(QueryTerm(1.0, [dense(0, impacts[2], 50), sparse(50, impacts[2])]))

    docnums, scores = TopDocuments(100, np.empty(0, np.intp)).find(terms, 100)

    by_number = scores[np.argsort(docnums)]
    assert np.array_equal(by_number[:50], by_number[50:])


def test_no_term_finds_no_document():
    docnums, scores = TopDocuments(NUM_DOCS, np.empty(0, np.intp)).find([], 5)

    assert (docnums.tolist(), scores.tolist()) == ([], [])


def test_scores_within_the_tie_of_the_last_are_promising_too():
    scores = np.zeros(64, np.float32)
    scores[[3, 20, 37]] = 0.9, 0.5, 0.4
    scores[40] = 0.5 - 5e-7

    assert set(promising(scores, 2).tolist()) == {3, 20}
    assert set(promising(scores, 2, tie=1e-6).tolist()) == {3, 20, 40}


@given(
    st.dictionaries(st.integers(0, 2**32 - 1), st.floats(2**-149, 2**100, width=32)),
    st.integers(1, 9),
)
@settings(deadline=None)
def test_the_greatest_values_come_first_and_of_equal_ones_the_lowest_number(value_of, limit):
    numbers, values = np.array([*value_of], np.int64), np.array([*value_of.values()], np.float32)

    order = best_first(numbers, values, limit)

    expected = sorted(value_of, key=lambda number: (-value_of[number], number))[:limit]
    assert numbers[order].tolist() == expected
