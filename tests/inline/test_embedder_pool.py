"""Texts spread over workers, questions beside them, and a provider that misbehaves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from actors import model_calls
from actors.embedder import Vectors
from actors.embedder_pool import EmbedderPool, PoolOptions
from memory.errors import (
    BadEmbedding,
    EmbeddingError,
    InputRejected,
    ProviderRejected,
    ProviderUnavailable,
)
from memory.provider_gate import MAX_DELAY_S, MAX_FAILURES, REJECTED_DELAY_S
from memory.providers.base import ModelInfo, RequestLimits
from tests.doubles import FakeClock, HashEmbedder
from tests.inline.conftest import INFO
from tests.inline.handles import InlineHandle

DIM = INFO.dim
REMOTE = replace(INFO, provider="far", limits=RequestLimits(256, 10_000, 2))
TEXTS = tuple(f"text {number}" for number in range(53))
DOWN = ProviderUnavailable("far", "status 503")

Rule = Callable[[Sequence[str]], Exception | None]


def healthy(_texts: Sequence[str]) -> None:
    """Refuses nothing."""


@dataclass
class Worker:
    """Embeds at once, or waits for a gate, or refuses what a rule says."""

    rule: Rule = healthy
    gate: asyncio.Event | None = None
    tokens_a_text: int = 0
    requests: list[tuple[str, ...]] = field(default_factory=list)
    most_at_once: int = 0
    num_now: int = 0
    model: HashEmbedder = field(default_factory=lambda: HashEmbedder(DIM))

    async def embed(self, texts: tuple[str, ...]) -> Vectors:
        self.requests.append(texts)
        self.num_now += 1
        self.most_at_once = max(self.most_at_once, self.num_now)
        try:
            if self.gate is not None:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
            if error := self.rule(texts):
                raise error
            return Vectors(self.model.embed_documents(texts), self.tokens_a_text * len(texts))
        finally:
            self.num_now -= 1

    async def embed_queries(self, texts: tuple[str, ...]) -> Vectors:
        self.requests.append(texts)
        if error := self.rule(texts):
            raise error
        return Vectors(self.model.embed_queries(texts), self.tokens_a_text * len(texts))


def refuses(poison: str, error: EmbeddingError) -> Rule:
    return lambda texts: error if poison in texts else None


def failing(*errors: Exception) -> Rule:
    """Fails once with each, then works."""
    rest = list(errors)
    return lambda _texts: rest.pop(0) if rest else None


def pool_of(
    *workers: Worker, info: ModelInfo = INFO, options: PoolOptions | None = None
) -> tuple[InlineHandle, list[InlineHandle], FakeClock]:
    handles, clock = [InlineHandle(worker) for worker in workers], FakeClock()
    pool = EmbedderPool(info, options or PoolOptions(), *handles, clock=clock, rng=random.Random(7))
    return InlineHandle(pool), handles, clock


def remote(worker: Worker, options: PoolOptions | None = None) -> tuple[InlineHandle, FakeClock]:
    pool, _handles, clock = pool_of(worker, info=REMOTE, options=options)
    return pool, clock


def expected(texts: Sequence[str]) -> Any:
    return HashEmbedder(DIM).embed_documents(texts)


async def settle() -> None:
    for _turn in range(40):
        await asyncio.sleep(0)


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
    first = [pool.embed.remote((f"early {number}",)) for number in range(2)]
    await settle()
    later = [pool.embed.remote((f"late {number}", f"too {number}")) for number in range(4)]
    await settle()
    worker.gate.set()
    answers = await asyncio.gather(*first, *later)

    assert worker.most_at_once == REMOTE.limits.max_concurrent
    assert sorted(map(len, worker.requests)) == [1, 1, 8]
    assert (answers[3].vectors == expected(("late 1", "too 1"))).all()


async def test_no_more_requests_than_the_provider_takes_are_in_flight_over_all_workers():
    workers = [Worker(gate=asyncio.Event()) for _ in range(3)]
    info = replace(REMOTE, limits=RequestLimits(1, 10_000, 4))
    pool, _handles, _clock = pool_of(*workers, info=info)
    task = pool.embed.remote(TEXTS)
    await settle()

    assert sum(worker.num_now for worker in workers) == 4
    assert (await pool.status.remote()).calls.num_in_flight == 4
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
    monkeypatch.setattr(model_calls, "QUERY_DEADLINE_S", 0.02)
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


@pytest.mark.parametrize(
    ("retry_after_s", "least_s", "most_s"),
    [(1.0, 1.0, 1.0), (300.0, MAX_DELAY_S, MAX_DELAY_S), (None, 0.0, 1.0), (-5.0, 0.0, 1.0)],
)
async def test_a_pause_that_the_provider_asks_for_is_kept_by_everybody_and_capped(
    retry_after_s: float | None, least_s: float, most_s: float
):
    """FAULTS 51."""
    worker = Worker(failing(ProviderUnavailable("far", "status 429", retry_after_s)))
    pool, clock = remote(worker)
    first = pool.embed.remote(TEXTS[:3])
    await settle()
    second = pool.embed.remote(TEXTS[3:])
    await clock.advance(least_s - 0.001 if least_s else 0.0)
    early = len(worker.requests)
    await clock.advance(most_s - least_s + 0.002)

    assert early == 1 or not least_s
    assert (await first).vectors.shape == (3, DIM)
    assert (await second).vectors.shape == (50, DIM)
    # What waited during the pause went together.
    assert len(worker.requests) == 2


async def test_a_refused_key_is_one_line_and_one_request_in_ten_minutes(caplog):
    """FAULTS 52."""
    worker = Worker(lambda _texts: ProviderRejected("far", "the key is refused (401)"))
    pool, clock = remote(worker)
    for minute in range(31):
        for text in ("a", "b"):
            with pytest.raises(ProviderUnavailable, match="the key is refused") as caught:
                await pool.embed.remote((f"{text} {minute}",))
            with pytest.raises(EmbeddingError):
                await pool.embed_query.remote(f"{text} {minute}")
            assert 0 < caught.value.retry_after_s <= REJECTED_DELAY_S
        await clock.advance(60)

    status = (await pool.status.remote()).calls
    assert len(worker.requests) == 4
    assert (status.breaker, status.breaker_since) == ("open", 1_000_000.0)
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1

    worker.rule = healthy
    await clock.advance(REJECTED_DELAY_S)
    assert (await pool.embed.remote(("a",))).vectors.shape == (1, DIM)
    assert (await pool.status.remote()).calls.breaker == "closed"


async def test_an_outage_turns_callers_away_and_ends_with_every_vector(caplog):
    """FAULTS 53."""
    worker = Worker(lambda _texts: DOWN)
    pool, clock = remote(worker)
    tasks = [pool.embed.remote((text,)) for text in TEXTS]
    await clock.advance(3 * MAX_FAILURES)
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert {str(error) for error in errors} == {"far: status 503"}
    assert all(isinstance(error, ProviderUnavailable) for error in errors)
    assert (await pool.status.remote()).num_waiting == 0
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1

    worker.rule = healthy
    await clock.advance(MAX_DELAY_S)
    answers = await asyncio.gather(*(pool.embed.remote((text,)) for text in TEXTS))

    assert (np.concatenate([each.vectors for each in answers]) == expected(TEXTS)).all()


async def test_an_outage_of_an_hour_is_probed_by_one_request_at_a_time():
    """FAULTS 54."""
    worker = Worker(lambda _texts: DOWN)
    pool, clock = remote(worker)
    for _half_minute in range(120):
        tasks = [pool.embed.remote((text,)) for text in TEXTS[:6]]
        await clock.advance(30)
        await asyncio.gather(*tasks, return_exceptions=True)

    # Callers come each 30 s, and a pause below 60 s is sometimes over by then.
    assert worker.most_at_once <= REMOTE.limits.max_concurrent
    assert 3600 / MAX_DELAY_S <= len(worker.requests) <= 120 + MAX_FAILURES
    assert len(pool.shell._bulk._waiting) == 0


async def test_a_question_during_an_outage_fails_at_once():
    worker = Worker(lambda _texts: DOWN)
    pool, clock = remote(worker)
    task = pool.embed.remote(TEXTS)
    await clock.advance(60)
    with pytest.raises(ProviderUnavailable):
        await task
    worker.requests.clear()
    pool.shell._calls._gate._resume_at = clock.monotonic() + 30

    with pytest.raises(ProviderUnavailable, match="status 503") as caught:
        await pool.embed_query.remote("question")
    assert caught.value.retry_after_s == 30
    assert worker.requests == []


async def test_what_was_embedded_before_an_outage_is_not_paid_for_again():
    info = replace(REMOTE, limits=RequestLimits(10, 10_000, 1))
    worker = Worker(failing())
    pool, _handles, clock = pool_of(worker, info=info)
    worker.rule = lambda _texts: DOWN if len(worker.requests) > 2 else None
    task = pool.embed.remote(TEXTS[:30])
    for _second in range(60):  # one request after the other
        await clock.advance(1)
    with pytest.raises(ProviderUnavailable):
        await task
    worker.requests.clear()
    worker.rule = healthy
    await clock.advance(MAX_DELAY_S)

    again = await pool.embed.remote(TEXTS[:30])

    assert (again.vectors == expected(TEXTS[:30])).all()
    assert worker.requests == [TEXTS[20:30]]


@pytest.mark.parametrize("place", [0, 100, 255])
async def test_one_poison_text_among_256_is_found_in_17_requests_and_never_sent_again(place: int):
    """FAULTS 58: at most 2 log2(n) + 1."""
    texts = tuple(f"text {number}" for number in range(256))
    worker = Worker(refuses(texts[place], InputRejected("far", "status 400")))
    pool, _clock = remote(worker)

    embedded = await pool.embed.remote(texts)

    assert len(worker.requests) <= 17
    assert embedded.refused == ((place, "status 400"),)
    good = [number for number in range(256) if number != place]
    assert (embedded.vectors[good] == expected(texts)[good]).all()
    assert not embedded.vectors[place].any()
    worker.requests.clear()
    assert (await pool.embed.remote((texts[place],))).refused == ((0, "status 400"),)
    assert worker.requests == []
    assert (await pool.status.remote()).num_quarantined == 1


async def test_a_poison_text_harms_no_other_caller_of_the_same_request():
    worker = Worker(refuses("poison", InputRejected("far", "status 400")), gate=asyncio.Event())
    pool, _clock = remote(worker)
    blockers = [pool.embed.remote((f"blocker {number}",)) for number in range(2)]
    await settle()
    good, bad = pool.embed.remote(("good",)), pool.embed.remote(("poison", "fine"))
    await settle()
    worker.gate.set()
    await asyncio.gather(*blockers)

    assert (await good).refused == ()
    assert (await bad).refused == ((0, "status 400"),)
    assert ("good", "poison", "fine") in worker.requests


async def test_a_wrong_answer_is_asked_for_once_more_before_the_texts_are_parted():
    once = Worker(failing(BadEmbedding("far", "a vector is zero")))
    always = Worker(refuses("text 3", BadEmbedding("far", "a vector is zero")))

    whole = await remote(once)[0].embed.remote(TEXTS[:8])
    parted = await remote(always)[0].embed.remote(TEXTS[:8])

    assert whole.refused == ()
    assert once.requests == [TEXTS[:8]] * 2
    assert parted.refused == ((3, "a vector is zero"),)
    assert always.requests.count(("text 3",)) == 2


@pytest.mark.parametrize("num_texts", [1, 2, 53])
async def test_a_provider_that_refuses_every_text_is_to_blame_itself(num_texts: int):
    worker = Worker(lambda _texts: InputRejected("far", "status 400"))
    pool, clock = remote(worker)

    with pytest.raises(ProviderUnavailable, match="takes no text at all: status 400"):
        await pool.embed.remote(TEXTS[:num_texts])

    # 2 log2(64) + 1 of them, one more that shows it is too many, or a text of our own.
    assert len(worker.requests) <= 14
    assert (await pool.status.remote()).num_quarantined == 0
    worker.rule = healthy
    await clock.advance(REJECTED_DELAY_S)
    assert (await pool.embed.remote(TEXTS[:num_texts])).refused == ()


@pytest.mark.parametrize("most", [(16, 10_000), (256, 40)])
async def test_limits_that_nobody_knew_are_learned(most: tuple[int, int]):
    """FAULTS 57."""
    texts = tuple(f"text {number}" for number in range(128))

    def strict(sent: Sequence[str]) -> Exception | None:
        is_small = len(sent) <= most[0] and 2 * len(sent) <= most[1]
        return None if is_small else InputRejected("far", "status 413", too_large=True)

    worker = Worker(strict)
    pool, _clock = remote(worker)
    embedded = await pool.embed.remote(texts)
    learned = (await pool.status.remote()).learned_limits
    worker.requests.clear()
    await pool.embed.remote(tuple(f"more {number}" for number in range(64)))

    assert (embedded.vectors == expected(texts)).all()
    assert learned is not None
    best = min(most[0], most[1] // 2)
    assert best / 2 <= learned[0] <= best
    assert all(strict(request) is None for request in worker.requests)


async def test_one_text_that_is_too_long_does_not_make_later_requests_small():
    worker = Worker(refuses("text 9", InputRejected("far", "status 400", too_large=True)))
    pool, _clock = remote(worker)

    embedded = await pool.embed.remote(TEXTS)

    assert [number for number, _reason in embedded.refused] == [9]
    assert (await pool.status.remote()).learned_limits is None


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
    running = [asyncio.ensure_future(pool.shell.embed((f"blocker {n}",))) for n in range(2)]
    await settle()
    leaving = asyncio.ensure_future(pool.shell.embed(TEXTS))
    await settle()
    leaving.cancel()
    await asyncio.wait({leaving})
    worker.gate.set()
    await asyncio.gather(*running)
    await settle()

    assert (await pool.status.remote()).num_waiting == 0
    assert len(worker.requests) == 2


async def test_an_error_of_our_own_reaches_the_caller_and_blocks_nobody():
    worker = Worker(failing(ZeroDivisionError("a bug")))
    pool, _clock = remote(worker)

    with pytest.raises(ZeroDivisionError):
        await pool.embed.remote(TEXTS)
    assert (await pool.embed.remote(TEXTS)).refused == ()
