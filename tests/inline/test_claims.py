"""Equal texts of files that are indexed side by side."""

from __future__ import annotations

import asyncio

import pytest

from actors.claims import VectorClaims
from memory.errors import BadEmbedding
from tests.doubles import HashEmbedder
from tests.unit.building import chunk


class Model:
    """Embeds when its gate is opened, and perhaps fails or forgets a row."""

    def __init__(self) -> None:
        self.hashing = HashEmbedder()
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        self.num_lost = 0

    async def embed(self, chunks):
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        rows = self.hashing.embed_documents([each.content for each in chunks])
        return rows[: len(rows) - self.num_lost]


async def begun(coroutine) -> asyncio.Task:
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0)
    return task


def is_free(claims: VectorClaims) -> bool:
    return not claims._claims


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


async def test_no_chunks_cost_no_call():
    async def never(_chunks):
        raise AssertionError

    rows, mine = await VectorClaims().embed([], never)

    assert rows.shape == (0, 0)
    assert mine == []


async def test_own_claims_are_free_again_when_somebody_else_failed():
    """Else they would stay for ever, and grow with every such failure."""
    claims, failing, working = VectorClaims(), Model(), Model()
    failing.error = BadEmbedding("fake", "a vector is zero")
    first = await begun(claims.embed([chunk("same")], failing.embed))
    second = await begun(claims.embed([chunk("own"), chunk("same")], working.embed))
    working.gate.set()
    failing.gate.set()

    errors = await asyncio.gather(first, second, return_exceptions=True)

    assert [type(error) for error in errors] == [BadEmbedding, BadEmbedding]
    assert is_free(claims)


async def test_a_missing_row_fails_everybody_instead_of_keeping_them_waiting():
    claims, forgetful, working = VectorClaims(), Model(), Model()
    forgetful.num_lost = 1
    first = await begun(claims.embed([chunk("one"), chunk("same")], forgetful.embed))
    second = await begun(claims.embed([chunk("same")], working.embed))
    forgetful.gate.set()

    async with asyncio.timeout(5):
        errors = await asyncio.gather(first, second, return_exceptions=True)

    assert [type(error) for error in errors] == [ValueError, ValueError]
    assert is_free(claims)


async def test_who_is_cancelled_while_waiting_disturbs_nobody():
    claims, model = VectorClaims(), Model()
    first = await begun(claims.embed([chunk("same")], model.embed))
    second = await begun(claims.embed([chunk("same")], model.embed))
    second.cancel()
    await asyncio.wait({second})
    model.gate.set()
    rows, mine = await first

    assert second.cancelled()
    assert rows.shape == (1, 16)
    claims.release(mine)
    assert is_free(claims)


@pytest.mark.parametrize("waiter_first", [False, True])
async def test_all_may_be_cancelled_at_once(waiter_first):
    """As the Chunker does when it stops: each ends as cancelled, and nothing is left."""
    claims, model = VectorClaims(), Model()
    first = await begun(claims.embed([chunk("same")], model.embed))
    second = await begun(claims.embed([chunk("same")], model.embed))
    tasks = [second, first] if waiter_first else [first, second]
    for task in tasks:
        task.cancel()

    await asyncio.wait(tasks)

    assert first.cancelled()
    assert second.cancelled()
    assert is_free(claims)
