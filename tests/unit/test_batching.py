"""Requests within the limits of a provider (FAULTS 57)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.batching import LearnedLimits, first_request, share
from memory.providers.base import RequestLimits

STATED = RequestLimits(max_inputs=100, max_tokens=1_000, max_concurrent=4)


@given(
    sizes=st.lists(st.integers(0, 50)),
    max_inputs=st.integers(1, 8),
    max_tokens=st.integers(1, 40),
)
def test_every_text_goes_once_in_order_within_the_limits_or_alone(
    sizes: list[int], max_inputs: int, max_tokens: int
):
    rest, requests = list(enumerate(sizes)), []
    while rest:
        count = first_request(
            (size for _, size in rest), max_inputs=max_inputs, max_tokens=max_tokens
        )
        assert count > 0
        requests.append(rest[:count])
        rest = rest[count:]

    assert [text for request in requests for text in request] == list(enumerate(sizes))
    for request in requests:
        num_tokens = sum(size for _, size in request)
        assert len(request) <= max_inputs
        assert num_tokens <= max_tokens or len(request) == 1
    for request, following in pairwise(requests):
        # No request is cut shorter than it must be.
        is_full = len(request) == max_inputs
        assert is_full or sum(size for _, size in [*request, following[0]]) > max_tokens


def test_nothing_that_waits_is_no_request():
    assert first_request((), max_inputs=8, max_tokens=10) == 0


@pytest.mark.parametrize(
    ("num_texts", "num_workers", "each"), [(5, 2, 3), (1, 4, 1), (16, 1, 16), (0, 2, 1), (9, 3, 3)]
)
def test_few_texts_are_shared_by_all_workers(num_texts: int, num_workers: int, each: int):
    assert share(num_texts, num_workers) == each


def test_a_request_that_is_too_large_halves_what_the_next_may_hold_once():
    limits = LearnedLimits(STATED)
    for _in_flight in range(3):
        limits.too_large(100, 600)

    assert limits.saved() == (50, 300)
    assert limits.is_learned
    assert limits.first_request([10] * 100) == 30


def test_what_a_smaller_request_taught_is_not_undone_by_a_greater_one():
    limits = LearnedLimits(STATED)
    limits.too_large(20, 100)
    limits.too_large(100, 600)

    assert limits.saved() == (10, 50)


def test_the_limits_never_fall_below_one_text():
    limits = LearnedLimits(STATED)
    for _ in range(20):
        limits.too_large(limits.max_inputs, limits.max_tokens)

    assert limits.saved() == (1, 1)
    assert limits.first_request([500, 500]) == 1


def test_what_one_long_text_taught_can_be_taken_back():
    limits = LearnedLimits(STATED)
    before = limits.saved()
    limits.too_large(2, 900)
    limits.restore(before)

    assert not limits.is_learned
