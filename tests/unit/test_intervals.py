"""Intervals beside what statistics knows of the same distributions."""

import math

import numpy as np
import pytest

from memory.evaluation.intervals import (
    FEW,
    Interval,
    mean_interval,
    paired_difference,
    rate_interval,
)

Z = 1.96


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = np.random.default_rng(3).beta(2, 3, 400)
    half = Z * values.std() / math.sqrt(400)

    found = mean_interval(values)

    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.003
    )


def test_many_equal_values_have_an_interval_without_width():
    assert mean_interval([0.5] * FEW) == Interval(0.5, 0.5, 0.5)


@pytest.mark.parametrize("count", [1, 3, 20, 100])
def test_questions_that_are_all_answered_do_not_promise_that_every_one_is(count):
    found = mean_interval([1.0] * count)

    # Where every trial hits, the lower end of Wilson's interval is n / (n + z\u00b2).
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(count / (count + Z**2), abs=1e-4)


def test_few_values_between_0_and_1_have_the_interval_of_a_rate():
    assert mean_interval([0.5] * 20) == rate_interval(10, 20)
    assert mean_interval([0.25, 0.5, 1.0, 0.0, 0.75]) == rate_interval(2.5, 5)


def test_the_same_values_give_the_same_interval():
    values = list(np.random.default_rng(4).random(50))

    assert mean_interval(values) == mean_interval(values)


def test_blocks_of_resamples_cover_more_values_than_fit_into_one():
    values = np.tile([0.0, 0.99], 600)
    half = Z * 0.495 / math.sqrt(1200)

    found = mean_interval(values)

    assert (found.low, found.high) == pytest.approx((0.495 - half, 0.495 + half), abs=0.005)


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        # Newcombe, Interval estimation for the difference between independent proportions, 1998.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_a_rate_has_the_interval_of_wilson(hits, total, low, high):
    found = rate_interval(hits, total)

    assert found.value == hits / total
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_a_difference_is_paired():
    """The questions differ widely, the sides hardly: unpaired it would drown in noise."""
    hard = np.random.default_rng(5).normal(0, 10, 100)

    found = paired_difference(list(hard + 0.5), list(hard))

    assert found.difference == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((0.5, 0.5))
    assert not found.within_noise


def test_a_difference_of_chance_is_within_noise():
    generator = np.random.default_rng(6)
    values = generator.normal(0, 1, 200)
    values -= values.mean() - 0.01

    found = paired_difference(list(values), [0.0] * 200)

    assert found.within_noise
    assert found.low < 0.01 < found.high


def test_no_difference_at_all_is_within_noise():
    assert paired_difference([1.0, 0.0], [1.0, 0.0]).within_noise


@pytest.mark.parametrize(
    "work",
    [
        lambda: mean_interval([]),
        lambda: rate_interval(0, 0),
        lambda: rate_interval(3, 2),
        lambda: paired_difference([1.0], []),
        lambda: paired_difference([], []),
    ],
)
def test_nothing_has_no_interval(work):
    with pytest.raises(ValueError, match=r"."):
        work()
