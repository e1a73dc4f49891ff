"""Do the real clock and the fake one keep the same promises?"""

from __future__ import annotations

import asyncio

import pytest

from memory.clock import SystemClock
from memory.debounce import Debounce
from tests.doubles import FakeClock


@pytest.fixture(params=[SystemClock, FakeClock])
def clock(request):
    return request.param()


async def test_wait_returns_true_at_once_if_the_event_is_set(clock):
    event = asyncio.Event()
    event.set()

    assert await clock.wait(event, 1000)


async def test_wait_returns_true_when_the_event_comes(clock):
    event = asyncio.Event()
    waiting = asyncio.create_task(clock.wait(event, None))
    await asyncio.sleep(0)
    event.set()

    assert await waiting


async def test_wait_returns_false_after_its_time(clock):
    assert not await clock.wait(asyncio.Event(), 0)


async def test_sleep_of_nothing_returns(clock):
    await clock.sleep(0)


def test_monotonic_time_does_not_go_back(clock):
    assert clock.monotonic() <= clock.monotonic()


async def test_fake_time_stops_at_each_moment_somebody_waits_for():
    clock, moments = FakeClock(), []

    async def ticker():
        while True:
            await clock.sleep(10)
            moments.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(35)
    task.cancel()

    assert moments == [10, 20, 30]
    assert clock.monotonic() == 35


async def test_a_cancelled_wait_is_forgotten():
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(10))
    await clock.advance(1)
    task.cancel()
    await clock.advance(100)

    assert task.cancelled()


async def test_a_wall_clock_set_back_delays_no_flush():
    """FAULTS 16."""
    clock, debounce = FakeClock(), Debounce(30, 300)
    debounce.touch(clock.monotonic())
    await clock.advance(10)
    clock.set_wall_clock_by(-3600)
    await clock.advance(20)

    assert debounce.due_in(clock.monotonic()) == 0
    assert clock.time() == 1_000_000 + 30 - 3600
