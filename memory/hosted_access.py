"""How does a host reach a memory whose daemon may be away for a while?

The daemon is asked, and while it does not answer, the index that was saved last. A fact waits for
the daemon.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory.context_section import memories_section
from memory.daemon_calls import ask_daemon
from memory.disk_answers import ask_disk
from memory.errors import DaemonError, DaemonNotRunning, MemoryPluginError, SnapshotMissing
from memory.local_access import LocalAccess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from memory.clock import Clock
    from memory.config import Settings
    from memory.locations import Locations
    from memory.payloads import ContextPayload, ExcerptPayload, SavePayload, SearchPayload

logger = logging.getLogger(__name__)

STUB = memories_section((), floor=1.0, limit=0)
"""The section of a memory that has no answer."""
SEARCH_DAEMON_S = 8.0
SEARCH_DISK_S = 10.0
"""Both together are less than the deadline of a tool."""
DAEMON_SHARE = 0.6
"""Of the time for a section, what the daemon may take."""
SAVE_PATIENCE_S = 15.0
_SAVE_RETRY_S = 0.5
_STARTS = "the memory does not run; its host starts it again by itself"
_MOST_DISK_ANSWERS = 2
"""At the same time; each is a process that loads the index and the model."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a host, as it is handed to other processes."""

    settings: Settings
    mapping: Mapping[str, Any] | None
    """What the settings were made from; None if that is the file."""
    problem: str = ""
    """Why the memory is disabled, one line; empty if it can run."""


class SavedIndex:
    """What was saved last, read by a process of its own for each answer.

    Args:
        configuration: How to search.
        locations: Where it is.
    """

    def __init__(self, configuration: Configuration, locations: Locations) -> None:
        self._request = {
            "config": str(locations.config),
            "settings": configuration.mapping,
            "data": str(locations.data),
            "workspace": str(locations.workspace),
        }
        self._places = asyncio.Semaphore(_MOST_DISK_ANSWERS)

    async def search(self, query: str, limit: int) -> SearchPayload:
        """Returns the hits of the best files.

        Raises:
            SnapshotMissing: nothing was saved yet.
            DaemonError: there is no answer.
        """
        answer: SearchPayload = await self._ask(
            SEARCH_DISK_S, command="search", query=query, limit=limit
        )
        return answer

    async def context(self, prompt: str, deadline_s: float) -> ContextPayload:
        """Returns the ``# Memories`` section of a prompt; raises as ``search`` does."""
        answer: ContextPayload = await self._ask(deadline_s, command="context", prompt=prompt)
        return answer

    async def _ask(self, timeout_s: float, **arguments: object) -> Any:
        async with self._places:
            return await asyncio.to_thread(ask_disk, self._request | arguments, timeout_s)


class HostedAccess:
    """A memory by its data folder; see ``memory.tools.MemoryAccess``.

    Args:
        configuration: For answers from disk.
        locations: Where everything is.
        clock: For the pauses.
    """

    def __init__(self, configuration: Configuration, locations: Locations, clock: Clock) -> None:
        self._data = locations.data
        self._clock = clock
        self._files = LocalAccess(
            locations.data,
            configuration.settings,
            configured=locations.workspace,
            named=locations.workspace,
        )
        self._saved = SavedIndex(configuration, locations)

    async def search(self, query: str, limit: int) -> SearchPayload:
        """Returns the hits of the best files."""
        try:
            answer: SearchPayload = await ask_daemon(
                self._data, "search", SEARCH_DAEMON_S, query=query, limit=limit
            )
        except DaemonError:
            answer = await self._saved.search(query, limit)
        return answer

    async def context(self, prompt: str, deadline_s: float) -> ContextPayload:
        """Returns the ``# Memories`` section of a prompt.

        Raises:
            SnapshotMissing: nothing is indexed yet.
            DaemonError: neither the daemon nor the disk has answered in time.
        """
        share_s = DAEMON_SHARE * deadline_s
        try:
            answer: ContextPayload = await ask_daemon(self._data, "context", share_s, prompt=prompt)
        except DaemonError:
            answer = await self._saved.context(prompt, deadline_s)
        return answer

    async def get(self, path: str, start_line: int, num_lines: int) -> ExcerptPayload:
        """Returns some lines of a file."""
        return await self._files.get(path, start_line, num_lines)

    async def save(self, content: str) -> SavePayload:
        """Queues a fact, waiting for a daemon that starts.

        Raises:
            DaemonNotRunning: none came.
        """
        until_s = self._clock.monotonic() + SAVE_PATIENCE_S
        while True:
            try:
                return await self._files.save(content)
            except DaemonNotRunning:
                if self._clock.monotonic() >= until_s:
                    raise DaemonNotRunning(_STARTS) from None
            await self._clock.sleep(_SAVE_RETRY_S)


async def section(
    prompt: str, ask: Callable[[str, float], Awaitable[ContextPayload]], deadline_s: float
) -> str:
    """Returns what a prompt is told of the memory, whatever happens to it meanwhile.

    Args:
        prompt: Any text.
        ask: Gives the answer to a prompt within so many seconds.
        deadline_s: Longest time for everything, seconds.

    Returns:
        A stub if there is no answer in time; empty for a blank prompt and while nothing is indexed.
    """
    if not prompt.strip():
        return ""
    try:
        async with asyncio.timeout(deadline_s):
            return (await ask(prompt, deadline_s))["section"]
    except SnapshotMissing:
        return ""
    except (MemoryPluginError, TimeoutError) as error:
        logger.warning("no section for a prompt: %s", str(error) or "too late")
    except Exception:
        logger.exception("no section for a prompt")
    return STUB
