"""What does an agent daemon that is a Ray program hold of its memory?

The same as any other, see ``memory.plugin``: the actors live on the Ray that the program is
connected to, and are called by their handles. There is no child process and no supervision but
Ray's own, so a Ray that ends takes such a program with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

import ray

from actors import system as actor_system
from actors.host import ActorAccess, ActorEvents
from actors.loops import call
from actors.ray_config import load_ray_config
from memory.clock import SystemClock
from memory.collisions import check_place
from memory.data_lock import data_lock
from memory.errors import (
    ConfigError,
    DaemonError,
    DaemonNotRunning,
    EmbeddingError,
    MemoryPluginError,
    ProviderUnavailable,
)
from memory.hosted_access import SavedIndex, section
from memory.payloads import context_payload
from memory.plugin import CONTEXT_DEADLINE_S, MemoryPlugin, hosted
from memory.tools import memory_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from actors.system import MemorySystem
    from memory.clock import Clock
    from memory.hosted_access import Configuration
    from memory.locations import Locations
    from memory.outbox import SkillEvent
    from memory.payloads import ContextPayload, ExcerptPayload, SavePayload, SearchPayload
    from memory.tools import Tool

logger = logging.getLogger(__name__)

ACTOR_SHARE = 0.6
"""Of the time for a section, what the actors may take."""
CONFIRM_RETRY_S = 60.0
_POLL_S = 0.5
_STATUS_S = 5.0


def create(
    config: str | Path | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    data: str | Path | None = None,
    context_deadline_s: float = CONTEXT_DEADLINE_S,
) -> HandlePlugin:
    """Returns a memory whose actors will live on the Ray this program is connected to.

    Takes and refuses what ``memory.plugin.create`` does; what it has to say goes to the logger
    ``actors.plugin``.
    """
    check_place()
    configuration, locations = hosted(config, workspace, data)
    return HandlePlugin(configuration, locations, context_deadline_s=context_deadline_s)


class HandlePlugin(MemoryPlugin):
    """A memory by the handles of its actors; see ``memory.plugin.MemoryPlugin``."""

    def __init__(
        self,
        configuration: Configuration,
        locations: Locations,
        *,
        context_deadline_s: float = CONTEXT_DEADLINE_S,
        start_actors: Callable[[], MemorySystem] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._configuration = configuration
        self._locations = locations
        self._context_deadline_s = context_deadline_s
        self._start_actors = start_actors or self._started
        self._clock = clock or SystemClock()
        self._memory = _Handles(configuration, locations)
        self._tools = memory_tools(
            self._memory,
            default_limit=configuration.settings.memory.max_tool_memory_results,
        )
        self._task: asyncio.Task[None] | None = None
        self._is_ready = False

    async def start(self) -> None:
        """Begins to create the actors; returns at once. A second call does nothing."""
        if self._configuration.problem:
            logger.warning("%s", self._configuration.problem)
        elif self._task is None:
            self._task = asyncio.create_task(self._live())

    def is_ready(self) -> bool:
        """Tells whether everything was indexed once; asks nobody."""
        return self._is_ready

    async def context_provider(self, prompt: str) -> str:
        """Returns the ``# Memories`` section of a prompt; never raises, see ``section``."""
        if self._configuration.problem:
            return ""
        return await section(prompt, self._memory.context, self._context_deadline_s)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """``memory_search``, ``memory_get`` and ``memory_save``; none if the memory is disabled."""
        return () if self._configuration.problem else self._tools

    @property
    def events(self) -> _Handles:
        """The facts that were saved, for ``memory.events.subscribe``."""
        return self._memory

    async def stop(self) -> None:
        """Saves the index and ends the actors."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))  # a caller that gives up does not end the end
        self._task, self._is_ready = None, False

    def _started(self) -> MemorySystem:
        if not ray.is_initialized():
            raise DaemonError("this program is not connected to a Ray; call ray.init() first")
        config = load_ray_config(self._locations.config.parent)
        return actor_system.start(self._configuration.settings, self._locations, config)

    async def _live(self) -> None:
        """Has the actors from the lock of the data folder to their end."""
        try:
            with data_lock(self._locations.data):
                system = await asyncio.to_thread(self._start_actors)
                self._memory.system = system
                try:
                    await asyncio.gather(self._confirm(system), self._follow(system))
                finally:
                    self._memory.system = None
                    await self._end(system)
        except (MemoryPluginError, OSError) as error:
            logger.warning("memory: disabled \u2014 %s", error)

    async def _end(self, system: MemorySystem) -> None:
        try:
            await system.stop()
        except MemoryPluginError as error:
            logger.warning("memory: %s", error)
        finally:
            await asyncio.to_thread(system.end)

    async def _confirm(self, system: MemorySystem) -> None:
        """Asks the model until it answers, and has failed facts tried again."""
        with contextlib.suppress(TimeoutError, MemoryPluginError):
            retry = system.emitter.retry_failed.remote
            await call(retry, clock=self._clock, deadline_s=_STATUS_S)
        while True:
            try:
                if found := await system.confirm_model():
                    logger.info("memory: %s", found)
            except (ProviderUnavailable, TimeoutError) as error:
                logger.warning("memory: the model does not answer yet: %s", error)
            except (ConfigError, EmbeddingError) as error:
                logger.warning("memory: %s", error)
                return
            else:
                return
            await self._clock.sleep(CONFIRM_RETRY_S)

    async def _follow(self, system: MemorySystem) -> None:
        """Keeps what ``is_ready`` tells."""
        while True:
            try:
                status = await call(
                    system.chunker.status.remote, clock=self._clock, deadline_s=_STATUS_S
                )
                self._is_ready = status.ready
            except TimeoutError:
                self._is_ready = False
            await self._clock.sleep(_POLL_S)


class _Handles:
    """The tools and the events of a memory whose actors come and go.

    See ``memory.tools.MemoryAccess`` and ``memory.events.EventSource``.
    """

    def __init__(self, configuration: Configuration, locations: Locations) -> None:
        self.system: MemorySystem | None = None
        self._settings = configuration.settings
        self._workspace = locations.workspace
        self._saved = SavedIndex(configuration, locations)

    async def search(self, query: str, limit: int) -> SearchPayload:
        """Returns the hits of the best files; from disk while there are no actors."""
        if self.system is None:
            return await self._saved.search(query, limit)
        return await self._access().search(query, limit)

    async def context(self, prompt: str, deadline_s: float) -> ContextPayload:
        """Returns the section of a prompt; from disk if the actors do not answer."""
        if (system := self.system) is not None:
            with contextlib.suppress(TimeoutError, MemoryPluginError):
                return context_payload(
                    await call(
                        lambda: system.provider.section.remote(prompt),
                        clock=SystemClock(),
                        deadline_s=ACTOR_SHARE * deadline_s,
                    )
                )
        return await self._saved.context(prompt, deadline_s)

    async def get(self, path: str, start_line: int, num_lines: int) -> ExcerptPayload:
        """Returns some lines of a file."""
        return await self._access().get(path, start_line, num_lines)

    async def save(self, content: str) -> SavePayload:
        """Queues a fact."""
        return await self._access().save(content)

    async def take(self, visibility_s: float, wait_s: float) -> SkillEvent | None:
        """Returns an event; cancelling it leaves the event to the others."""
        return await self._events().take(visibility_s, wait_s)

    async def acknowledge(self, event_id: str) -> bool:
        """Ends the redelivery of an event."""
        return await self._events().acknowledge(event_id)

    def _access(self) -> ActorAccess:
        return ActorAccess(self._running(), self._settings, self._workspace)

    def _events(self) -> ActorEvents:
        return ActorEvents(self._running().emitter)

    def _running(self) -> MemorySystem:
        if self.system is None:
            raise DaemonNotRunning("the actors of the memory are not there")
        return self.system
