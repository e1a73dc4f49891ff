"""Do new files reach the index together when there are many, and at once when there are few?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from actors import applying
from actors.applying import Applier
from actors.index_keeper import IndexKeeper
from memory.checks import dump
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.errors import StaleUpdate
from memory.messages import FileEvent, FileUpdate, ParsedFile
from tests.doubles import FakeClock, HashEmbedder
from tests.inline.conftest import INFO, FakeBuilder, Pipe
from tests.inline.handles import InlineHandle
from tests.unit.building import parsed, text_of

if TYPE_CHECKING:
    from pathlib import Path

NUM_GROUPS = 2


class Harness:
    """An Applier over a real keeper."""

    def __init__(self, data: Path) -> None:
        settings = Settings(memory=MemorySettings(embeddings=EmbeddingsSettings(provider="local")))
        self.shell = IndexKeeper(settings, INFO, data, data)
        self.keeper = InlineHandle(self.shell)
        self.builder = FakeBuilder()
        self.clock = FakeClock()
        self.embedder = HashEmbedder(INFO.dim)
        self.applier = Applier(self.keeper, self.builder, NUM_GROUPS, self.clock)

    def update(self, file: ParsedFile) -> FileUpdate:
        texts = {chunk.content_hash: text_of(chunk) for chunk in file.chunks}
        vectors = self.embedder.embed_documents(list(texts.values()))
        return FileUpdate(file.path, file, tuple(texts), vectors)

    def start(self, *files: ParsedFile) -> list[asyncio.Task]:
        """Applies new files side by side."""
        coroutines = [self.applier.apply(self.update(file), is_new=True) for file in files]
        return [asyncio.create_task(coroutine) for coroutine in coroutines]

    def paths(self) -> list[str]:
        return [file.path for file in self.shell.files()]


@pytest.fixture
def harness(tmp_path, monkeypatch):
    monkeypatch.setattr(applying, "MIN_BATCH_CHUNKS", 6)
    monkeypatch.setattr(applying, "MAX_BATCH_CHUNKS", 10)
    return Harness(tmp_path)


def files(count: int, *, chunks: int = 2) -> list[ParsedFile]:
    texts = [[f"Text {number} {n}." for n in range(chunks)] for number in range(count)]
    return [parsed(f"{number:02}.md", each) for number, each in enumerate(texts)]


async def test_a_few_files_go_one_by_one(harness):
    results = await asyncio.gather(*harness.start(*files(4)))

    assert harness.keeper.calls == ["apply"] * 4
    assert harness.builder.batches == []
    assert [result.num_added for result in results] == [2] * 4


async def test_files_that_wait_for_others_go_together(harness):
    results = await asyncio.gather(*harness.start(*files(12)))

    # Two go at once; of the rest, ten chunks at a time.
    assert harness.builder.batches == [
        ["02.md", "03.md", "04.md", "05.md", "06.md"],
        ["07.md", "08.md", "09.md", "10.md", "11.md"],
    ]
    assert sorted(harness.keeper.calls) == ["add"] * 2 + ["apply"] * 2
    assert [result.num_added for result in results] == [2] * 12
    assert len(harness.paths()) == 12


async def test_a_batch_leaves_the_index_of_single_files(harness, tmp_path_factory):
    other = Harness(tmp_path_factory.mktemp("other"))

    await asyncio.gather(*harness.start(*files(12)))
    for file in files(12):
        await other.applier.apply(other.update(file))

    assert harness.builder.batches
    assert dump(harness.shell._indexes.answering) == dump(other.shell._indexes.answering)


async def test_a_file_that_is_known_and_a_removal_wait_for_nobody(harness):
    harness.start(*files(12))
    await harness.applier.apply(harness.update(parsed("known.md", ["One."])))
    await harness.applier.apply(FileUpdate("known.md", None))

    assert harness.keeper.calls[:4] == ["apply"] * 4
    assert len(harness.paths()) < 12


async def test_a_builder_that_fails_costs_nothing_but_time(harness):
    harness.builder.error = RuntimeError("no room on the cluster")

    await asyncio.gather(*harness.start(*files(12)))

    assert len(harness.builder.batches) == 2
    assert harness.keeper.calls == ["apply"] * 12
    assert len(harness.paths()) == 12


async def test_a_builder_that_never_answers_is_given_up(harness, monkeypatch):
    monkeypatch.setattr(applying, "BUILD_DEADLINE_S", 0.01)
    never = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(harness.applier, "_build", lambda _files: never)

    await asyncio.gather(*harness.start(*files(12)))

    assert len(harness.paths()) == 12


async def test_a_file_of_a_batch_that_became_known_is_applied_all_the_same(harness):
    tasks = harness.start(*files(12))
    changed = parsed("04.md", ["Other."], mtime_ns=2)
    await harness.applier.apply(harness.update(changed))
    await asyncio.gather(*tasks)

    assert len(harness.paths()) == 12
    assert harness.keeper.calls.count("add") == 2


async def test_one_file_that_fails_fails_alone(harness):
    good = files(12)
    bad = parsed("bad.md", ["Without a vector."])
    tasks = harness.start(*good)
    lost = asyncio.create_task(harness.applier.apply(FileUpdate("bad.md", bad), is_new=True))

    await asyncio.gather(*tasks)

    with pytest.raises(StaleUpdate):
        await lost
    assert harness.paths() == [file.path for file in good]


async def test_a_batch_waits_for_a_keeper_that_restarts(harness):
    harness.keeper.dead = True
    tasks = harness.start(*files(12))
    await harness.clock.advance(1.0)
    assert not any(task.done() for task in tasks)

    harness.keeper.dead = False
    while not all(task.done() for task in tasks):
        await harness.clock.advance(1.0)

    assert len(harness.paths()) == 12


async def test_stopping_ends_whoever_waits(harness):
    harness.keeper.dead = True
    tasks = harness.start(*files(12))
    await harness.clock.advance(1.0)

    harness.applier.stop()
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(result, asyncio.CancelledError) for result in results)


def keeper_waits(pipe: Pipe) -> asyncio.Event:
    """Returns an event before which the keeper applies nothing."""
    gate, apply = asyncio.Event(), pipe.keeper.shell.apply

    async def waits(update: FileUpdate):
        await gate.wait()
        return apply(update)

    pipe.keeper.shell.apply = waits
    return gate


async def embedded(pipe: Pipe, count: int) -> bool:
    return len(pipe.worker.model.texts) == count


async def test_a_whole_workspace_is_indexed_in_batches(pipe: Pipe, monkeypatch):
    monkeypatch.setattr(applying, "MIN_BATCH_CHUNKS", 8)
    for number in range(100):
        pipe.write(f"{number}.md", f"# Title\n\nText {number}.\n\n## Part\n\nMore {number}.\n")
    first = keeper_waits(pipe)
    await pipe.until(lambda: embedded(pipe, 200))
    first.set()
    await pipe.settle()

    assert len(await pipe.paths()) == 100
    # Each of the first ones goes alone, the rest together.
    num_alone = pipe.keeper.calls.count("apply")
    assert sum(map(len, pipe.builder.batches)) == 100 - num_alone > 80
    assert len(pipe.worker.model.texts) == len(set(pipe.worker.model.texts))
    activity = await pipe.chunker.activity.remote(0)
    assert sorted(entry.path for entry in activity) == sorted(await pipe.paths())
    assert {entry.num_embedded + entry.num_reused for entry in activity} == {2}


async def test_files_that_wait_for_the_keeper_keep_no_other_from_being_embedded(pipe: Pipe):
    await pipe.settle()
    gate = keeper_waits(pipe)
    for number in range(40):
        pipe.write(f"{number}.md", f"# Title\n\nText {number}.\n")
    await pipe.chunker.notice.remote(tuple(FileEvent(f"{n}.md") for n in range(40)), False)

    await pipe.until(lambda: embedded(pipe, 40))
    assert await pipe.paths() == []
    gate.set()
    await pipe.settle()
    assert len(await pipe.paths()) == 40
