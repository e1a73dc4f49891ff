"""A provider that is away, refuses texts or takes less than it promised."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from ray.exceptions import ActorUnavailableError, OutOfMemoryError

from actors.bulk_embedding import CONTROL_TEXT
from actors.worker_calls import MAX_DEATHS
from memory.errors import (
    BadEmbedding,
    EmbeddingError,
    InputRejected,
    ProviderAwaited,
    ProviderRejected,
    ProviderUnavailable,
    TextsUnanswered,
)
from memory.provider_gate import MAX_DELAY_S, MAX_FAILURES, REJECTED_DELAY_S
from memory.providers.base import RequestLimits
from tests.inline.pools import (
    DIM,
    DOWN,
    MOST_AT_A_WORKER,
    REMOTE,
    TEXTS,
    Worker,
    expected,
    failing,
    healthy,
    pool_of,
    refuses,
    remote,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.doubles import FakeClock


async def second_by_second(clock: FakeClock) -> None:
    """Lets the time pass in which MAX_FAILURES open the breaker."""
    for _second in range(3 * MAX_FAILURES):
        await clock.advance(1)


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
    assert worker.most_at_once <= MOST_AT_A_WORKER
    assert 3600 / MAX_DELAY_S <= len(worker.requests) <= 120 + MAX_FAILURES
    assert len(pool.shell._bulk._waiting) == 0


async def test_a_text_that_the_provider_fails_at_is_told_from_an_outage():
    """While others are embedded, what fails again and again does so by itself."""
    worker = Worker(refuses("odd", DOWN))
    pool, clock = remote(worker)
    outcomes = []
    for _attempt in range(3):
        task = pool.embed.remote(("odd",))
        await second_by_second(clock)
        outcomes += await asyncio.gather(task, return_exceptions=True)
        await clock.advance(MAX_DELAY_S)
    worker.rule = lambda _texts: DOWN
    away = pool.embed.remote(("odd",))
    await second_by_second(clock)

    assert [type(error) for error in outcomes] == [ProviderUnavailable, *[TextsUnanswered] * 2]
    assert {str(error) for error in outcomes} == {"far: status 503"}
    with pytest.raises(ProviderAwaited, match="waiting for far: status 503"):
        await away


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
    assert worker.requests == [(CONTROL_TEXT,), TEXTS[20:30]]


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
    blockers = [pool.embed.remote((f"blocker {n}",)) for n in range(MOST_AT_A_WORKER)]
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


@pytest.mark.parametrize("num_texts", [1, 2, 53])
async def test_wrong_answers_to_every_text_are_an_outage_that_ends_within_a_minute(num_texts: int):
    """FAULTS 55: whatever is wrong with them, the texts and the configuration are not to blame."""
    worker = Worker(lambda _texts: BadEmbedding("far", "a value is not finite"))
    pool, clock = remote(worker)
    task = pool.embed.remote(TEXTS[:num_texts])
    await second_by_second(clock)

    with pytest.raises(ProviderUnavailable, match="every answer is wrong: a value is not fi"):
        await task
    status = await pool.status.remote()
    assert status.num_quarantined == 0
    assert status.calls.breaker != "closed"
    assert status.calls.retry_at <= clock.time() + MAX_DELAY_S
    worker.rule = healthy
    await clock.advance(MAX_DELAY_S)
    embedded = await pool.embed.remote(TEXTS[:num_texts])
    assert (embedded.vectors == expected(TEXTS[:num_texts])).all()
    assert embedded.refused == ()
    assert (await pool.status.remote()).calls.breaker == "closed"


@pytest.mark.parametrize(
    ("error", "pause_s"),
    [
        (BadEmbedding("far", "a vector is zero"), MAX_DELAY_S),
        (InputRejected("far", "status 400"), REJECTED_DELAY_S),
    ],
)
async def test_who_gave_no_vector_to_any_text_is_probed_by_a_single_text_of_ours(
    error: EmbeddingError, pause_s: float
):
    """FAULTS 52, 53: a wrong answer may be over soon, a refusal waits for a person."""
    worker = Worker(lambda _texts: error)
    pool, clock = remote(worker)
    first = pool.embed.remote(TEXTS)
    await second_by_second(clock)
    await asyncio.gather(first, return_exceptions=True)
    worker.requests.clear()

    num_pauses = 6
    for _pause in range(num_pauses):
        await clock.advance(pause_s)
        with pytest.raises(ProviderUnavailable):
            await pool.embed.remote(TEXTS)

    assert worker.requests == [(CONTROL_TEXT,)] * num_pauses


async def test_a_poison_text_at_the_end_of_an_outage_does_not_prolong_it():
    worker = Worker(lambda _texts: BadEmbedding("far", "a vector is zero"))
    pool, clock = remote(worker)
    task = pool.embed.remote(TEXTS)
    await second_by_second(clock)
    await asyncio.gather(task, return_exceptions=True)
    worker.rule = refuses(TEXTS[0], BadEmbedding("far", "a vector is zero"))
    await clock.advance(MAX_DELAY_S)

    assert (await pool.embed.remote(TEXTS)).refused == ((0, "a vector is zero"),)


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


@pytest.mark.parametrize(
    "ended", [ActorUnavailableError("ended", b"0" * 16), OutOfMemoryError("the memory is full")]
)
async def test_a_worker_that_ends_over_large_requests_gets_smaller_ones(ended: Exception):
    """FAULTS 73: what ends it is the size, as when the system is out of memory."""
    most = 4
    worker = Worker(lambda texts: ended if len(texts) > most else None)
    pool, clock = remote(worker)
    task = pool.embed.remote(TEXTS[10:26])
    await clock.advance(10)
    embedded = await task

    assert (embedded.vectors == expected(TEXTS[10:26])).all()
    assert embedded.refused == ()
    assert [len(request) for request in worker.requests] == [
        *[16] * MAX_DEATHS,
        *[8] * MAX_DEATHS,
        *[4] * 4,
    ]
    worker.requests.clear()
    await pool.embed.remote(TEXTS[30:50])
    assert [len(request) for request in worker.requests] == [most] * 5


async def test_a_text_that_ends_its_worker_every_time_harms_no_other_and_is_not_refused():
    """FAULTS 73: it may be the machine that is short of memory, so it is tried again later."""
    ended = ActorUnavailableError("ended", b"0" * 16)
    worker = Worker(lambda texts: ended if "odd" in texts else None)
    pool, clock = remote(worker)
    odd = pool.embed.remote(("odd",))
    await second_by_second(clock)
    others = pool.embed.remote(TEXTS)
    await second_by_second(clock)

    assert ((await others).vectors == expected(TEXTS)).all()
    with pytest.raises(ProviderUnavailable, match="ended 3 times amid the request"):
        await odd
    assert (await pool.status.remote()).num_quarantined == 0


async def test_a_worker_that_ends_once_amid_a_request_costs_a_second_one_and_nothing_else():
    worker = Worker(failing(ActorUnavailableError("ended", b"0" * 16)))
    pool, clock = remote(worker)
    task = pool.embed.remote(TEXTS[:8])
    await clock.advance(1)

    assert ((await task).vectors == expected(TEXTS[:8])).all()
    assert [len(request) for request in worker.requests] == [8, 8]
    status = await pool.status.remote()
    assert (status.learned_limits, status.calls.num_failures) == (None, ())
