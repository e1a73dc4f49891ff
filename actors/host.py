"""What does a host call that holds the handles of a memory?

``ActorAccess`` is what the agent tools need (``memory.tools``), ``ActorEvents`` what a subscriber
needs (``memory.events``). The daemon answers its socket with the same two.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from actors.loops import call
from memory.agent_run.endpoints import off_reason
from memory.clock import SystemClock
from memory.errors import DaemonError
from memory.excerpts import read_excerpt
from memory.freshness import fresh_paths
from memory.payloads import search_payload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.event_emitter import EventEmitter
    from actors.system import MemorySystem
    from memory.clock import Clock
    from memory.config import Settings
    from memory.outbox import SkillEvent
    from memory.payloads import ExcerptPayload, SavePayload, SearchPayload

CALL_DEADLINE_S = 30.0
PROGRESS_DEADLINE_S = 0.5
LONGEST_WAIT_S = 60.0
LONGEST_VISIBILITY_S = 86_400.0

T = TypeVar("T")


class ActorAccess:
    """A memory, reached through its actors; see ``memory.tools.MemoryAccess``.

    Args:
        system: The handles.
        settings: What is excluded, and how large a file may be.
        workspace: The folder that is indexed.
    """

    def __init__(self, system: MemorySystem, settings: Settings, workspace: Path) -> None:
        self._system = system
        self._settings = settings
        self._workspace = workspace
        self._clock = SystemClock()

    async def search(self, query: str, limit: int) -> SearchPayload:
        """Returns the hits of the best files, and whether the index is complete."""
        result = await self._call(lambda: self._system.provider.search.remote(query, limit))
        fresh = await asyncio.to_thread(fresh_paths, self._workspace, result.hits)
        answer = search_payload(query, result, source="daemon", age_s=0.0, fresh_paths=fresh)
        progress = await self._progress()
        if progress is not None:
            answer["ready"], answer["pending"] = progress
        return answer

    async def get(self, path: str, start_line: int, num_lines: int) -> ExcerptPayload:
        """Returns some lines of a file."""
        return await asyncio.to_thread(
            read_excerpt,
            self._workspace,
            self._settings.memory,
            path,
            start_line=start_line,
            num_lines=num_lines,
        )

    async def save(self, content: str, source_ids: tuple[str, ...] = ()) -> SavePayload:
        """Queues a fact; ``source_ids`` name where it came from."""
        receipt = await self._call(lambda: self._system.emitter.emit.remote(content, source_ids))
        answer: SavePayload = {"event_id": receipt.event_id, "state": receipt.state}
        problem = off_reason(self._settings)
        # Without a handler the host files its facts, and nobody needs to be told.
        if problem is not None and self._settings.memory.save_handler:
            answer["problem"] = problem
        return answer

    async def _progress(self) -> tuple[bool, int] | None:
        """Returns (ready, files that wait); None while the Chunker restarts."""
        try:
            status = await call(
                self._system.chunker.status.remote,
                clock=self._clock,
                deadline_s=PROGRESS_DEADLINE_S,
            )
        except TimeoutError:
            return None
        return status.ready, status.num_pending

    async def _call(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await call(attempt, clock=self._clock, deadline_s=CALL_DEADLINE_S)


class ActorEvents:
    """The events of a memory, from the actor that keeps them; see ``memory.events.EventSource``."""

    def __init__(self, emitter: ActorProxy[EventEmitter], clock: Clock | None = None) -> None:
        self._emitter = emitter
        self._clock = clock or SystemClock()

    async def waiting(self) -> tuple[SkillEvent, ...]:
        """Returns every event that was not acknowledged, oldest first, and takes none."""
        return await self._call(lambda: self._emitter.pending.remote(0.0))

    async def take(self, visibility_s: float, wait_s: float) -> SkillEvent | None:
        """Returns an event; cancelling it leaves the event to the others."""
        visibility_s = min(max(visibility_s, 1.0), LONGEST_VISIBILITY_S)
        wait_s = min(max(wait_s, 0.0), LONGEST_WAIT_S)
        await self._call(lambda: self._emitter.wait.remote(wait_s), wait_s)
        owner = uuid4().hex
        try:
            return await self._call(lambda: self._emitter.take.remote(visibility_s, owner))
        except asyncio.CancelledError:
            # Cancelling does not reach the actor, which would keep it for somebody who is gone.
            self._emitter.release_all.remote(owner)
            raise

    async def acknowledge(self, event_id: str) -> bool:
        """Ends the redelivery of an event."""
        return await self._call(lambda: self._emitter.acknowledge.remote(event_id))

    async def _call(self, attempt: Callable[[], Awaitable[T]], wait_s: float = 0.0) -> T:
        try:
            return await call(attempt, clock=self._clock, deadline_s=wait_s + CALL_DEADLINE_S)
        except TimeoutError:
            raise DaemonError("the EventEmitter does not answer, try again") from None
