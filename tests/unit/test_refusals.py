"""Bad texts are found, and good ones pass."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from memory.errors import InputRejected
from memory.refusals import RefusalSearch

REFUSED = InputRejected("far", "status 400")


def searched(num_texts: int, bad: set[int]) -> tuple[RefusalSearch[int], list[int], int]:
    """Returns the finished search, the texts that passed, and the number of requests."""
    search, passed, num_requests = RefusalSearch(range(num_texts)), [], 0
    while group := search.next_group(len):
        num_requests += 1
        if bad.isdisjoint(group):
            search.passed()
            passed += group
        else:
            search.refused(group, REFUSED)
    return search, passed, num_requests


@given(st.data(), st.integers(1, 300))
def test_one_bad_text_costs_at_most_two_requests_a_halving(data: st.DataObject, num_texts: int):
    """FAULTS 58."""
    bad = data.draw(st.integers(0, num_texts - 1))

    search, passed, num_requests = searched(num_texts, {bad})

    assert search.suspects == [(bad, REFUSED)]
    assert sorted(passed) == [number for number in range(num_texts) if number != bad]
    assert num_requests <= 2 * math.ceil(math.log2(num_texts)) + 1
    assert not search.is_hopeless


@given(st.integers(2, 64), st.sets(st.integers(0, 63)))
def test_every_text_passes_or_is_suspected_unless_all_seems_lost(num_texts: int, bad: set[int]):
    search, passed, _num_requests = searched(num_texts, bad)

    suspects = {number for number, _error in search.suspects}
    assert suspects <= bad
    assert bad.isdisjoint(passed)
    if not search.is_hopeless:
        assert suspects | set(passed) == set(range(num_texts))


def test_a_provider_that_refuses_everything_is_given_up_soon():
    search, passed, num_requests = searched(256, set(range(256)))

    assert search.is_hopeless
    assert passed == []
    assert num_requests == 2 * 8 + 2


def test_groups_become_as_small_as_the_provider_is_found_to_take():
    search, sizes, limits = RefusalSearch(range(64)), [], [64]
    while group := search.next_group(lambda _group: limits[-1]):
        sizes.append(len(group))
        if len(group) > 4:
            search.refused(group, REFUSED)
            limits.append(len(group) // 2)
        else:
            search.passed()

    assert sizes == [64, 32, 16, 8] + [4] * 16
    assert search.suspects == []
