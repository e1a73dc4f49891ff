"""Tokens, money and the budget."""

from __future__ import annotations

from memory.spending import Spending


def test_without_a_budget_there_is_no_limit_and_without_a_price_no_cost():
    spending = Spending()
    spending.begin(10)
    spending.done(10, 0)

    assert spending.room is None
    assert spending.cost is None


def test_requests_in_flight_cannot_overdraw_the_budget_together():
    spending = Spending(token_budget=100)
    spending.begin(60)
    spending.begin(40)

    assert spending.room == 0


def test_what_was_charged_replaces_the_estimate():
    spending = Spending(token_budget=100, price_per_million=2.0)
    spending.begin(60)
    spending.done(60, 45)
    spending.begin(10)
    spending.done(10, 0)

    assert spending.room == 45
    assert spending.billed_tokens == 45
    assert spending.cost == 55 * 2 / 1_000_000


def test_a_failed_request_costs_nothing_and_is_counted_by_kind():
    spending = Spending(token_budget=100)
    for kind in ("timeout", "timeout", "rejected"):
        spending.begin(60)
        spending.failed(60, kind)

    assert spending.room == 100
    assert spending.num_requests == 3
    assert spending.num_failures == {"timeout": 2, "rejected": 1}


def test_a_budget_that_was_passed_leaves_no_debt():
    spending = Spending(token_budget=10)
    spending.begin(10)
    spending.done(10, 12)

    assert spending.room == 0


def test_a_request_that_was_held_back_was_none():
    spending = Spending(token_budget=100)
    spending.begin(60)
    spending.held_back(60)

    assert (spending.num_requests, spending.room, spending.spent) == (0, 100, 0)
    assert not spending.num_failures
