"""Do the arrays of a segment say what its rows say?"""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.inversion import AnalysedRow, invert, merge
from memory.merging import to_merge_at_once, to_merge_when_idle
from memory.posting_lists import FIELDS

TERMS = st.lists(st.sampled_from(["a", "b", "ab", "é", "z"]), max_size=6)
ROWS = st.lists(st.dictionaries(st.sampled_from(FIELDS), TERMS), max_size=8)


def rows_of(contents, first=0):
    return [AnalysedRow(first + 3 * number, terms) for number, terms in enumerate(contents)]


def written_out(segment):
    """Returns field, term, row and count of every posting."""
    found = Counter()
    for field in FIELDS:
        postings = segment.field_postings(field)
        assert postings.terms == sorted(set(postings.terms))
        for place, term in enumerate(postings.terms):
            inside = slice(postings.starts[place], postings.starts[place + 1])
            docnums = postings.docnums[inside].tolist()
            assert docnums == sorted(set(docnums))
            assert docnums
            for docnum, count in zip(docnums, postings.counts[inside].tolist(), strict=True):
                found[field, term, int(segment.rows[docnum])] += count
    return found


def counted(rows):
    return Counter(
        (field, term, row.row)
        for row in rows
        for field, terms in row.terms.items()
        for term in terms
    )


@given(ROWS)
@settings(deadline=None)
def test_inverting_loses_and_adds_nothing(contents):
    rows = rows_of(contents)
    segment = invert(rows)

    assert written_out(segment) == counted(rows)
    for field in FIELDS:
        assert segment.total_lengths[field] == sum(len(row.terms.get(field, ())) for row in rows)


@given(ROWS, ROWS, st.sets(st.integers(0, 7)))
@settings(deadline=None)
def test_a_merge_is_the_live_rows_inverted_anew(one, other, deleted):
    first, second = rows_of(one), rows_of(other, first=100)
    live = np.array([number not in deleted for number in range(len(first))], np.bool_)
    left = [row for number, row in enumerate(first) if number not in deleted] + second

    merged = merge([(invert(first), live), (invert(second), np.ones(len(second), np.bool_))])

    assert written_out(merged) == counted(left)
    assert merged.rows.tolist() == [row.row for row in left]


def test_ten_thousand_edits_leave_few_segments():
    """The sizes alone: each edit replaces the one row of the edit before."""
    sizes = [100_000]
    for _ in range(10_000):
        sizes = [size for size in sizes if size != 1]
        chosen = to_merge_at_once(sizes, 1)
        merged = 1 + sum(sizes[place] for place in chosen)
        sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]
        assert len(sizes) <= 3


def test_growing_by_single_rows_keeps_segments_and_rewriting_logarithmic():
    sizes, rewritten = [], 0
    for _ in range(5_000):
        chosen = to_merge_at_once(sizes, 1)
        merged = 1 + sum(sizes[place] for place in chosen)
        rewritten += merged
        sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]

    assert sum(sizes) == 5_000
    assert len(sizes) < 30
    assert rewritten < 5_000 * 14


def test_idle_merges_end():
    sizes = [(1, 1)] * 5 + [(600, 700)] * 20 + [(9_000, 20_000), (50_000, 50_000)]
    for _ in range(100):
        chosen = to_merge_when_idle(sizes)
        if not chosen:
            break
        total = sum(sizes[place][0] for place in chosen)
        sizes = [size for place, size in enumerate(sizes) if place not in chosen]
        sizes.append((total, total))

    assert not to_merge_when_idle(sizes)
    assert sum(live for live, _ in sizes) == 5 + 12_000 + 59_000
