"""Which ``skills:memory`` events still wait for a handler?

A file of JSON lines that is appended to, each synced before the call returns: an event is delivered
at least once and survives a kill (SPEC A5). Opening it drops the text of what was handled once that
is most of the file. The snippet is data; nothing here looks inside it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memory.atomic_file import OsDisk, replace_atomically, sweep_temporaries

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memory.atomic_file import Disk

logger = logging.getLogger(__name__)

OUTBOX_NAME = "outbox.jsonl"
"""In the data folder."""
SKILL = "skills:memory"
MAX_COMPACT_BYTES = 64 * 1024
"""A smaller file is never worth a compaction."""


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
        disk: Where it lies; the machine's by default.
    """

    def __init__(self, path: Path, *, disk: Disk | None = None) -> None:
        self._path = path
        self._disk = disk or OsDisk()
        self._pending: dict[str, SkillEvent] = {}
        self._acknowledged: dict[str, None] = {}
        self._unreadable: list[bytes] = []
        """Half a line that a kill left, or a record of a later version."""
        self._ends_torn = False
        """Whether the file may end in half a line, which the next one must not be glued to."""
        self._is_name_synced = False
        sweep_temporaries(path.parent, path.name)
        self._compact(self._replay())

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
        self._acknowledged[event_id] = None
        return True

    def _append(self, record: Mapping[str, object]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        line = _line(record)
        if self._ends_torn:
            line = b"\n" + line
        try:
            self._ends_torn = True  # until the whole line is known to be there
            self._disk.write(descriptor, line)
            self._disk.fsync(descriptor)
            self._ends_torn = False
        finally:
            os.close(descriptor)
        if not self._is_name_synced:
            self._disk.fsync_folder(self._path.parent)
            self._is_name_synced = True

    def _replay(self) -> int:
        """Reads the file; returns its size in bytes."""
        if not self._path.exists():
            return 0
        data = self._path.read_bytes()
        self._ends_torn = not data.endswith(b"\n") and bool(data)
        for line in filter(None, data.split(b"\n")):
            try:
                _take(json.loads(line), self._pending, self._acknowledged)
            except (ValueError, KeyError, TypeError):
                # A kill in the middle of an append leaves half a line; its caller got no answer.
                logger.warning("skipped an unreadable line of %s", self._path.name)
                self._unreadable.append(line)
        return len(data)

    def _compact(self, size_bytes: int) -> None:
        """Rewrites the file without the events that were handled, if that halves it."""
        if size_bytes <= MAX_COMPACT_BYTES:
            return
        lines = [
            *(line + b"\n" for line in self._unreadable),
            *(_line({"acknowledged": identity}) for identity in self._acknowledged),
            *(_line({"event": asdict(event)}) for event in self._pending.values()),
        ]
        if 2 * sum(map(len, lines)) > size_bytes:
            return
        try:
            replace_atomically(self._path, lines, self._disk)
        except OSError as error:
            logger.warning("cannot compact %s: %s", self._path.name, error.strerror or error)
        else:
            self._ends_torn, self._is_name_synced = False, True


def read_pending(path: Path) -> tuple[SkillEvent, ...]:
    """Returns the events of a file that nobody acknowledged, oldest first, without touching it.

    Raises:
        OSError: the file is there but cannot be read.
    """
    pending: dict[str, SkillEvent] = {}
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    for line in filter(None, lines):
        with suppress(ValueError, KeyError, TypeError):  # half a line: somebody is writing it
            _take(json.loads(line), pending, {})
    return tuple(pending.values())


def event_from(fields: Mapping[str, Any]) -> SkillEvent:
    """Returns the event with these fields, as JSON holds them.

    Raises:
        KeyError, TypeError: a field is missing or not known.
    """
    lists = {name: tuple(fields[name]) for name in ("source_ids", "related")}
    return SkillEvent(**{**fields, **lists})


def _take(
    record: Mapping[str, Any], pending: dict[str, SkillEvent], acknowledged: dict[str, None]
) -> None:
    """Repeats what one line of the file says."""
    if "event" in record:
        event = event_from(record["event"])
        pending[event.event_id] = event
    else:
        pending.pop(record["acknowledged"], None)
        acknowledged[record["acknowledged"]] = None


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def event_id(prompt: str) -> str:
    """Returns the id of the event that carries this text."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
