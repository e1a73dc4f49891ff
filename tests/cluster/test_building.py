"""Many new files reach a keeper through Ray tasks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
import ray

from actors.applying import Applier
from actors.building import ray_tasks
from actors.index_keeper import IndexKeeper
from actors.ray_config import BuilderOptions
from memory.clock import SystemClock
from memory.messages import FileUpdate, Query
from memory.providers.factory import model_info
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from memory.config import Settings

pytestmark = pytest.mark.cluster

NUM_FILES = 200
INFO = model_info("local", "all-minilm-l6-v2")


def updates() -> list[FileUpdate]:
    embedder = HashEmbedder(INFO.dim)
    found = []
    for number in range(NUM_FILES):
        file = parsed(f"{number}.md", [f"Apples {number}.", f"Pears {number}.", f"Plums {number}."])
        vectors = embedder.embed_documents([text_of(chunk) for chunk in file.chunks])
        hashes = tuple(chunk.content_hash for chunk in file.chunks)
        found.append(FileUpdate(file.path, file, hashes, vectors))
    return found


@pytest.mark.parametrize("num_cpus", [0, 0.5])
def test_what_waits_for_the_keeper_is_prepared_in_tasks(
    cluster: None,
    settings: Settings,
    tmp_path: Path,
    num_cpus: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="actors.applying")
    remote: Any = ray.remote(num_cpus=0, concurrency_groups={"control": 1, "save": 1, "sync": 1})
    keeper = remote(IndexKeeper).remote(settings, INFO, tmp_path, tmp_path)
    options = BuilderOptions(tasks=2, num_cpus=num_cpus)
    built: list[int] = []

    async def apply_all() -> None:
        prepare = ray_tasks("english", options)

        def build(files: Any) -> Any:
            built.append(len(files))
            return prepare(files)

        applier = Applier(keeper, build, options.num_tasks(), SystemClock())
        await asyncio.gather(*(applier.apply(update, is_new=True) for update in updates()))

    asyncio.run(apply_all())
    status = ray.get(keeper.status.remote(), timeout=20)
    found = ray.get(keeper.search.remote(Query("plums 170", 3), None), timeout=20)
    ray.kill(keeper)

    assert caplog.records == []  # no batch was given up
    # The first of each group goes alone.
    assert built == [NUM_FILES - options.num_tasks()]
    assert (status.num_files, status.num_chunks) == (NUM_FILES, 3 * NUM_FILES)
    assert status.revision == NUM_FILES
    assert found.hits[0].path == "170.md"
