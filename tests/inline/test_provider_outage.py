"""What becomes of edits during an hour in which the provider is away?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from actors import chunker
from actors.chunker import MAX_FILES_IN_FLIGHT
from memory.messages import FileEvent, Query
from memory.provider_gate import MAX_DELAY_S
from memory.providers.access import GOOGLE, MISTRAL, OPENAI
from tests.doubles import FakeClock
from tests.embedding_server import EmbeddingServer, Fault
from tests.inline.conftest import Pipe, start, stop
from tests.inline.sdk_pools import SdkPool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NUM_NOTES = 10
NUM_EDITS = 200
HOUR_S = 3600.0
OUTAGES = {
    OPENAI: Fault("status", status=503, text='{"message": "overloaded"}'),
    MISTRAL: Fault("reset"),
    GOOGLE: Fault("html"),
}


@pytest.fixture(params=OUTAGES)
async def away(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    provider_server: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[tuple[Pipe, SdkPool]]:
    # Enough for all notes. All of them wake up whenever a file is due, which takes minutes here.
    monkeypatch.setattr(chunker, "MAX_FILES_AT_ONCE", NUM_NOTES)
    far = SdkPool(provider_server, request.param)
    root, data = tmp_path / "workspace", tmp_path / "data"
    root.mkdir()
    data.mkdir()
    pipe = start(root, data, far.info, FakeClock(), worker=far.worker)
    yield pipe, far
    await stop(pipe)


async def _edit(pipe: Pipe, number: int) -> None:
    path, draft = f"note-{number % NUM_NOTES}.md", pipe.data / "draft"
    draft.write_text(f"# Note\n\nEdited as edit{number}.\n")
    draft.replace(pipe.root / path)  # as editors do: nobody reads an empty file meanwhile
    await pipe.chunker.notice.remote((FileEvent(path),), False)


@pytest.mark.slow
async def test_no_edit_of_an_hour_without_the_provider_is_lost_and_nothing_piles_up(
    away: tuple[Pipe, SdkPool],
):
    """FAULTS 54."""
    pipe, server = away[0], away[1].server
    for number in range(NUM_NOTES // 2):
        pipe.write(f"note-{number}.md", f"# Note\n\nOld text {number}.\n")
    await pipe.settle()
    server.outage = OUTAGES[away[1].protocol]
    server.requests.clear()
    waiting, pending, tasks = [], [], []
    for number in range(NUM_EDITS):
        await _edit(pipe, number)
        await pipe.clock.advance(HOUR_S / NUM_EDITS)
        await asyncio.to_thread(lambda: None)
        waiting.append((await pipe.pool.status.remote()).num_waiting)
        pending.append((await pipe.chunker.status.remote()).num_pending)
        tasks.append(len(asyncio.all_tasks()))
    num_probes = server.num_requests
    old = (await pipe.keeper.search.remote(Query("old text", NUM_NOTES), None)).hits

    assert pipe.clock.monotonic() >= HOUR_S
    assert len(old) == NUM_NOTES // 2
    assert max(waiting) <= MAX_FILES_IN_FLIGHT
    assert max(pending) <= NUM_NOTES
    assert max(tasks[NUM_NOTES:]) <= max(tasks[:NUM_NOTES]) + 2 * MAX_FILES_IN_FLIGHT
    assert HOUR_S / MAX_DELAY_S <= num_probes <= 2 * NUM_EDITS

    server.outage = None
    await pipe.clock.advance(2 * MAX_DELAY_S)
    await pipe.settle()

    assert (await pipe.chunker.status.remote()).failed == ()
    assert len(await pipe.paths()) == NUM_NOTES
    for number in range(NUM_EDITS - NUM_NOTES, NUM_EDITS):
        (hit, *_) = (await pipe.keeper.search.remote(Query(f"edit{number}", 1), None)).hits
        assert hit.path == f"note-{number % NUM_NOTES}.md"
        assert hit.snippet == f"Edited as edit{number}."
