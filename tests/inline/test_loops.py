"""Loops that live as long as they should, and calls that end."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from ray.exceptions import ActorUnavailableError, RayTaskError

from actors.claims import VectorClaims
from actors.loops import MAX_FAILURES, answer, call, run_forever, spawn
from memory.clock import SystemClock
from memory.errors import BadEmbedding, StaleUpdate
from tests.doubles import FakeClock, HashEmbedder
from tests.unit.building import chunk


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


async def test_an_error_of_ours_crosses_two_actors_as_itself():
    async def fails() -> None:
        raise RayTaskError("embed", "traceback", StaleUpdate("a.md", "e")).as_instanceof_cause()

    with pytest.raises(StaleUpdate) as caught:
        await answer(fails())

    assert type(caught.value) is StaleUpdate
    assert caught.value.path == "a.md"


async def test_equal_texts_of_two_files_are_embedded_by_the_first_alone():
    claims, model, gate = VectorClaims(), HashEmbedder(), asyncio.Event()
    same, own = chunk("same"), chunk("own")

    async def embed(chunks):
        await gate.wait()
        return model.embed_documents([each.content for each in chunks])

    first = asyncio.create_task(claims.embed([same], embed))
    await asyncio.sleep(0)
    second = asyncio.create_task(claims.embed([own, same], embed))
    await asyncio.sleep(0)
    gate.set()
    (rows, mine), (others, theirs) = await first, await second

    assert sorted(model.texts) == ["own", "same"]
    assert mine == [same]
    assert theirs == [own]
    assert (others[1] == rows[0]).all()


async def test_a_failed_claim_fails_who_waits_for_it_and_is_free_again():
    claims, model, gate = VectorClaims(), HashEmbedder(), asyncio.Event()

    async def fail(_chunks):
        await gate.wait()
        raise BadEmbedding("fake", "a vector is zero")

    async def embed(chunks):
        return model.embed_documents([each.content for each in chunks])

    first = asyncio.create_task(claims.embed([chunk("same")], fail))
    await asyncio.sleep(0)
    second = asyncio.create_task(claims.embed([chunk("same")], embed))
    await asyncio.sleep(0)
    gate.set()
    errors = await asyncio.gather(first, second, return_exceptions=True)
    rows, _mine = await claims.embed([chunk("same")], embed)

    assert [type(error) for error in errors] == [BadEmbedding, BadEmbedding]
    assert rows.shape == (1, 16)
