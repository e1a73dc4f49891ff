"""Which ``skills:memory`` events still wait for a handler?

An append-only file of JSON lines, each synced before the call returns: an event is delivered at
least once and survives a kill (SPEC A5). The snippet is data; nothing here looks inside it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from memory.atomic_file import OsDisk

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

SKILL = "skills:memory"


@dataclass(frozen=True, slots=True)
class SkillEvent:
    """A fact handed to whoever handles ``skills:memory``."""

    event_id: str
    """First 16 hex digits of the SHA-256 of the prompt: the same text is the same event."""
    prompt: str
    """The snippet to remember."""
    source_ids: tuple[str, ...]
    """Where it came from, as the caller named it."""
    related: tuple[str, ...]
    """Paths of the best related files, best first."""
    created_at: float
    """Unix time, seconds."""
    skill: str = SKILL


class Outbox:
    """Events and their acknowledgements; one writer per file.

    Args:
        path: File to append to; created with its folder when the first event arrives.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: dict[str, SkillEvent] = {}
        self._acknowledged: set[str] = set()
        self._ends_torn = False
        """Whether the file may end in half a line, which the next one must not be glued to."""
        self._replay()

    @property
    def pending(self) -> tuple[SkillEvent, ...]:
        """Events nobody has acknowledged, oldest first."""
        return tuple(self._pending.values())

    def state(self, event_id: str) -> str:
        """Returns ``queued``, ``saved`` or ``unknown``."""
        if event_id in self._pending:
            return "queued"
        return "saved" if event_id in self._acknowledged else "unknown"

    def add(self, event: SkillEvent) -> bool:
        """Stores an event durably; returns False if it was there already.

        Raises:
            OSError: the disk refused; the event is not stored.
        """
        if self.state(event.event_id) != "unknown":
            return False
        self._append({"event": asdict(event)})
        self._pending[event.event_id] = event
        return True

    def acknowledge(self, event_id: str) -> bool:
        """Ends the redelivery of an event; returns False if it was not pending.

        Raises:
            OSError: the disk refused; the event stays pending.
        """
        if event_id not in self._pending:
            return False
        self._append({"acknowledged": event_id})
        del self._pending[event_id]
        self._acknowledged.add(event_id)
        return True

    def _append(self, record: dict[str, object]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        line = json.dumps(record).encode() + b"\n"
        if self._ends_torn:
            line = b"\n" + line
        disk = OsDisk()
        try:
            self._ends_torn = True  # until the whole line is known to be there
            disk.write(descriptor, line)
            disk.fsync(descriptor)
            self._ends_torn = False
        finally:
            os.close(descriptor)

    def _replay(self) -> None:
        if not self._path.exists():
            return
        data = self._path.read_bytes()
        self._ends_torn = not data.endswith(b"\n") and bool(data)
        for line in filter(None, data.split(b"\n")):
            try:
                record = json.loads(line)
                if "event" in record:
                    fields = record["event"] | {
                        name: tuple(record["event"][name]) for name in ("source_ids", "related")
                    }
                    event = SkillEvent(**fields)
                    self._pending[event.event_id] = event
                else:
                    self._pending.pop(record["acknowledged"], None)
                    self._acknowledged.add(record["acknowledged"])
            except (ValueError, KeyError, TypeError):
                # A kill in the middle of an append leaves half a line; its caller got no answer.
                logger.warning("skipped an unreadable line of %s", self._path.name)


def event_id(prompt: str) -> str:
    """Returns the id of the event that carries this text."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
