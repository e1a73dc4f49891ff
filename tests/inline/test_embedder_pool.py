"""Texts spread over workers, questions beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from actors.embedder_pool import MAX_UNIT, EmbedderPool, units
from memory.errors import BadEmbedding, ProviderUnavailable
from tests.doubles import FakeClock, HashEmbedder
from tests.inline.conftest import INFO
from tests.inline.handles import InlineHandle


class Worker:
    """Embeds at once, or waits for a gate, or fails."""

    def __init__(self) -> None:
        self.model = HashEmbedder(INFO.dim)
        self.gate: asyncio.Event | None = None
        self.error: Exception | None = None

    async def embed(self, texts: tuple[str, ...]) -> Any:
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.model.embed_documents(texts)

    async def embed_query(self, text: str) -> Any:
        return self.model.embed_query(text)


def pool_of(*workers: Worker) -> tuple[InlineHandle, list[InlineHandle], FakeClock]:
    handles, clock = [InlineHandle(worker) for worker in workers], FakeClock()
    return InlineHandle(EmbedderPool(INFO, *handles, clock=clock)), handles, clock


TEXTS = tuple(f"text {number}" for number in range(53))


async def test_rows_follow_texts_however_many_workers_share_them():
    pool, _handles, _clock = pool_of(Worker(), Worker(), Worker())

    rows = await pool.embed.remote(TEXTS)

    assert (rows == HashEmbedder(INFO.dim).embed_documents(TEXTS)).all()
    assert (await pool.status.remote()).num_embedded == len(TEXTS)
    assert (await pool.status.remote()).num_tokens == 2 * len(TEXTS)


async def test_no_text_gives_no_row():
    pool, _handles, _clock = pool_of(Worker())

    assert (await pool.embed.remote(())).shape == (0, INFO.dim)


@pytest.mark.parametrize(
    ("num_texts", "num_workers", "sizes"),
    [(5, 2, [3, 2]), (1, 4, [1]), (16, 1, [MAX_UNIT, MAX_UNIT]), (0, 2, [])],
)
def test_a_short_request_still_uses_every_worker(num_texts, num_workers, sizes):
    assert [len(unit) for unit in units(TEXTS[:num_texts], num_workers)] == sizes


async def test_a_worker_that_restarts_is_waited_for():
    pool, (handle,), clock = pool_of(Worker())
    handle.dead = True
    task = pool.embed.remote(TEXTS[:3])
    await clock.advance(1)
    handle.dead = False
    await clock.advance(10)

    assert (await task).shape == (3, INFO.dim)


async def test_a_refusal_arrives_as_its_own_class_and_costs_no_worker():
    worker = Worker()
    pool, _handles, _clock = pool_of(worker)
    worker.error = BadEmbedding("local", "a vector is zero")

    for _attempt in range(3):
        with pytest.raises(BadEmbedding, match="a vector is zero"):
            await pool.embed.remote(TEXTS)
    worker.error = None

    assert (await pool.embed.remote(TEXTS)).shape == (len(TEXTS), INFO.dim)
    assert (await pool.status.remote()).num_waiting == 0


async def test_a_question_does_not_wait_for_bulk_work():
    worker = Worker()
    worker.gate = asyncio.Event()
    pool, _handles, _clock = pool_of(worker)
    bulk = pool.embed.remote(TEXTS)
    await asyncio.sleep(0)

    vector = await pool.embed_query.remote("question")

    assert np.allclose(vector, HashEmbedder(INFO.dim).embed_query("question"))
    assert not bulk.done()
    worker.gate.set()
    await bulk


async def test_a_question_goes_to_another_worker_if_one_is_down_and_fails_if_all_are():
    pool, handles, _clock = pool_of(Worker(), Worker())
    handles[0].dead = True

    for _attempt in range(4):
        assert (await pool.embed_query.remote("question")).shape == (INFO.dim,)
    handles[1].dead = True
    with pytest.raises(ProviderUnavailable, match="no embedder is reachable"):
        await pool.embed_query.remote("question")


async def test_warming_up_loads_every_worker_and_tells_the_dimension():
    workers = (Worker(), Worker())
    pool, _handles, _clock = pool_of(*workers)

    assert await pool.warm_up.remote() == INFO.dim
    assert [len(worker.model.queries) for worker in workers] == [1, 1]
