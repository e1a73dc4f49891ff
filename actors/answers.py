"""How does the daemon answer searches, look-ups and events over its socket?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from actors.host import CALL_DEADLINE_S, ActorAccess, ActorEvents
from actors.loops import call
from actors.rebuilding import begin, is_complete
from memory.clock import SystemClock
from memory.errors import DaemonError
from memory.events import VISIBILITY_S
from memory.excerpts import MAX_LINES
from memory.inspection_payload import inspect_payload
from memory.payloads import context_payload, event_payload, list_payload, show_payload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from actors.system import MemorySystem
    from memory.config import Settings
    from memory.inspection_payload import InspectPayload
    from memory.payloads import (
        ContextPayload,
        EventPayload,
        ExcerptPayload,
        ListItem,
        RebuildBegunPayload,
        SavePayload,
        SearchPayload,
        ShowPayload,
    )

T = TypeVar("T")


class Answers:
    """What a client may ask for; each method takes the keys of a request."""

    def __init__(self, system: MemorySystem, settings: Settings, workspace: Path) -> None:
        self._system = system
        self._settings = settings
        self._workspace = workspace
        self._access = ActorAccess(system, settings, workspace)
        self._events = ActorEvents(system.emitter)
        self._clock = SystemClock()

    def commands(self) -> dict[str, Callable[[Mapping[str, Any]], Awaitable[object]]]:
        """Returns the commands by name."""
        return {
            "search": self._search,
            "context": self._context,
            "list": self._list,
            "show": self._show,
            "get": self._get,
            "inspect": self._inspect,
            "save": self._save,
            "events": self._waiting,
            "take": self._take,
            "acknowledge": self._acknowledge,
            "rebuild": self._rebuild,
            "is_rebuilt": self._is_rebuilt,
        }

    async def _search(self, request: Mapping[str, Any]) -> SearchPayload:
        limit = request.get("limit") or self._settings.memory.max_tool_memory_results
        return await self._access.search(str(request["query"]), int(limit))

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

    async def _get(self, request: Mapping[str, Any]) -> ExcerptPayload:
        first, count = int(request.get("start_line", 1)), int(request.get("num_lines", MAX_LINES))
        return await self._access.get(str(request["path"]), max(1, first), max(1, count))

    async def _inspect(self, request: Mapping[str, Any]) -> InspectPayload:
        after, named = str(request.get("after", "")), request.get("paths")
        paths = None if named is None else tuple(map(str, named))
        wants_vectors = bool(request.get("vectors"))
        keeper = self._system.keeper
        found = await self._call(lambda: keeper.inspect.remote(after, paths, wants_vectors))
        former = await self._call(keeper.former_identity.remote)
        return inspect_payload(
            found,
            self._settings.memory,
            workspace=str(self._workspace),
            is_building=former is not None,
        )

    async def _save(self, request: Mapping[str, Any]) -> SavePayload:
        sources = tuple(str(source) for source in request.get("source_ids", ()))
        return await self._access.save(str(request["content"]), sources)

    async def _waiting(self, _request: Mapping[str, Any]) -> list[EventPayload]:
        return [event_payload(event) for event in await self._events.waiting()]

    async def _take(self, request: Mapping[str, Any]) -> EventPayload | None:
        visibility_s = _seconds(request.get("visibility_s", VISIBILITY_S))
        event = await self._events.take(visibility_s, _seconds(request.get("wait_s", 0.0)))
        return None if event is None else event_payload(event)

    async def _acknowledge(self, request: Mapping[str, Any]) -> dict[str, bool]:
        return {"acknowledged": await self._events.acknowledge(str(request["event_id"]))}

    async def _rebuild(self, _request: Mapping[str, Any]) -> RebuildBegunPayload:
        return await begin(self._system, self._clock)

    async def _is_rebuilt(self, request: Mapping[str, Any]) -> bool:
        return await is_complete(self._system, int(request["rebuild"]), self._clock)

    async def _call(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await call(attempt, clock=self._clock, deadline_s=CALL_DEADLINE_S)


def _seconds(given: Any) -> float:
    seconds = float(given)
    if not math.isfinite(seconds):  # a lease until then would never end
        raise ValueError("a number of seconds is finite")
    return seconds
