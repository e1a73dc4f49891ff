"""Which files are read again although their stamps are equal?"""

from __future__ import annotations

import random

import pytest

from memory.rereading import SETTLED_S, Rereading

DAY_S = 86_400.0
PATHS = [f"{number:03d}.md" for number in range(100)]
WHOLE_SECOND = 1_000_000_000 * 1_000_000


def rereading(seed: int = 0) -> Rereading:
    return Rereading(DAY_S, random.Random(seed))


@pytest.mark.parametrize("step_s", [1.0, 60.0, 7_200.0, DAY_S])
def test_each_file_is_due_once_a_period_however_often_one_asks(step_s):
    """FAULTS 39."""
    subject = rereading()
    subject.due(PATHS, 0)
    due: list[str] = []

    for number in range(1, int(DAY_S / step_s) + 1):
        due += subject.due(PATHS, number * step_s)

    assert abs(len(due) - len(PATHS)) <= 1
    assert len(set(due)) >= len(PATHS) - 1


def test_the_work_is_spread_evenly():
    subject = rereading()
    subject.due(PATHS, 0)

    most = max(len(subject.due(PATHS, 60.0 * number)) for number in range(1, 1441))

    assert most == 1


def test_nothing_is_due_at_the_start_and_nothing_of_nothing():
    assert rereading().due(PATHS, 12_345) == frozenset()
    subject = rereading()
    subject.due([], 0)
    assert subject.due([], DAY_S) == frozenset()


def test_a_long_pause_makes_each_file_due_once():
    subject = rereading()
    subject.due(PATHS, 0)

    assert subject.due(PATHS, 30 * DAY_S) == frozenset(PATHS)
    assert len(subject.due(PATHS, 30 * DAY_S + 60)) <= 1


def test_processes_that_live_shortly_begin_in_different_places():
    firsts = set()
    for seed in range(20):
        subject = rereading(seed)
        subject.due(PATHS, 0)
        firsts |= subject.due(PATHS, 0.02 * DAY_S)

    assert len(firsts) > 20


def test_files_that_come_and_go_do_not_stop_the_round():
    subject = rereading()
    subject.due(PATHS, 0)
    last = max(subject.due(PATHS, 0.5 * DAY_S))

    rest = [path for path in PATHS if path != last]

    assert len(subject.due(rest, DAY_S)) == 49


def test_a_young_file_of_a_coarse_clock_is_due_once_more_when_its_second_is_over():
    """FAULTS 39."""
    subject = rereading()
    subject.due(["a"], 0)
    subject.note("a", WHOLE_SECOND, now_s=10, unix_now=1_000_000.5)

    assert subject.due(["a"], 10 + SETTLED_S - 0.1) == frozenset()
    assert subject.due(["a"], 10 + SETTLED_S) == {"a"}
    subject.note("a", WHOLE_SECOND, now_s=14, unix_now=1_000_004.0)
    assert subject.due(["a"], 60) == frozenset()


@pytest.mark.parametrize(
    ("mtime_ns", "unix_now"), [(WHOLE_SECOND + 1, 1_000_000.5), (WHOLE_SECOND, 1_100_000.0)]
)
def test_a_fine_or_an_old_time_raises_no_doubt(mtime_ns, unix_now):
    subject = rereading()
    subject.due(["a"], 0)
    subject.note("a", mtime_ns, now_s=10, unix_now=unix_now)

    assert subject.due(["a"], 60) == frozenset()
