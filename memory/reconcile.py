"""How does the disk differ from what the index knows?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.messages import FileEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memory.messages import FileStamp, FileSummary, Scan

EMPTY_GRACE_S = 600.0
"""How long a workspace without a single file counts as one that is not there."""
_COARSE_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """What is known of every file while perhaps one index answers and another one is built."""

    newest: tuple[FileSummary, ...]
    """By the index that takes the changes."""
    old: tuple[FileSummary, ...] = ()
    """By the one that answers until then; empty if there is none."""


class Emptiness:
    """Whether an empty workspace is to be believed.

    A file system that is not mounted leaves an empty folder in its place, and who removes the last
    file of a workspace can wait until the index knows it (FAULTS 24).
    """

    def __init__(self) -> None:
        self._since_s: float | None = None

    def is_doubtful(self, scan: Scan, known: KnownFiles, now_s: float) -> bool:
        """Tells whether a scan shows nothing of what was known, and has done so only for a while.

        Args:
            scan: What is on disk.
            known: What the indexes know.
            now_s: Monotonic time, seconds.
        """
        if scan.files or scan.skipped or not (known.newest or known.old):
            self._since_s = None
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        return now_s - self._since_s < EMPTY_GRACE_S


def by_urgency(
    scan: Scan, known: KnownFiles
) -> tuple[tuple[FileEvent, ...], tuple[FileEvent, ...]]:
    """Returns a hint for every path of which there is something to do, see ``changes``.

    Args:
        scan: What is on disk.
        known: What the indexes know.

    Returns:
        Those that answers do not show as they are, and those that only an index lacks which is
        being built. A file that this one holds as it is stays away: what the other one shows of it
        until then cannot be helped.
    """
    behind = changes(scan, known.newest)
    if not known.old:
        return behind, ()
    held = {stamp.raw_path for stamp in scan.files} - {event.raw_path for event in behind}
    missed = tuple(event for event in changes(scan, known.old) if event.raw_path not in held)
    urgent = frozenset(missed)
    return missed, tuple(event for event in behind if event not in urgent)


def changes(
    scan: Scan, known: Iterable[FileSummary], *, suspicious: bool = False
) -> tuple[FileEvent, ...]:
    """Returns a hint for every path whose file and record differ, sorted by path (SPEC D6).

    A path that vanished is left out while it lies at or below something unreadable: not seen is
    not gone.

    Args:
        scan: What is on disk.
        known: What the index knows.
        suspicious: Also returns files whose stamps are equal but prove little, because the file
            system counts whole seconds (FAT, SMB): they may have changed within that second.
    """
    records = {summary.path: summary for summary in known}
    present = {stamp.path for stamp in scan.files}
    events = [
        (stamp.path, FileEvent(stamp.raw_path))
        for stamp in scan.files
        if _differs(stamp, records.get(stamp.path))
        or (suspicious and stamp.mtime_ns % _COARSE_NS == 0)
    ]
    events += [
        (path, FileEvent(summary.raw_path))
        for path, summary in records.items()
        if path not in present and not is_hidden(path, scan.unreadable)
    ]
    return tuple(event for _path, event in sorted(events, key=lambda pair: pair[0]))


def _differs(stamp: FileStamp, summary: FileSummary | None) -> bool:
    if summary is None:
        return True
    return (stamp.raw_path, stamp.mtime_ns, stamp.size, stamp.inode) != (
        summary.raw_path,
        summary.mtime_ns,
        summary.size,
        summary.inode,
    )


def is_hidden(path: str, unreadable: tuple[str, ...]) -> bool:
    """Tells whether a path lies at or below something that a scan could not look into."""
    return any(prefix in ("", path) or path.startswith(f"{prefix}/") for prefix in unreadable)
