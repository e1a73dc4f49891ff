"""Pauses, back-off and breaker, without a provider."""

from __future__ import annotations

import random

import pytest

from memory.provider_gate import (
    MAX_DELAY_S,
    MAX_FAILURES,
    REJECTED_DELAY_S,
    ProviderGate,
    Ticket,
)


class Highest(random.Random):
    """Draws the upper end, so that a delay is its ceiling."""

    def uniform(self, _a: float, b: float) -> float:
        return b


def gate() -> ProviderGate:
    return ProviderGate(Highest())


def begun(of: ProviderGate, now: float) -> Ticket:
    ticket = of.begin(now)
    assert ticket is not None
    return ticket


def after_failures(number: int) -> tuple[ProviderGate, float]:
    """Returns a gate after so many failures in a row, and the end of the last pause."""
    failing, now = gate(), 0.0
    for _ in range(number):
        failing.failed(begun(failing, now), now, "down")
        now += failing.wait_s(now)
    return failing, now


def test_the_ceiling_of_the_pause_doubles_up_to_a_minute():
    pauses, now, failing = [], 0.0, gate()
    for _ in range(9):
        failing.failed(begun(failing, now), now, "down")
        pauses.append(failing.wait_s(now))
        now += pauses[-1]

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_jitter_is_full():
    """Every pause from none to the ceiling occurs."""
    draws = []
    for seed in range(200):
        failing = ProviderGate(random.Random(seed))
        failing.failed(begun(failing, 0.0), 0.0, "down")
        draws.append(failing.wait_s(0.0))

    assert min(draws) < 0.1
    assert max(draws) > 0.9
    assert max(draws) <= 1.0


@pytest.mark.parametrize(
    ("asked_s", "pause_s"), [(5.0, 5.0), (300.0, MAX_DELAY_S), (-3.0, 1.0), (None, 1.0)]
)
def test_what_the_provider_asks_for_is_the_least_pause_and_is_capped(asked_s, pause_s):
    paused = gate()
    paused.failed(begun(paused, 10.0), 10.0, "busy", asked_s)

    assert paused.wait_s(10.0) == pause_s
    assert paused.begin(10.0 + pause_s - 0.01) is None
    assert paused.begin(10.0 + pause_s) is not None


def test_failures_in_a_row_open_the_breaker():
    paused, _now = after_failures(MAX_FAILURES - 1)
    opened, now = after_failures(MAX_FAILURES)

    assert paused.state(0.0) == "closed"
    assert opened.state(now - 0.01) == "open"
    assert opened.state(now) == "half-open"
    assert opened.reason == "down"


def test_requests_that_fail_together_count_as_one_failure():
    failing = gate()
    tickets = [begun(failing, 0.0) for _ in range(8)]
    news = [failing.failed(ticket, 0.0, "down") for ticket in tickets]

    assert not any(news)
    assert failing.state(0.0) == "closed"
    assert failing.wait_s(0.0) == 1


def test_the_success_of_a_request_from_before_the_failure_ends_nothing():
    failing = gate()
    early = begun(failing, 0.0)
    failing.failed(begun(failing, 0.0), 0.0, "busy", 20.0)
    failing.answered(early)

    assert failing.wait_s(0.0) == 20
    assert failing.reason == "busy"


def test_one_probe_goes_at_a_time_and_its_success_closes_the_breaker():
    opened, now = after_failures(MAX_FAILURES)
    probe = begun(opened, now)

    assert probe.is_probe
    assert opened.begin(now) is None
    assert opened.answered(probe)
    assert opened.state(now) == "closed"
    assert opened.open_for_s(now) is None
    assert opened.begin(now) is not None


def test_a_probe_that_fails_opens_it_again_for_longer():
    opened, now = after_failures(MAX_FAILURES)

    assert not opened.failed(begun(opened, now), now, "down")
    assert opened.state(now) == "open"
    assert opened.wait_s(now) == 2**MAX_FAILURES


def test_a_probe_without_outcome_makes_room_for_the_next():
    opened, now = after_failures(MAX_FAILURES)
    opened.abandoned(begun(opened, now))

    assert opened.state(now) == "half-open"
    assert begun(opened, now).is_probe


def test_success_forgets_failures():
    failing, now = after_failures(MAX_FAILURES - 1)
    failing.answered(begun(failing, now))
    failing.failed(begun(failing, now), now, "down")

    assert failing.state(now) == "closed"
    assert failing.wait_s(now) == 1


def test_a_refused_key_is_asked_about_once_in_ten_minutes_and_told_once():
    """FAULTS 52."""
    refused, news, now, num_requests = gate(), [], 0.0, 0
    while now < 3600:
        if (ticket := refused.begin(now)) is not None:
            num_requests += 1
            news.append(refused.rejected(ticket, now, "the key is refused"))
        now += 1

    assert num_requests == 3600 / REJECTED_DELAY_S
    assert news == [True] + [False] * (num_requests - 1)
    assert refused.open_for_s(now) == 3600


def test_a_late_failure_does_not_hide_why_the_key_was_refused():
    refused = gate()
    late = begun(refused, 0.0)
    refused.rejected(begun(refused, 0.0), 0.0, "the key is refused")
    refused.failed(late, 1.0, "reset")

    assert refused.reason == "the key is refused"
    assert refused.wait_s(0.0) == REJECTED_DELAY_S


def test_the_end_of_a_pause_may_be_met_with_a_rounding_error():
    paused = gate()
    paused.failed(begun(paused, 0.1), 0.1, "busy", 1.2)

    assert paused.wait_s(1.3 - 1e-9) == 0
    assert paused.begin(1.3 - 1e-9) is not None
