"""Texts spread over workers, and questions beside them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from actors import worker_calls
from actors.embedder_pool import PoolOptions
from actors.worker_calls import NUM_SPARE
from memory.errors import (
    BadEmbedding,
    ProviderUnavailable,
    RequestHeldBack,
)
from memory.provider_gate import BASE_DELAY_S
from memory.providers.base import RequestLimits
from tests.doubles import HashEmbedder
from tests.inline.pools import (
    DIM,
    DOWN,
    MOST_AT_A_WORKER,
    REMOTE,
    TEXTS,
    Worker,
    expected,
    failing,
    pool_of,
    remote,
    settle,
)


async def test_rows_follow_texts_however_many_workers_share_them():
    pool, _handles, _clock = pool_of(Worker(), Worker(), Worker())

    embedded = await pool.embed.remote(TEXTS)

    assert (embedded.vectors == expected(TEXTS)).all()
    assert embedded.refused == ()
    assert (await pool.status.remote()).num_embedded == len(TEXTS)
    assert (await pool.status.remote()).num_tokens == 2 * len(TEXTS)


async def test_no_text_gives_no_row():
    pool, _handles, _clock = pool_of(Worker())

    assert (await pool.embed.remote(())).vectors.shape == (0, DIM)


async def test_a_short_request_still_uses_every_local_worker():
    workers = (Worker(), Worker())
    pool, _handles, _clock = pool_of(*workers)

    await pool.embed.remote(TEXTS[:5])

    assert [len(worker.requests[0]) for worker in workers] == [3, 2]
    assert [worker.most_at_once for worker in workers] == [1, 1]


async def test_a_worker_that_restarts_is_waited_for():
    pool, (handle,), clock = pool_of(Worker())
    handle.dead = True
    task = pool.embed.remote(TEXTS[:3])
    await clock.advance(1)
    handle.dead = False
    await clock.advance(10)

    assert (await task).vectors.shape == (3, DIM)
    assert (await pool.status.remote()).calls.num_failures == ()


async def test_texts_of_several_callers_that_wait_go_in_one_request():
    worker = Worker(gate=asyncio.Event())
    pool, _clock = remote(worker)
    first = [pool.embed.remote((f"early {number}",)) for number in range(MOST_AT_A_WORKER)]
    await settle()
    later = [pool.embed.remote((f"late {number}", f"too {number}")) for number in range(4)]
    await settle()
    worker.gate.set()
    answers = await asyncio.gather(*first, *later)

    assert worker.most_at_once == MOST_AT_A_WORKER
    assert sorted(map(len, worker.requests)) == [*[1] * MOST_AT_A_WORKER, 8]
    assert (answers[MOST_AT_A_WORKER + 1].vectors == expected(("late 1", "too 1"))).all()


async def test_each_worker_gets_its_share_of_what_the_provider_takes_and_the_next_request():
    workers = [Worker(gate=asyncio.Event()) for _ in range(3)]
    info = replace(REMOTE, limits=RequestLimits(1, 10_000, 4))
    pool, _handles, _clock = pool_of(*workers, info=info)
    task = pool.embed.remote(TEXTS)
    await settle()

    assert [worker.num_now for worker in workers] == [2 + NUM_SPARE, 1 + NUM_SPARE, 1 + NUM_SPARE]
    assert (await pool.status.remote()).calls.num_in_flight == 4 + 3 * NUM_SPARE
    for worker in workers:
        worker.gate.set()
    await task
    assert sum(len(worker.requests) for worker in workers) == len(TEXTS)


async def test_a_question_does_not_wait_for_bulk_work():
    worker = Worker(gate=asyncio.Event())
    pool, _clock = remote(worker)
    bulk = [pool.embed.remote(TEXTS) for _ in range(5)]
    await settle()

    vector = await pool.embed_query.remote("question")

    assert np.allclose(vector, HashEmbedder(DIM).embed_query("question"))
    assert not any(task.done() for task in bulk)
    worker.gate.set()
    await asyncio.gather(*bulk)


async def test_a_question_goes_to_another_worker_if_one_is_down_and_fails_if_all_are():
    pool, handles, _clock = pool_of(Worker(), Worker())
    handles[0].dead = True

    for number in range(4):
        assert (await pool.embed_query.remote(f"question {number}")).shape == (DIM,)
    handles[1].dead = True
    with pytest.raises(ProviderUnavailable, match="no embedder is reachable"):
        await pool.embed_query.remote("another question")


async def test_a_question_that_two_ask_at_once_or_again_costs_one_request():
    worker = Worker()
    pool, _clock = remote(worker)

    first, second = await asyncio.gather(*(pool.embed_query.remote("same") for _ in range(2)))
    third = await pool.embed_query.remote("same")

    assert worker.requests == [("same",)]
    assert (first == second).all()
    assert (first == third).all()


async def test_a_failed_question_is_not_remembered():
    worker = Worker(failing(BadEmbedding("far", "a vector is zero")))
    pool, _clock = remote(worker)

    with pytest.raises(BadEmbedding):
        await pool.embed_query.remote("same")
    assert (await pool.embed_query.remote("same")).shape == (DIM,)


async def test_a_question_without_an_answer_in_time_is_an_outage(monkeypatch):
    monkeypatch.setattr(worker_calls, "QUERY_DEADLINE_S", 0.02)
    pool, _clock = remote(Worker())

    async def never(_text: str) -> None:
        await asyncio.Event().wait()

    pool.shell._workers[0].shell.embed_queries = never
    with pytest.raises(ProviderUnavailable, match="no answer in time"):
        await pool.embed_query.remote("question")


async def test_warming_up_loads_every_local_worker_and_asks_a_provider_only_for_the_dimension():
    workers = (Worker(), Worker())
    local, _handles, _clock = pool_of(*workers)
    far, _clock = remote(asked := Worker())

    assert await local.warm_up.remote() == DIM
    assert [len(worker.model.queries) for worker in workers] == [1, 1]
    assert await far.warm_up.remote(False) == 0
    assert asked.requests == []
    assert await far.warm_up.remote(True) == DIM
    assert len(asked.requests) == 1


async def test_a_used_up_budget_stops_files_and_lets_questions_through():
    worker = Worker(tokens_a_text=2)
    pool, _clock = remote(worker, PoolOptions(token_budget=60, price_per_million_tokens=0.5))

    assert (await pool.embed.remote(TEXTS[:29])).refused == ()
    with pytest.raises(ProviderUnavailable, match="token budget of 60 used up") as caught:
        await pool.embed.remote(TEXTS[29:])
    question = await pool.embed_query.remote("question")

    status = await pool.status.remote()
    assert question.shape == (DIM,)
    assert caught.value.retry_after_s > 0
    assert status.calls.billed_tokens == 2 * 29 + 2
    assert status.calls.cost == pytest.approx(60 * 0.5 / 1e6)


async def test_a_pool_that_takes_the_place_of_another_goes_on_with_its_budget():
    worker, options = Worker(tokens_a_text=2), PoolOptions(token_budget=60)
    first, _clock = remote(worker, options)
    await first.embed.remote(TEXTS[:20])
    await settle()
    second, _clock = remote(worker, options)
    await second.embed.remote(TEXTS[20:29])
    await settle()
    third, _clock = remote(worker, options)

    with pytest.raises(ProviderUnavailable, match="token budget of 60 used up"):
        await third.embed.remote(TEXTS[29:])
    assert (await third.status.remote()).token_room == 2


async def test_calibration_prompts_wait_in_line_and_keep_their_order():
    worker = Worker()
    pool, _clock = remote(worker)

    rows = await pool.embed_queries.remote(TEXTS)

    assert (rows == expected(TEXTS)).all()
    assert (await pool.status.remote()).num_queries == 0


async def test_calibration_prompts_share_the_requests_of_a_provider():
    worker = Worker()
    pool, _clock = remote(worker)

    await pool.embed_queries.remote(TEXTS)

    assert worker.requests == [TEXTS]


async def test_the_parts_of_a_prompt_are_one_request_that_waits_for_no_file():
    worker = Worker(gate=asyncio.Event())
    pool, _clock = remote(worker)
    running = [asyncio.ensure_future(pool.shell.embed((f"blocker {n}",))) for n in range(9)]
    await settle()
    worker.requests.clear()

    rows = await pool.embed_parts.remote((*TEXTS[:20], TEXTS[0]))
    again = await pool.embed_parts.remote(TEXTS[15:25])

    assert (rows == expected((*TEXTS[:20], TEXTS[0]))).all()
    assert (again == expected(TEXTS[15:25])).all()
    assert worker.requests == [TEXTS[:20], TEXTS[20:25]]
    worker.gate.set()
    await asyncio.gather(*running)


async def test_the_parts_of_a_prompt_are_shared_by_the_workers_that_run_a_model():
    workers = [Worker(), Worker()]
    pool, _handles, _clock = pool_of(*workers)

    rows = await pool.embed_parts.remote(TEXTS[:7])

    assert (rows == expected(TEXTS[:7])).all()
    assert sorted(len(worker.requests[0]) for worker in workers) == [3, 4]


async def test_who_gives_up_leaves_nothing_behind():
    worker = Worker(gate=asyncio.Event())
    pool, _clock = remote(worker)
    running = [
        asyncio.ensure_future(pool.shell.embed((f"blocker {n}",))) for n in range(MOST_AT_A_WORKER)
    ]
    await settle()
    leaving = asyncio.ensure_future(pool.shell.embed(TEXTS))
    await settle()
    leaving.cancel()
    await asyncio.wait({leaving})
    worker.gate.set()
    await asyncio.gather(*running)
    await settle()

    assert (await pool.status.remote()).num_waiting == 0
    assert len(worker.requests) == MOST_AT_A_WORKER


async def test_an_error_of_our_own_reaches_the_caller_and_blocks_nobody():
    worker = Worker(failing(ZeroDivisionError("a bug")))
    pool, _clock = remote(worker)

    with pytest.raises(ZeroDivisionError):
        await pool.embed.remote(TEXTS)
    assert (await pool.embed.remote(TEXTS)).refused == ()


async def test_a_worker_without_a_share_makes_no_request():
    workers = [Worker(gate=asyncio.Event()) for _ in range(3)]
    info = replace(REMOTE, limits=RequestLimits(1, 10_000, 1))
    pool, _handles, _clock = pool_of(*workers, info=info)
    task = pool.embed.remote(TEXTS[:5])
    await settle()

    assert [worker.num_now for worker in workers] == [1 + NUM_SPARE, 0, 0]
    workers[0].gate.set()
    await task
    assert [len(worker.requests) for worker in workers] == [5, 0, 0]


async def test_what_waits_at_a_worker_when_a_request_fails_is_sent_after_the_pause():
    busy = Worker(failing(DOWN, RequestHeldBack("far", "another request has failed")))
    idle = Worker()
    info = replace(REMOTE, limits=RequestLimits(1, 10_000, 1))
    pool, _handles, clock = pool_of(busy, idle, info=info)
    task = pool.embed.remote(TEXTS[:2])
    await settle()

    assert (busy.num_held_back, idle.num_held_back) == (1, 1)
    assert busy.requests == [TEXTS[:1], TEXTS[1:2]]
    calls = (await pool.status.remote()).calls
    assert (calls.num_requests, calls.num_failures) == (1, (("unavailable", 1),))
    await clock.advance(BASE_DELAY_S)
    assert ((await task).vectors == expected(TEXTS[:2])).all()
    assert (await pool.status.remote()).calls.num_requests == 3
