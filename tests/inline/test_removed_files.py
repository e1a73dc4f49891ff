"""What does it cost at the provider if files of the data folder were removed?"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from actors.bulk_embedding import CONTROL_TEXT
from memory.identity import EMBEDDING_JSON
from memory.messages import Query
from memory.snapshot import SNAPSHOT_NAME
from memory.unrelated_prompts import unrelated_prompts
from tests.doubles import FakeClock
from tests.inline.conftest import FLUSH_S, INFO, start, stop

if TYPE_CHECKING:
    from pathlib import Path

    from tests.inline.conftest import Pipe

PROVIDER = replace(INFO, limits=replace(INFO.limits, max_concurrent=2))
"""A model behind a network, whose calls cost something."""
NUM_FILES = 3
REMOVED = {
    "nothing": ((), (0, 0)),
    "embedding.json": ((EMBEDDING_JSON,), (1, 0)),
    "memory.msp": ((SNAPSHOT_NAME,), (0, NUM_FILES)),
    "both": ((EMBEDDING_JSON, SNAPSHOT_NAME), (1, NUM_FILES)),
}


async def started(pipe: Pipe) -> None:
    """Does what a start does: one trial call if the index asks for it, and the comparison."""
    report = await pipe.keeper.report.remote()
    dim = await pipe.pool.warm_up.remote(report.needs_probe)
    if report.needs_probe:
        await pipe.keeper.confirm_dimension.remote(dim)
    await pipe.settle()
    await pipe.clock.advance(FLUSH_S + 1)
    await pipe.until(lambda: _is_written(pipe))


async def _is_written(pipe: Pipe) -> bool:
    status = await pipe.persister.status.remote()
    return not status.dirty and (pipe.data / EMBEDDING_JSON).exists()


@pytest.mark.parametrize(("names", "costs"), REMOVED.values(), ids=REMOVED)
async def test_a_start_costs_one_trial_call_at_most_and_each_text_once(
    tmp_path: Path, names: tuple[str, ...], costs: tuple[int, int]
):
    """FAULTS 12."""
    root, data = tmp_path / "workspace", tmp_path / "data"
    root.mkdir()
    data.mkdir()
    pipe = start(root, data, PROVIDER, FakeClock())
    for number in range(NUM_FILES):
        pipe.write(f"{number}.md", f"# File {number}\n\nText {number}.\n")
    await started(pipe)
    await pipe.persister.flush.remote()
    await stop(pipe)
    for name in names:
        (data / name).unlink()

    again = start(root, data, PROVIDER, FakeClock())
    await started(again)
    model = again.worker.model
    found = again.keeper.shell._indexes.answering.search(Query("file", 9), None)
    await stop(again)

    assert (model.queries.count(CONTROL_TEXT), len(model.texts)) == costs
    # Nothing else but the prompts of the calibration, which the snapshot held.
    others = set(model.queries) - {CONTROL_TEXT}
    assert not others or SNAPSHOT_NAME in names
    assert others <= set(chain.from_iterable(unrelated_prompts()))
    assert len({hit.path for hit in found.hits}) == NUM_FILES
