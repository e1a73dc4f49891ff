"""How does a host reach a memory whose daemon may be away for a while?

The daemon is asked, and while it does not answer, the index that was saved last. A fact waits for
the daemon.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory.daemon_calls import ask_daemon
from memory.disk_answers import ask_disk
from memory.errors import DaemonError, DaemonNotRunning
from memory.local_access import LocalAccess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory.clock import Clock
    from memory.config import Settings
    from memory.locations import Locations
    from memory.payloads import ContextPayload, ExcerptPayload, SavePayload, SearchPayload

SEARCH_DAEMON_S = 8.0
SEARCH_DISK_S = 10.0
"""Both together are less than the deadline of a tool."""
DAEMON_SHARE = 0.6
"""Of the time for a section, what the daemon may take."""
SAVE_PATIENCE_S = 15.0
_SAVE_RETRY_S = 0.5
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


class HostedAccess:
    """A memory by its data folder; see ``memory.tools.MemoryAccess``.

    Args:
        configuration: For answers from disk.
        locations: Where everything is.
        clock: For the pauses.
    """

    def __init__(self, configuration: Configuration, locations: Locations, clock: Clock) -> None:
        self._configuration = configuration
        self._locations = locations
        self._clock = clock
        self._files = LocalAccess(
            locations.data,
            configuration.settings,
            configured=locations.workspace,
            named=locations.workspace,
        )
        self._disk_places = asyncio.Semaphore(_MOST_DISK_ANSWERS)

    async def search(self, query: str, limit: int) -> SearchPayload:
        """Returns the hits of the best files."""
        try:
            answer: SearchPayload = await ask_daemon(
                self._locations.data, "search", SEARCH_DAEMON_S, query=query, limit=limit
            )
        except DaemonError:
            answer = await self._disk("search", SEARCH_DISK_S, query=query, limit=limit)
        return answer

    async def context(self, prompt: str, deadline_s: float) -> ContextPayload:
        """Returns the ``# Memories`` section of a prompt.

        Raises:
            SnapshotMissing: nothing is indexed yet.
            DaemonError: neither the daemon nor the disk has answered in time.
        """
        share_s = DAEMON_SHARE * deadline_s
        try:
            answer: ContextPayload = await ask_daemon(
                self._locations.data, "context", share_s, prompt=prompt
            )
        except DaemonError:
            answer = await self._disk("context", deadline_s, prompt=prompt)
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
                    raise
            await self._clock.sleep(_SAVE_RETRY_S)

    async def _disk(self, command: str, timeout_s: float, **arguments: object) -> Any:
        request = {
            "command": command,
            "config": str(self._locations.config),
            "settings": self._configuration.mapping,
            "data": str(self._locations.data),
            "workspace": str(self._locations.workspace),
            **arguments,
        }
        async with self._disk_places:
            return await asyncio.to_thread(ask_disk, request, timeout_s)
