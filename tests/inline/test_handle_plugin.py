"""What a host on Ray holds of its memory: the same five members, over handles."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from actors.plugin import HandlePlugin, create
from actors.system import MemorySystem
from memory import hosted_access
from memory.data_lock import data_lock, is_held
from memory.hosted_access import Configuration
from memory.locations import Locations
from memory.plugin import DaemonPlugin, MemoryPlugin
from memory.reader import SnapshotReader
from tests.inline.handles import InlineHandle
from tests.inline.test_service import StillWatcher

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.inline.conftest import Pipe

PATIENCE_S = 120.0
"""For a process of its own, which loads the model; the machine may be busy."""
LOCAL = {"memory": {"embeddings": {"provider": "local"}}}


def on(pipe: Pipe, start_actors: Callable[[], MemorySystem] | None = None) -> HandlePlugin:
    system = MemorySystem(
        watcher=InlineHandle(StillWatcher()),
        chunker=pipe.chunker,
        pool=pipe.pool,
        workers=(),
        keeper=pipe.keeper,
        persister=pipe.persister,
        provider=pipe.provider,
        emitter=pipe.emitter,
        arguments=(),
    )
    locations = Locations(pipe.data.parent / "config.yml", pipe.root, pipe.data)
    return HandlePlugin(
        Configuration(pipe.settings, LOCAL),
        locations,
        start_actors=start_actors or (lambda: system),
        clock=pipe.clock,
    )


@pytest.fixture
async def memory(pipe: Pipe) -> Any:
    memory = on(pipe)
    pipe.write("wiki/alice.md", "# Alice\n\nAlice lives in Atlanta.\n")
    await memory.start()

    async def ready() -> bool:
        return memory.is_ready()

    await pipe.until(ready)
    yield memory
    await memory.stop()


def test_both_plugins_have_the_members_of_the_protocol():
    members = {name for name in vars(MemoryPlugin) if not name.startswith("_")}

    assert members == {"start", "is_ready", "context_provider", "tools", "events", "stop"}
    for plugin in (DaemonPlugin, HandlePlugin):
        assert members <= set(vars(plugin))


async def test_prompts_tools_and_events_are_served_over_handles(pipe: Pipe, memory: HandlePlugin):
    by_name = {tool.name: tool for tool in memory.tools}

    assert "| `wiki/alice.md` |" in await memory.context_provider("who lives in atlanta")
    assert "`wiki/alice.md:1-3`" in (await by_name["memory_search"]({"query": "atlanta"})).text
    assert "lives in" in (await by_name["memory_get"]({"path": "wiki/alice.md"})).text
    assert (await by_name["memory_save"]({"content": "Alice moved."})).data["state"] == "queued"
    event = await memory.events.take(300.0, 0.0)
    assert event is not None
    assert event.prompt == "Alice moved."
    assert await memory.events.acknowledge(event.event_id)


async def test_stop_saves_the_index_and_gives_the_data_folder_back(
    pipe: Pipe, memory: HandlePlugin
):
    assert is_held(pipe.data)

    await memory.stop()

    with SnapshotReader(pipe.data) as reader:
        assert [file.path for file in reader.files()] == ["wiki/alice.md"]
    assert not is_held(pipe.data)
    assert not memory.is_ready()


@pytest.mark.slow
async def test_after_stop_the_saved_index_answers(
    pipe: Pipe, memory: HandlePlugin, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hosted_access, "SEARCH_DISK_S", PATIENCE_S)
    await memory.stop()
    search = memory.tools[0]

    found = await search({"query": "atlanta"})

    assert not found.is_error, found.text
    assert found.data["source"] == "disk"
    assert [hit["path"] for hit in found.data["hits"]] == ["wiki/alice.md"]


async def test_a_data_folder_in_use_disables_the_memory_with_one_line(pipe: Pipe, caplog):
    caplog.set_level(logging.WARNING)
    memory = on(pipe)
    with data_lock(pipe.data):
        await memory.start()
        assert memory._task is not None
        await asyncio.wait((memory._task,))

    assert "memory: disabled \u2014 " in caplog.text
    assert "is in use by process" in caplog.text
    await memory.stop()


@pytest.mark.slow
async def test_a_program_without_ray_is_told(tmp_path: Path, caplog):
    memory = create(LOCAL, workspace=tmp_path, data=tmp_path / "data")
    await memory.start()
    assert memory._task is not None
    await asyncio.wait((memory._task,))

    assert "this program is not connected to a Ray; call ray.init() first" in caplog.text
    assert await memory.context_provider("a prompt") == ""
    await memory.stop()


async def test_a_disabled_memory_has_no_tools(tmp_path: Path, caplog):
    memory = create({}, workspace=tmp_path, data=tmp_path / "data")
    await memory.start()

    assert memory.tools == ()
    assert await memory.context_provider("a prompt") == ""
    assert "pending config" in caplog.text
