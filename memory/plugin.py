"""What does an agent daemon hold of its memory?

::

    plugin = create("config.yml")
    await plugin.start()                                  # returns at once
    section = await plugin.context_provider("a prompt")   # "# Memories", or ""
    tools = plugin.tools
    async for event in subscribe(plugin.events): ...
    await plugin.stop()

``create`` here is for programs that are no Ray programs: Ray and the index live in a child process,
which is supervised. A program on Ray takes ``actors.plugin.create``. The entry point ``memory`` of
the group ``agent_daemon.plugins`` is this one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memory.child_process import daemon_start, start_child
from memory.clock import SystemClock
from memory.collisions import check_place
from memory.config import Settings, from_mapping, load
from memory.daemon_calls import ask_daemon
from memory.daemon_client import is_running
from memory.data_lock import is_held
from memory.embedding_config import configured_model, disabled_reason
from memory.errors import ConfigError, DaemonError
from memory.events import DaemonEvents
from memory.hosted_access import Configuration, HostedAccess, section
from memory.locations import Locations, find_config, find_data, find_workspace
from memory.supervision import Supervisor
from memory.tools import memory_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memory.child_process import ChildProcess, Start
    from memory.clock import Clock
    from memory.events import EventSource
    from memory.supervision import Occupant
    from memory.tools import Tool

logger = logging.getLogger(__name__)

CONTEXT_DEADLINE_S = 5.0
STOP_DEADLINE_S = 60.0
_POLL_S = 0.5
_STATUS_S = 5.0


class MemoryPlugin(Protocol):
    """A memory as a daemon holds it, wherever its actors run. Nothing here ever raises."""

    async def start(self) -> None:
        """Begins to index; returns at once. May be called again."""
        ...

    def is_ready(self) -> bool:
        """Tells whether everything in the workspace was indexed once."""
        ...

    async def context_provider(self, prompt: str) -> str:
        """Returns the section for a system prompt, a stub, or nothing."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What an agent may call; empty if the memory is disabled."""
        ...

    @property
    def events(self) -> EventSource:
        """Where saved facts come from, for ``memory.events.subscribe``."""
        ...

    async def stop(self) -> None:
        """Ends everything; the index is saved."""
        ...


def create(
    config: str | Path | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    data: str | Path | None = None,
    log: Callable[[str], None] | None = None,
    context_deadline_s: float = CONTEXT_DEADLINE_S,
) -> DaemonPlugin:
    """Returns a memory that runs in a child process; reads the configuration and starts nothing.

    A configuration that cannot be used gives a memory that is disabled: it says so in one line when
    it is started, has no tools and adds nothing to a prompt.

    Args:
        config: The file, by default ``config.yml`` in the current folder; or what such a file
            holds.
        workspace: Folder of markdown files, by default that of the configuration.
        data: Folder of the index, by default ``data/memory`` beside the file.
        log: Takes each line of the memory; by default the logger ``memory.plugin``.
        context_deadline_s: Longest time of ``context_provider``, seconds.

    Raises:
        PackagingError: another distribution shadows our packages.
    """
    check_place()
    configuration, locations = hosted(config, workspace, data)
    is_named = bool(workspace or configuration.settings.core.workspace)
    return DaemonPlugin(
        configuration,
        locations,
        daemon_start(locations, configuration.mapping, is_workspace_named=is_named),
        log=log,
        context_deadline_s=context_deadline_s,
    )


def hosted(
    config: str | Path | Mapping[str, Any] | None,
    workspace: str | Path | None,
    data: str | Path | None,
) -> tuple[Configuration, Locations]:
    """Returns the configuration of a host and its places; the arguments are those of ``create``."""
    mapping = None if config is None or isinstance(config, str | Path) else config
    path = find_config(str(config) if config and mapping is None else None, home=None)
    configuration = read_configuration(path, mapping)
    configured = configuration.settings.core.workspace
    named = str(workspace) if workspace else None
    return configuration, Locations(
        path,
        find_workspace(named, config=path, configured=configured),
        find_data(str(data) if data else None, config=path),
    )


def read_configuration(path: Path, mapping: Mapping[str, Any] | None) -> Configuration:
    """Returns the configuration of a host, or why the memory is disabled by it.

    Args:
        path: The file.
        mapping: What it would hold; None reads it.
    """
    try:
        if mapping is None:
            settings = load(path)
        else:
            mapping = {name: mapping[name] for name in Settings.model_fields if name in mapping}
            json.dumps(mapping)  # that is how other processes get it
            settings = from_mapping(mapping, path)
        if (reason := disabled_reason(settings)) is None:
            configured_model(settings)
    except (ConfigError, TypeError, ValueError) as error:
        line = " ".join(str(error).splitlines())
        return Configuration(Settings(), mapping, f"memory: disabled \u2014 {line}")
    return Configuration(settings, mapping, reason or "")


class DaemonPlugin(MemoryPlugin):
    """A memory in a child process; see ``MemoryPlugin``. ``create`` makes one."""

    def __init__(
        self,
        configuration: Configuration,
        locations: Locations,
        start: Start,
        *,
        log: Callable[[str], None] | None = None,
        context_deadline_s: float = CONTEXT_DEADLINE_S,
        clock: Clock | None = None,
    ) -> None:
        self._problem = configuration.problem
        self._data = locations.data
        self._start = start
        self._say = _safe(log) if log else logger.info
        self._context_deadline_s = context_deadline_s
        self._clock = clock or SystemClock()
        self._access = HostedAccess(configuration, locations, self._clock)
        self._tools = memory_tools(
            self._access, default_limit=configuration.settings.memory.max_tool_memory_results
        )
        self._events = DaemonEvents(locations.data)
        self._supervisor: Supervisor | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._stopping: asyncio.Task[None] | None = None
        self._is_ready = False

    async def start(self) -> None:
        """Begins to run the child; returns at once. A second call does nothing."""
        if self._problem:
            self._say(self._problem)
        elif not self._tasks:
            self._supervisor = Supervisor(self._launch, self._occupant, self._clock, self._say)
            self._tasks = (
                asyncio.create_task(self._supervise(self._supervisor)),
                asyncio.create_task(self._follow()),
            )

    def is_ready(self) -> bool:
        """Tells whether the daemon runs and has indexed everything once; asks nobody."""
        return self._is_ready and self._supervisor is not None and not self._supervisor.is_down

    async def context_provider(self, prompt: str) -> str:
        """Returns the ``# Memories`` section of a prompt, from disk while the daemon is away.

        Returns:
            A stub if there is no answer before the deadline; empty for a blank prompt, as long as
            nothing is indexed, and of a memory that is disabled.
        """
        if self._problem:
            return ""
        return await section(prompt, self._access.context, self._context_deadline_s)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """``memory_search``, ``memory_get`` and ``memory_save``; none if the memory is disabled."""
        return () if self._problem else self._tools

    @property
    def events(self) -> DaemonEvents:
        """The facts that were saved, for ``memory.events.subscribe``."""
        return self._events

    async def stop(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Has the child save the index and end; nothing of it is left.

        A caller that gives up waiting does not end the end: it goes on in the background.

        Args:
            deadline_s: Seconds until the child is ended by force. What it had answered is saved
                nevertheless.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end(deadline_s))
        await asyncio.shield(self._stopping)

    async def _end(self, deadline_s: float) -> None:
        if self._supervisor is not None:
            await self._supervisor.stop(deadline_s)
        if self._tasks:
            supervising, following = self._tasks
            await asyncio.wait((supervising,))
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        self._supervisor, self._tasks, self._is_ready = None, (), False
        self._stopping = None

    async def _supervise(self, supervisor: Supervisor) -> None:
        try:
            await supervisor.run()
        except Exception:
            logger.exception("the memory is no longer supervised")
            self._say("memory: it is no longer supervised, because of an internal error")

    async def _launch(self) -> ChildProcess:
        return await start_child(self._start, self._clock, self._say)

    async def _occupant(self) -> Occupant:
        if await asyncio.to_thread(is_running, self._data):
            return "serving"
        return "busy" if await asyncio.to_thread(is_held, self._data) else "nobody"

    async def _follow(self) -> None:
        """Keeps what ``is_ready`` tells."""
        while True:
            try:
                status = await ask_daemon(self._data, "status", _STATUS_S)
                self._is_ready = bool(status["ready"])
            except (DaemonError, KeyError, TypeError):
                self._is_ready = False
            await self._clock.sleep(_POLL_S)


def _safe(log: Callable[[str], None]) -> Callable[[str], None]:
    """Keeps a logger of the host that fails from ending the supervision."""

    def say(line: str) -> None:
        try:
            log(line)
        except Exception:
            logger.exception("the host's log does not take a line")

    return say
