"""The SaveHandler actor: runs the handler of each saved fact."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, final

import ray

from actors.loops import call, run_forever, spawn
from actors.statuses import HandlerStatus
from memory.agent_run.files import ToolError
from memory.agent_run.outcome import Outcome, failed
from memory.agent_run.saving import Surroundings, connect, handle
from memory.clock import SystemClock
from memory.errors import ChatError, ChatRejected, HandlerUnusable, WorkspaceError
from memory.freshness import fresh_paths
from memory.payloads import search_payload
from memory.rendering import search_markdown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.context_provider import ContextProvider
    from actors.event_emitter import EventEmitter
    from memory.agent_run.chat import ChatClient
    from memory.agent_run.endpoints import Endpoint
    from memory.clock import Clock
    from memory.config import Settings
    from memory.outbox import SkillEvent

logger = logging.getLogger(__name__)

POLL_S = 20.0
"""Longest wait for an event; those that failed are looked for as often."""
CALL_DEADLINE_S = 30.0
SEARCH_DEADLINE_S = 20.0
OWNER = "SaveHandler"
VISIBILITY_S = 720.0
"""As long as a run may take, nobody else gets its event."""
RUN_DEADLINE_S = 660.0
"""A run ends itself after 600 s, but waits for every byte of an answer that trickles."""
UNUSABLE_PAUSE_S = 30.0
"""Until a handler or a workspace that cannot be used is looked at again."""
REJECTED_PAUSE_S = 600.0
"""Until a provider that refused the key or the model is asked again."""


@final
class SaveHandler:
    """Handles ``skills:memory`` events, oldest first, one at a time (SPEC A6).

    Owns: nothing; what was done and what failed is in the emitter's outbox.
    Survives a crash: an event is acknowledged after its run, so it is handled again.
    Ordering: one run at a time.
    Called by: the composition root. Calls: EventEmitter, ContextProvider.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Path,
        emitter: ActorProxy[EventEmitter],
        provider: ActorProxy[ContextProvider],
        clock: Clock | None = None,
        connect: Callable[[Endpoint], ChatClient] = connect,
    ) -> None:
        self._workspace = workspace
        self._emitter = emitter
        self._provider = provider
        self._clock = clock or SystemClock()
        self._ending = threading.Event()
        """Set when the run under way must end."""
        self._loop = asyncio.get_running_loop()
        self._around = Surroundings(
            settings, workspace, self._search, self._clock, self._ending.wait, connect
        )
        self._problem = ""
        self._num_runs = 0
        self._is_known = False
        """Whether the emitter knows that whoever was here before works on nothing."""
        self._task = spawn("save handler", run_forever(self._step, clock=self._clock))

    def __repr__(self) -> str:
        return "SaveHandler"

    @ray.method
    async def stop(self) -> None:
        """Ends the work; the event of a run under way stays in the outbox."""
        self._ending.set()
        self._task.cancel()

    @ray.method
    async def status(self) -> HandlerStatus:
        """Returns what is in the way of the events, if anything is."""
        return HandlerStatus(os.getpid(), self._problem, self._num_runs)

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _step(self) -> None:
        if not self._is_known:
            await call(
                lambda: self._emitter.release_all.remote(OWNER),
                clock=self._clock,
                deadline_s=CALL_DEADLINE_S,
            )
            self._is_known = True
        is_waiting = await call(
            lambda: self._emitter.wait.remote(POLL_S),
            clock=self._clock,
            deadline_s=POLL_S + CALL_DEADLINE_S,
        )
        if not is_waiting:
            self._problem = ""
            return
        event = await call(
            lambda: self._emitter.take.remote(VISIBILITY_S, OWNER),
            clock=self._clock,
            deadline_s=CALL_DEADLINE_S,
        )
        if event is not None:
            await self._handle(event)

    async def _handle(self, event: SkillEvent) -> None:
        """Runs the handler once; the event's end or its failure is in the outbox afterwards."""
        self._num_runs += 1
        try:
            outcome = await self._run(event)
        except (HandlerUnusable, WorkspaceError) as error:
            await self._pause(event, str(error), UNUSABLE_PAUSE_S)
            return
        except ChatRejected as error:
            await self._pause(event, str(error), REJECTED_PAUSE_S)
            return
        except ChatError as error:
            outcome = Outcome(*failed(str(error)))
        except Exception:
            logger.exception("the run of event %s broke off", event.event_id)
            outcome = Outcome(*failed("internal error, see the log of the SaveHandler"))
        self._problem = ""
        await self._report(event.event_id, outcome)

    async def _run(self, event: SkillEvent) -> Outcome:
        """Runs the handler in a thread, which is left alone if it outlasts its own limit."""
        self._ending = threading.Event()
        around = replace(self._around, wait=self._ending.wait)
        try:
            async with asyncio.timeout(RUN_DEADLINE_S):
                return await asyncio.to_thread(handle, event, around)
        except TimeoutError:
            self._ending.set()
            return Outcome(*failed("time limit, the model's answer does not end"))

    async def _report(self, identity: str, outcome: Outcome) -> None:
        logger.info("event %s: %s", identity, outcome.line)
        await call(
            lambda: self._told(identity, outcome), clock=self._clock, deadline_s=CALL_DEADLINE_S
        )

    def _told(self, identity: str, outcome: Outcome) -> Awaitable[object]:
        if outcome.is_done:
            return self._emitter.conclude.remote(identity, outcome.line)
        return self._emitter.fail.remote(identity, outcome.line)

    async def _pause(self, event: SkillEvent, problem: str, seconds: float) -> None:
        """Waits before the next look; the event is not to blame, so this is no failure of it."""
        await call(
            lambda: self._emitter.release.remote(event.event_id),
            clock=self._clock,
            deadline_s=CALL_DEADLINE_S,
        )
        if problem != self._problem:
            logger.warning("facts wait: %s", problem)
        self._problem = problem
        await self._clock.sleep(seconds)

    def _search(self, query: str, limit: int) -> str:
        """Answers ``memory_search``, called by the thread of the run."""
        found = asyncio.run_coroutine_threadsafe(self._found(query, limit), self._loop)
        try:
            return found.result(SEARCH_DEADLINE_S + CALL_DEADLINE_S)
        except Exception as error:  # noqa: BLE001 - whatever it was, the run goes on without
            logger.warning("a search of a run failed: %s", type(error).__name__)
            raise ToolError("the memory cannot be searched now") from None

    async def _found(self, query: str, limit: int) -> str:
        result = await call(
            lambda: self._provider.search.remote(query, limit),
            clock=self._clock,
            deadline_s=SEARCH_DEADLINE_S,
        )
        fresh = await asyncio.to_thread(fresh_paths, self._workspace, result.hits)
        answer = search_payload(query, result, source="daemon", age_s=0.0, fresh_paths=fresh)
        return search_markdown(answer)
