"""Is the index calibrated in the background, once, and again when the model comes back?"""

from __future__ import annotations

import asyncio

from actors.calibrating import POLL_S, RETRY_S
from memory.errors import ProviderUnavailable
from memory.index_opening import open_or_create
from memory.unrelated_prompts import unrelated_prompts
from tests.inline.conftest import FLUSH_S, INFO, Pipe

NUM_PROMPTS = sum(map(len, unrelated_prompts()))


async def threshold(pipe: Pipe) -> float | None:
    return (await pipe.provider.search.remote("beta", 1)).threshold


async def calibrated(pipe: Pipe) -> None:
    async def done() -> bool:
        return await threshold(pipe) is not None

    await pipe.clock.advance(POLL_S)
    await pipe.until(done)


async def test_an_index_is_calibrated_once_it_holds_something(pipe: Pipe):
    await pipe.settle()
    await pipe.clock.advance(10 * POLL_S)
    assert pipe.worker.model.queries == []

    pipe.write("a.md", "# A\n\nAlpha.\n")
    await pipe.touched("a.md")
    await calibrated(pipe)

    asked = [text for text in pipe.worker.model.queries if text != "beta"]
    assert len(asked) == len(set(asked)) == NUM_PROMPTS
    payload = await pipe.keeper.status.remote()
    assert payload.threshold == await threshold(pipe)
    # Nobody asked them, so they are no questions.
    status = await pipe.pool.status.remote()
    assert status.num_queries == pipe.pool.calls.count("embed_query")
    assert pipe.worker.model.queries.count("beta") == 1


async def test_a_calibration_survives_a_restart_without_a_call_of_the_model(pipe: Pipe):
    pipe.write("a.md", "# A\n\nAlpha.\n")
    await pipe.touched("a.md")
    await calibrated(pipe)
    before = await threshold(pipe)
    await pipe.persister.flush.remote()

    opened = open_or_create(
        pipe.settings.memory, INFO, data=pipe.data, workspace=pipe.root, epoch="e", now=0.0
    )

    assert opened.index.status().threshold == before
    opened.storage.stop_logging()


async def test_a_calibration_alone_is_a_reason_to_save(pipe: Pipe):
    pipe.write("a.md", "# A\n\nAlpha.\n")
    await pipe.touched("a.md")
    await pipe.clock.advance(FLUSH_S)
    await pipe.persister.flush.remote()
    saved = (await pipe.persister.status.remote()).saved_at
    await calibrated(pipe)

    assert (await pipe.keeper.storage.remote()).needs_save
    await pipe.persister.flush.remote()

    assert not (await pipe.keeper.storage.remote()).needs_save
    assert (await pipe.persister.status.remote()).saved_at >= saved


async def test_a_model_that_fails_is_asked_again_later(pipe: Pipe):
    pipe.write("a.md", "# A\n\nAlpha.\n")
    await pipe.touched("a.md")
    pipe.worker.error = ProviderUnavailable("fake", "down")
    await pipe.clock.advance(POLL_S)
    for _ in range(20):
        await asyncio.sleep(0)
    assert await threshold(pipe) is None

    pipe.worker.error = None
    await pipe.clock.advance(RETRY_S)
    await calibrated(pipe)
