"""Loops that live as long as they should, and calls that end."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from ray.exceptions import ActorUnavailableError, RayTaskError

from actors.loops import MAX_FAILURES, answer, call, run_forever, spawn
from memory.clock import SystemClock
from memory.errors import StaleUpdate
from tests.doubles import FakeClock


def restarting() -> ActorUnavailableError:
    return ActorUnavailableError("restarting", b"0" * 16)


async def run(step, clock: FakeClock, seconds: float) -> BaseException | None:
    """Lets a loop run for some fake time; returns what it raised."""
    task = asyncio.create_task(run_forever(step, clock=clock))
    await clock.advance(seconds)
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return None
    return task.exception()


async def test_a_loop_that_keeps_failing_is_raised_after_some_attempts():
    attempts = []

    async def step() -> None:
        attempts.append(1)
        raise KeyError("broken")

    error = await run(step, FakeClock(), 1000)

    assert isinstance(error, KeyError)
    assert len(attempts) == MAX_FAILURES


async def test_a_success_forgives_the_failures_before_it():
    clock, attempts = FakeClock(), []

    async def step() -> None:
        attempts.append(1)
        if len(attempts) % MAX_FAILURES:
            raise KeyError("broken")
        await clock.sleep(1)

    assert await run(step, clock, 200) is None
    assert len(attempts) > 2 * MAX_FAILURES


async def test_a_neighbour_that_restarts_is_waited_for_without_limit():
    attempts = []

    async def step() -> None:
        attempts.append(1)
        raise restarting()

    assert await run(step, FakeClock(), 1000) is None
    assert len(attempts) > 10 * MAX_FAILURES


async def test_a_dead_loop_is_reported_and_a_cancelled_one_is_not():
    deaths = []

    async def dies() -> None:
        raise KeyError("broken")

    async def waits() -> None:
        await asyncio.Event().wait()

    def note(name, error):
        deaths.append((name, type(error)))

    dying = spawn("dying", dies(), on_death=note)
    waiting = spawn("waiting", waits(), on_death=note)
    waiting.cancel()
    await asyncio.gather(dying, waiting, return_exceptions=True)
    await asyncio.sleep(0)

    assert deaths == [("dying", KeyError)]


async def test_a_call_is_repeated_until_the_neighbour_is_back():
    clock, attempts = FakeClock(), []

    async def attempt() -> str:
        attempts.append(1)
        if len(attempts) < 4:
            raise restarting()
        return "back"

    task = asyncio.create_task(call(attempt, clock=clock, deadline_s=60))
    await clock.advance(10)

    assert await task == "back"


async def test_a_call_ends_at_its_deadline():
    async def attempt() -> str:
        raise restarting()

    with pytest.raises(TimeoutError):
        await call(attempt, clock=SystemClock(), deadline_s=0.05)


@pytest.mark.parametrize(
    "error",
    [ValueError("a fact has 1 to 100000 characters"), OSError(28, "No space left on device")],
)
async def test_a_refusal_of_an_argument_or_a_disk_is_one_line_without_traceback(error):
    async def fails() -> None:
        raise RayTaskError("emit", "Traceback: a secret", error).as_instanceof_cause()

    with pytest.raises(type(error)) as caught:
        await answer(fails())

    assert str(caught.value) == str(error)


async def test_a_bug_of_a_neighbour_keeps_the_wrapper_with_its_traceback():
    async def fails() -> None:
        raise RayTaskError("emit", "Traceback of the bug", KeyError("x")).as_instanceof_cause()

    with pytest.raises(RayTaskError) as caught:
        await answer(fails())

    assert isinstance(caught.value.cause, KeyError)


async def test_a_cancelled_loop_ends_whatever_its_step_does():
    """Also while it waits after a failure, and while a call waits for a neighbour."""
    clock = FakeClock()

    async def fails() -> None:
        raise KeyError("broken")

    async def calls() -> None:
        async def attempt() -> None:
            raise restarting()

        await call(attempt, clock=clock, deadline_s=60)

    for step in (fails, calls):
        task = asyncio.create_task(run_forever(step, clock=clock))
        await clock.advance(1)
        task.cancel()
        await asyncio.wait({task}, timeout=1)
        assert task.cancelled()


async def test_failures_of_neighbours_between_own_failures_do_not_forgive_them():
    attempts = []

    async def step() -> None:
        attempts.append(1)
        raise restarting() if len(attempts) % 2 else KeyError("broken")

    assert isinstance(await run(step, FakeClock(), 1000), KeyError)
    assert len(attempts) == 2 * MAX_FAILURES


async def test_an_error_of_ours_crosses_two_actors_as_itself():
    async def fails() -> None:
        raise RayTaskError("embed", "traceback", StaleUpdate("a.md", "e")).as_instanceof_cause()

    with pytest.raises(StaleUpdate) as caught:
        await answer(fails())

    assert type(caught.value) is StaleUpdate
    assert caught.value.path == "a.md"
