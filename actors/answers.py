"""How does the daemon answer searches and look-ups from the command line?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from actors.loops import call
from memory.clock import SystemClock
from memory.errors import DaemonError
from memory.freshness import fresh_paths
from memory.payloads import context_payload, list_payload, search_payload, show_payload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from actors.system import MemorySystem
    from memory.config import Settings
    from memory.payloads import ContextPayload, ListItem, SearchPayload, ShowPayload

CALL_DEADLINE_S = 30.0

T = TypeVar("T")


class Answers:
    """The read commands, and ``save``; each takes the keys of a request."""

    def __init__(self, system: MemorySystem, settings: Settings, workspace: Path) -> None:
        self._system = system
        self._settings = settings
        self._workspace = workspace
        self._clock = SystemClock()

    def commands(self) -> dict[str, Callable[[Mapping[str, Any]], Awaitable[object]]]:
        """Returns the commands by name."""
        return {
            "search": self._search,
            "context": self._context,
            "list": self._list,
            "show": self._show,
            "save": self._save,
        }

    async def _search(self, request: Mapping[str, Any]) -> SearchPayload:
        text = str(request["query"])
        limit = request.get("limit") or self._settings.memory.max_tool_memory_results
        result = await self._call(lambda: self._system.provider.search.remote(text, int(limit)))
        fresh = await asyncio.to_thread(fresh_paths, self._workspace, result.hits)
        return search_payload(text, result, source="daemon", age_s=0.0, fresh_paths=fresh)

    async def _context(self, request: Mapping[str, Any]) -> ContextPayload:
        prompt = str(request["prompt"])
        return context_payload(
            await self._call(lambda: self._system.provider.section.remote(prompt))
        )

    async def _list(self, _request: Mapping[str, Any]) -> list[ListItem]:
        return list_payload(await self._call(self._system.keeper.files.remote))

    async def _show(self, request: Mapping[str, Any]) -> ShowPayload:
        path = str(request["path"])
        found = await self._call(lambda: self._system.keeper.chunks.remote(path))
        if found is None:
            raise DaemonError(f"{path!r} is not in the index")
        return show_payload(*found)

    async def _save(self, request: Mapping[str, Any]) -> dict[str, str]:
        content = str(request["content"])
        receipt = await self._call(lambda: self._system.emitter.emit.remote(content, ()))
        return {"event_id": receipt.event_id, "state": receipt.state}

    async def _call(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await call(attempt, clock=self._clock, deadline_s=CALL_DEADLINE_S)
