"""Which ``skills:memory`` events still wait for a handler?

A file of JSON lines that is appended to, each synced before the call returns: an event is delivered
at least once and survives a kill (SPEC A5). Opening it drops the text of what was handled once that
is most of the file. The snippet is data; nothing here looks inside it.

An event whose handler failed waits before it is delivered again, longer each time; after
MAX_ATTEMPTS it is parked, never dropped, until somebody asks for it again.
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
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from memory.atomic_file import Disk

logger = logging.getLogger(__name__)

OUTBOX_NAME = "outbox.jsonl"
"""In the data folder."""
SKILL = "skills:memory"
MAX_ATTEMPTS = 5
FIRST_RETRY_S = 60.0
RETRY_FACTOR = 4.0
"""So the five attempts take 85 minutes."""
MAX_RESULTS = 50
"""Results that are kept; of older events only the id is."""
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
    """Paths of the best related files, best first; looked for when the event is taken."""
    created_at: float
    """Unix time, seconds."""
    skill: str = SKILL
    is_related_known: bool = False
    """Whether ``related`` could be found in time; nothing else makes an empty one mean none."""


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """An event whose handler has failed so far."""

    event_id: str
    attempts: int
    reason: str
    """One line."""
    retry_at: float
    """Unix time, seconds; not before then it is delivered again."""

    @property
    def is_parked(self) -> bool:
        """Tells whether it waits until somebody asks for it again."""
        return self.attempts >= MAX_ATTEMPTS


@dataclass(frozen=True, slots=True)
class SaveResult:
    """What became of an event."""

    event_id: str
    line: str
    """``extended wiki/people/alice.md``, for example."""
    at: float
    """Unix time, seconds."""


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
        self._acknowledged: dict[str, SaveResult | None] = {}
        self._failed: dict[str, FailedEvent] = {}
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

    @property
    def failed(self) -> tuple[FailedEvent, ...]:
        """Those of them whose handler has failed so far, oldest event first."""
        return tuple(self._failed[each] for each in self._pending if each in self._failed)

    @property
    def results(self) -> tuple[SaveResult, ...]:
        """What became of the events handled last, newest first; at most MAX_RESULTS."""
        told = [result for result in self._acknowledged.values() if result is not None]
        return tuple(reversed(told[-MAX_RESULTS:]))

    def due(self, now: float) -> tuple[SkillEvent, ...]:
        """Returns the pending events that are neither parked nor wait for their next attempt."""
        waiting = {
            failed.event_id
            for failed in self._failed.values()
            if failed.is_parked or failed.retry_at > now
        }
        return tuple(event for event in self._pending.values() if event.event_id not in waiting)

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

    def acknowledge(self, event_id: str, result: SaveResult | None = None) -> bool:
        """Ends the redelivery of an event; returns False if it was not pending.

        Args:
            event_id: The event.
            result: What became of it, if somebody wants to know.

        Raises:
            OSError: the disk refused; the event stays pending.
        """
        if event_id not in self._pending:
            return False
        self._append(_acknowledgement(event_id, result))
        del self._pending[event_id]
        self._failed.pop(event_id, None)
        self._acknowledged[event_id] = result
        return True

    def fail(self, event_id: str, reason: str, now: float) -> FailedEvent | None:
        """Puts an event off whose handler failed; returns None if it was not pending.

        Told again before it is due, it counts once.

        Raises:
            OSError: the disk refused; the event stays as it was.
        """
        if event_id not in self._pending:
            return None
        before = self._failed.get(event_id)
        if before is not None and now < before.retry_at:
            return before  # nobody could try it since: this is told again, its answer was lost
        attempts = (before.attempts if before else 0) + 1
        retry_at = now + FIRST_RETRY_S * RETRY_FACTOR ** (attempts - 1)
        failed = FailedEvent(event_id, attempts, reason, retry_at)
        self._append({"failed": asdict(failed)})
        self._failed[event_id] = failed
        return failed

    def retry(self, event_id: str) -> bool:
        """Lets an event that failed be delivered at once, as if it never had.

        Returns:
            False if it had not failed.

        Raises:
            OSError: the disk refused; the event stays as it was.
        """
        if event_id not in self._failed:
            return False
        self._append({"retried": event_id})
        del self._failed[event_id]
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
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError):
                # A kill in the middle of an append leaves half a line; its caller got no answer.
                logger.warning("skipped an unreadable line of %s", self._path.name)
                self._unreadable.append(line)
        return len(data)

    def _take(self, record: Mapping[str, Any]) -> None:
        if "event" in record:
            event = event_from(record["event"])
            self._pending[event.event_id] = event
        elif "failed" in record:
            failed = FailedEvent(**record["failed"])
            self._failed[failed.event_id] = failed
        elif "retried" in record:
            self._failed.pop(record["retried"], None)
        else:
            identity, told = record["acknowledged"], record.get("result")
            self._pending.pop(identity, None)
            self._failed.pop(identity, None)
            self._acknowledged[identity] = SaveResult(identity, **told) if told else None

    def _acknowledgements(self) -> Iterator[Mapping[str, object]]:
        """Yields a record for each handled event, with its result if that is kept."""
        kept = {result.event_id: result for result in self.results}
        for identity in self._acknowledged:
            yield _acknowledgement(identity, kept.get(identity))

    def _compact(self, size_bytes: int) -> None:
        """Rewrites the file without the events that were handled, if that halves it."""
        if size_bytes <= MAX_COMPACT_BYTES:
            return
        lines = [
            *(line + b"\n" for line in self._unreadable),
            *(_line(record) for record in self._acknowledgements()),
            *(_line({"event": asdict(event)}) for event in self._pending.values()),
            *(_line({"failed": asdict(failed)}) for failed in self.failed),
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
            match json.loads(line):
                case {"event": dict(fields)}:
                    event = event_from(fields)
                    pending[event.event_id] = event
                case {"acknowledged": identity}:
                    pending.pop(identity, None)
    return tuple(pending.values())


def event_from(fields: Mapping[str, Any]) -> SkillEvent:
    """Returns the event with these fields, as JSON holds them.

    Raises:
        KeyError, TypeError: a field is missing or not known.
    """
    lists = {name: tuple(fields[name]) for name in ("source_ids", "related")}
    return SkillEvent(**{**fields, **lists})


def _acknowledgement(event_id: str, result: SaveResult | None) -> dict[str, object]:
    if result is None:
        return {"acknowledged": event_id}
    return {"acknowledged": event_id, "result": {"line": result.line, "at": result.at}}


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def event_id(prompt: str) -> str:
    """Returns the id of the event that carries this text."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
