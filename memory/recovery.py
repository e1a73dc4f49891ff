"""What was saved: the snapshot, and which changes came after it?

The journal counts only beside its snapshot: whoever removes ``memory.msp`` wants everything anew.
Reads, never writes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.errors import JournalUnusable
from memory.identity import journal_identity
from memory.journal import JOURNAL_NAME, read_journal
from memory.snapshot import SNAPSHOT_NAME, SnapshotFile

if TYPE_CHECKING:
    from pathlib import Path

    from memory.journal import JournalRecord

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
    """Why the journal does not count; empty if it does, or if there is none."""


def open_saved(data: Path) -> Saved:
    """Returns what the data folder holds, of one moment even while the owner saves.

    Raises:
        SnapshotMissing: nothing was saved yet.
        SnapshotCorrupt: see SnapshotFile.
        SnapshotIncompatible: see SnapshotFile.
    """
    for _attempt in range(_MAX_ATTEMPTS):
        snapshot = SnapshotFile(data / SNAPSHOT_NAME)
        header = snapshot.header
        trouble = ""
        try:
            journal = read_journal(
                data / JOURNAL_NAME, identity=journal_identity(header.info.identity)
            )
        except JournalUnusable as error:
            journal, trouble = None, str(error)
        if journal is None:
            return Saved(snapshot, (), header.saved_at, trouble)
        if journal.base <= header.info.revision:
            return _with_changes(snapshot, journal.records, data)
        # A newer snapshot took the place of this one between the two readings.
        snapshot.close()
    reason = "its changes begin after the snapshot"
    return Saved(SnapshotFile(data / SNAPSHOT_NAME), (), header.saved_at, reason)


def _with_changes(snapshot: SnapshotFile, records: tuple[JournalRecord, ...], data: Path) -> Saved:
    header = snapshot.header
    changes = tuple(each for each in records if each.revision > header.info.revision)
    changed_at = header.saved_at
    if changes:
        with suppress(FileNotFoundError):
            changed_at = max(changed_at, (data / JOURNAL_NAME).stat().st_mtime)
    return Saved(snapshot, changes, changed_at)
