"""What was saved: the snapshot, and which changes came after it?

The journal counts only beside its snapshot: whoever removes ``memory.msp`` wants everything anew.
Reads, never writes.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgpack

from memory.errors import JournalUnusable, StoreError
from memory.identity import journal_identity
from memory.journal import JOURNAL_NAME, read_journal
from memory.snapshot import SNAPSHOT_NAME, SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from memory.index import MemoryIndex
    from memory.journal import JournalRecord

logger = logging.getLogger(__name__)

_MAX_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Saved:
    """One generation on disk."""

    snapshot: SnapshotFile
    """Open; to be closed by who asked."""
    changes: tuple[JournalRecord, ...]
    """What came after the snapshot, in order."""
    changed_at: float
    """When the disk was last written, Unix time in seconds."""
    trouble: str = ""
    """Why the journal, or its end, does not count; empty if it does, or if there is none."""


def open_saved(data: Path) -> Saved:
    """Returns what the data folder holds, of one moment even while the owner saves.

    Raises:
        SnapshotMissing: nothing was saved yet.
        SnapshotCorrupt: see SnapshotFile.
        SnapshotIncompatible: see SnapshotFile.
        OSError: the system cannot read a file now; it may hold what somebody paid for.
    """
    for _attempt in range(_MAX_ATTEMPTS):
        snapshot = SnapshotFile(data / SNAPSHOT_NAME)
        try:
            saved = _with_journal(snapshot, data / JOURNAL_NAME)
        except BaseException:
            snapshot.close()
            raise
        if saved is not None:
            return saved
        # A newer snapshot took the place of this one between the two readings.
        snapshot.close()
    snapshot = SnapshotFile(data / SNAPSHOT_NAME)
    reason = "its changes begin after the snapshot"
    return Saved(snapshot, (), snapshot.header.saved_at, reason)


def check_readable(data: Path) -> None:
    """Refuses a data folder whose index may be whole but cannot be read now.

    Raises:
        OSError: see open_saved.
    """
    with suppress(StoreError):  # nothing there, or contents that the owner sets aside
        open_saved(data).snapshot.close()


def replay_all(index: MemoryIndex, changes: Iterable[JournalRecord]) -> bool:
    """Makes changes again; returns whether all of them fitted."""
    for change in changes:
        try:
            index.replay(bytes(change.payload))
        except (ValueError, TypeError, msgpack.UnpackException, StoreError) as error:
            logger.warning(
                "the journal does not fit its snapshot at %d: %r", change.revision, error
            )
            return False
        if index.revision != change.revision:
            logger.warning("the journal does not fit its snapshot at %d", change.revision)
            return False
    return True


def _with_journal(snapshot: SnapshotFile, path: Path) -> Saved | None:
    """Returns a snapshot with what came after it; None if the journal begins later than that."""
    header = snapshot.header
    try:
        journal = read_journal(path, identity=journal_identity(header.info.identity))
    except JournalUnusable as error:
        return Saved(snapshot, (), header.saved_at, str(error))
    if journal is None:
        return Saved(snapshot, (), header.saved_at)
    if journal.base > header.info.revision:
        return None
    changes, trouble = _following(journal.records, header.info.revision)
    changed_at = header.saved_at
    if changes:
        with suppress(FileNotFoundError):
            changed_at = max(changed_at, path.stat().st_mtime)
    return Saved(snapshot, changes, changed_at, trouble)


def _following(
    records: tuple[JournalRecord, ...], revision: int
) -> tuple[tuple[JournalRecord, ...], str]:
    """Returns the changes after a revision up to the first that is missing, and what is."""
    changes: list[JournalRecord] = []
    for record in records:
        if record.revision > revision:
            if record.revision != revision + 1 + len(changes):
                return tuple(changes), f"change {revision + 1 + len(changes)} is missing"
            changes.append(record)
    return tuple(changes), ""
