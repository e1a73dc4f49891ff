"""How does a program of this machine reach a memory without holding handles?

It asks the daemon of the data folder. While none runs, searches and files are read from disk, and
only saving is refused, because a fact needs somebody who keeps it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from memory.clock import SystemClock
from memory.daemon_calls import ask_daemon
from memory.errors import DaemonNotRunning, SnapshotMissing

if TYPE_CHECKING:
    from memory.clock import Clock
    from memory.config import Settings
    from memory.payloads import ExcerptPayload, SavePayload, SearchPayload

_ANSWER_S = 30.0


class LocalAccess:
    """A memory by its data folder; see ``memory.tools.MemoryAccess``.

    Args:
        data: Folder of the index and of the daemon's address.
        settings: For answers from disk.
        configured: The workspace, for answers from disk while nothing is indexed.
        named: The workspace if somebody named one; else answers are about the folder that was
            indexed.
        clock: Time, for the age of an answer from disk.
    """

    def __init__(
        self,
        data: Path,
        settings: Settings,
        *,
        configured: Path,
        named: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._data = data
        self._settings = settings
        self._configured = configured
        self._named = named
        self._clock = clock or SystemClock()

    async def search(self, query: str, limit: int) -> SearchPayload:
        """Returns the hits of the best files; from disk, whatever was saved last."""
        try:
            answer: SearchPayload = await ask_daemon(
                self._data, "search", _ANSWER_S, query=query, limit=limit
            )
        except DaemonNotRunning:
            return await asyncio.to_thread(self._search_disk, query, limit)
        return answer

    async def get(self, path: str, start_line: int, num_lines: int) -> ExcerptPayload:
        """Returns some lines of a file."""
        try:
            answer: ExcerptPayload = await ask_daemon(
                self._data, "get", _ANSWER_S, path=path, start_line=start_line, num_lines=num_lines
            )
        except DaemonNotRunning:
            return await asyncio.to_thread(self._read_file, path, start_line, num_lines)
        return answer

    async def save(self, content: str) -> SavePayload:
        """Queues a fact.

        Raises:
            DaemonNotRunning: there is nobody who could keep it.
        """
        answer: SavePayload = await ask_daemon(self._data, "save", _ANSWER_S, content=content)
        return answer

    def _search_disk(self, query: str, limit: int) -> SearchPayload:
        from memory.disk import search  # noqa: PLC0415 - not needed beside a daemon
        from memory.messages import Query  # noqa: PLC0415 - as above

        return search(
            self._data,
            self._settings,
            Query(query, limit),
            workspace=self._named,
            now_s=self._clock.time(),
        )

    def _read_file(self, path: str, start_line: int, num_lines: int) -> ExcerptPayload:
        from memory.excerpts import read_excerpt  # noqa: PLC0415 - not needed beside a daemon

        return read_excerpt(
            self._named or self._indexed_folder(),
            self._settings.memory,
            path,
            start_line=start_line,
            num_lines=num_lines,
        )

    def _indexed_folder(self) -> Path:
        """Returns the folder that citations are about."""
        from memory.reader import SnapshotReader  # noqa: PLC0415 - not needed beside a daemon

        try:
            with SnapshotReader(self._data) as reader:
                return Path(reader.header.info.workspace)
        except SnapshotMissing:
            return self._configured
