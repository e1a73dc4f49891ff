"""When is the index flushed?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.debounce import Debounce


def test_a_clean_index_is_never_due():
    debounce = Debounce(30, 300)

    assert debounce.due_in(1000) is None


def test_each_change_restarts_the_pause():
    debounce = Debounce(30, 300)
    debounce.touch(0)
    debounce.touch(20)

    assert debounce.due_in(25) == 25
    assert debounce.due_in(50) == 0
    assert debounce.due_in(70) == 0


def test_a_flush_that_was_cleared_is_due_no_more_until_the_next_change():
    debounce = Debounce(30, 300)
    debounce.touch(0)
    debounce.clear()
    assert debounce.due_in(40) is None

    debounce.touch(100)
    assert debounce.due_in(100) == 30


def test_constant_edits_are_flushed_within_the_greatest_delay():
    """FAULTS 17: an edit each second for ten minutes."""
    debounce = Debounce(30, 300)
    flushes = []
    for second in range(600):
        debounce.touch(second)
        if debounce.due_in(second) == 0:
            flushes.append(second)
            debounce.clear()

    assert flushes == [300]


def test_constant_edits_after_a_flush_wait_again():
    debounce = Debounce(30, 300)
    flushes = []
    for second in range(1000):
        debounce.touch(second)
        if debounce.due_in(second) == 0:
            flushes.append(second)
            debounce.clear()

    assert flushes == [300, 601, 902]


@pytest.mark.parametrize(("delay", "max_delay"), [(-1, 5), (10, 5), (float("nan"), 5)])
def test_delays_that_make_no_sense_are_refused(delay, max_delay):
    with pytest.raises(ValueError, match="must lie between"):
        Debounce(delay, max_delay)


@given(st.lists(st.floats(0, 50), min_size=1), st.floats(0, 20), st.floats(0, 100))
def test_a_change_is_flushed_neither_before_the_pause_nor_after_the_greatest_delay(
    gaps, delay, extra
):
    debounce, now, touched = Debounce(delay, delay + extra), 0.0, []
    for gap in gaps:
        now += gap
        debounce.touch(now)
        touched.append(now)

    due = now + debounce.due_in(now)
    assert due <= max(now, touched[0] + delay + extra) + 1e-9
    assert due >= min(now + delay, touched[0] + delay + extra) - 1e-9
