"""Is what was saved of an index whole, byte by byte?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.errors import JournalUnusable, SnapshotCorrupt, SnapshotIncompatible
from memory.identity import journal_identity
from memory.inspection import Difference
from memory.journal import JOURNAL_NAME, read_journal
from memory.recovery import open_saved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LOOKS = 3
_PAUSE_S = 0.3


def saved_faults(data: Path, sleep: Callable[[float], None]) -> list[Difference]:
    """Returns what is wrong with the snapshot and the journal of a data folder.

    Args:
        data: The folder; a daemon may write meanwhile, so a fault is one that stays.
        sleep: Waits so many seconds.

    Raises:
        SnapshotMissing: nothing was saved.
        OSError: the system cannot read a file now.
    """
    faults: list[Difference] = []
    for look in range(_LOOKS):
        if look:
            sleep(_PAUSE_S)
        found = _faults_now(data)
        faults = [fault for fault in found if not look or fault in faults]
        if not faults:
            break
    return faults


def _faults_now(data: Path) -> list[Difference]:
    try:
        saved = open_saved(data)
    except (SnapshotCorrupt, SnapshotIncompatible) as error:
        return [Difference("snapshot", "", str(error))]
    with saved.snapshot as snapshot:
        faults = []
        for part in snapshot.header.parts:
            try:
                snapshot.view(part.name)
            except SnapshotCorrupt as error:
                faults.append(Difference("snapshot", "", str(error)))
        identity = snapshot.header.info.identity
    trouble = saved.trouble or _torn(data / JOURNAL_NAME, journal_identity(identity))
    return faults + [Difference("journal", "", trouble)] * bool(trouble)


def _torn(path: Path, identity: bytes) -> str:
    """Returns what follows the last whole record, if something does."""
    try:
        journal = read_journal(path, identity=identity)
        if journal is None or not journal.torn:
            return ""
        rest = path.stat().st_size - journal.valid_bytes
    except (JournalUnusable, FileNotFoundError):
        return ""  # it was replaced since it was read a moment ago
    return f"{path}: its last {rest} bytes are no whole record"
