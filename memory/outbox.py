"""Which ``skills:memory`` events still wait for a handler?

A file of JSON lines that is appended to, each synced before the call returns: an event is delivered
at least once and survives a kill (SPEC A5). The text of what was handled is dropped once that is
most of the file, so that the file stays within twice of what waits and of the ids that are kept.
The snippet is data; nothing here looks inside it.

An event whose handler failed waits before it is delivered again, longer each time; after
MAX_ATTEMPTS it is parked, never dropped, until somebody asks for it again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memory.errors import StoreError
from memory.outbox_file import NotAFile, OutboxFile, encode, read_records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memory.atomic_file import Disk

OUTBOX_NAME = "outbox.jsonl"
"""In the data folder."""
SKILL = "skills:memory"
MAX_ATTEMPTS = 5
FIRST_RETRY_S = 60.0
RETRY_FACTOR = 4.0
"""So the five attempts take 85 minutes."""
MAX_PENDING = 10_000
MAX_PENDING_BYTES = 64 * 1024 * 1024
"""Of what waits for a handler, as it is stored; a fact beyond either is refused."""
MAX_RESULTS = 50
"""Results that are kept; of older events only the id is."""
MAX_HANDLED = 20_000
"""Ids that are kept; a text that was handled longer ago is an event again."""


@dataclass(frozen=True, slots=True)
class SkillEvent:
    """A fact handed to whoever handles ``skills:memory``."""

    event_id: str
    """See the function ``event_id``: the same text is the same event."""
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
    Raises:
        OSError: the file is there but cannot be read now.
    """

    def __init__(self, path: Path, *, disk: Disk | None = None) -> None:
        self._name = path.name
        self._pending: dict[str, SkillEvent] = {}
        self._acknowledged: dict[str, SaveResult | None] = {}
        self._failed: dict[str, FailedEvent] = {}
        self._line_bytes: dict[str, int] = {}
        """Of each pending event."""
        self._file = OutboxFile(path, disk, self._take)
        self._file.compact(self._lines)

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
            StoreError: too much waits already; the same.
            ValueError: it is longer than a line may be; the same.
        """
        if self.state(event.event_id) != "unknown":
            return False
        line = encode({"event": asdict(event)})
        num_bytes = sum(self._line_bytes.values()) + len(line)
        if len(self._pending) >= MAX_PENDING or num_bytes > MAX_PENDING_BYTES:
            raise StoreError(
                f"{self._name} is full: {len(self._pending):,} facts wait for a handler"
            )
        self._file.append(line)
        self._keep(event, len(line))
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
        self._file.append(encode(_acknowledgement(event_id, result)))
        self._end(event_id, result)
        self._file.compact(self._lines)
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
        self._file.append(encode({"failed": asdict(failed)}))
        self._failed[event_id] = failed
        self._file.compact(self._lines)
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
        self._file.append(encode({"retried": event_id}))
        del self._failed[event_id]
        self._file.compact(self._lines)
        return True

    def _take(self, record: Mapping[str, Any]) -> None:
        match record:
            case {"event": fields}:
                self._keep(_stored(fields), len(encode(record)))
            case {"failed": fields}:
                failed = _failed_from(fields)
                self._failed[failed.event_id] = failed
            case {"retried": identity}:
                self._failed.pop(identity, None)
            case {"acknowledged": identity}:
                told = record.get("result")
                self._end(identity, _result_from(identity, told) if told else None)

    def _keep(self, event: SkillEvent, num_bytes: int) -> None:
        self._pending[event.event_id] = event
        self._line_bytes[event.event_id] = num_bytes

    def _end(self, identity: str, result: SaveResult | None) -> None:
        for known in (self._pending, self._failed, self._line_bytes):
            known.pop(identity, None)
        self._acknowledged[identity] = result
        while len(self._acknowledged) > MAX_HANDLED:
            del self._acknowledged[next(iter(self._acknowledged))]

    def _lines(self) -> list[bytes]:
        """Returns what the file must hold."""
        kept = {result.event_id: result for result in self.results}
        ended = (_acknowledgement(each, kept.get(each)) for each in self._acknowledged)
        return [
            *map(encode, ended),
            *(encode({"event": asdict(event)}) for event in self._pending.values()),
            *(encode({"failed": asdict(failed)}) for failed in self.failed),
        ]


def read_pending(path: Path) -> tuple[SkillEvent, ...]:
    """Returns the events of a file that nobody acknowledged, oldest first, without touching it.

    Raises:
        OSError: the file is there but cannot be read.
    """
    pending: dict[str, SkillEvent] = {}

    def take(record: Mapping[str, Any]) -> None:
        match record:
            case {"event": fields}:
                event = _stored(fields)
                pending[event.event_id] = event
            case {"acknowledged": identity}:
                pending.pop(identity, None)

    with suppress(NotAFile):
        read_records(path, take)  # half a line: somebody is writing it
    return tuple(pending.values())


def event_from(fields: Mapping[str, Any]) -> SkillEvent:
    """Returns the event with these fields, as JSON holds them.

    Raises:
        KeyError, TypeError: a field is missing or not known.
    """
    lists = {name: tuple(fields[name]) for name in ("source_ids", "related")}
    event = SkillEvent(**{**fields, **lists})
    _check(event, event_id=str, prompt=str, created_at=(int, float), skill=str)
    return event


def _stored(fields: Mapping[str, Any]) -> SkillEvent:
    """Returns an event of the file; raises as ``event_from``, or ValueError."""
    event = event_from(fields)
    if event.event_id != event_id(event.prompt):
        raise ValueError("the text is another one than the id says")
    return event


def _failed_from(fields: Mapping[str, Any]) -> FailedEvent:
    failed = FailedEvent(**fields)
    _check(failed, event_id=str, attempts=int, reason=str, retry_at=(int, float))
    return failed


def _result_from(identity: str, fields: Mapping[str, Any]) -> SaveResult:
    result = SaveResult(identity, **fields)
    _check(result, line=str, at=(int, float))
    return result


def _check(record: object, **types: type | tuple[type, ...]) -> None:
    """Raises TypeError if a field has another type."""
    for name, kind in types.items():
        if not isinstance(getattr(record, name), kind):
            raise TypeError(f"{name} has another type")


def _acknowledgement(event_id: str, result: SaveResult | None) -> dict[str, object]:
    if result is None:
        return {"acknowledged": event_id}
    return {"acknowledged": event_id, "result": {"line": result.line, "at": result.at}}


def event_id(prompt: str) -> str:
    """Returns the id of the event that carries this text."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
