"""An agent of another program beside a real daemon: it searches, reads, saves, and is followed."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from memory.events import DaemonEvents, subscribe
from tests.cluster.test_daemon import Home, home

if TYPE_CHECKING:
    from memory.outbox import SkillEvent

__all__ = ["home"]  # a fixture

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def test_what_an_agent_saves_over_mcp_reaches_a_subscriber_with_its_related_files(
    home: Home,
) -> None:
    home.start()

    found, read, saved, events = asyncio.run(_conversation(home))

    assert found.structured_content["source"] == "daemon"
    assert found.structured_content["ready"]
    assert found.structured_content["hits"][0]["path"] == "wiki/bob.md"
    assert "She lives in Atlanta." in read.content[0].text
    assert saved.structured_content["state"] == "queued"
    (event,) = events
    assert event.event_id == saved.structured_content["event_id"]
    assert event.related[0] == "wiki/alice.md"
    assert home.memory("events", "--json").stdout == ""
    home.memory("stop")


async def _conversation(home: Home) -> tuple[Any, Any, Any, list[SkillEvent]]:
    """Returns what the three tools answered, and the event that came, which is acknowledged."""
    where = ["--config", str(home.folder / "config.yml"), "--data", str(home.data)]
    server = StdioServerParameters(command=sys.executable, args=["-m", "memory", "mcp", *where])
    source = DaemonEvents(home.data)
    async with Client(server) as client:
        found = await client.call_tool("memory_search", {"query": "who fixes bikes"})
        read = await client.call_tool("memory_get", {"path": "wiki/alice.md"})
        saved = await client.call_tool("memory_save", {"content": "Alice moved to Boston."})
        async with asyncio.timeout(60):
            event = await anext(subscribe(source))
        await source.acknowledge(event.event_id)
    return found, read, saved, [event]
