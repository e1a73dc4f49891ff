"""How does the disk differ from what the index knows?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.messages import FileEvent

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from memory.messages import FileStamp, FileSummary, Scan


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """What is known of every file while perhaps one index answers and another one is built."""

    newest: tuple[FileSummary, ...]
    """By the index that takes the changes."""
    old: tuple[FileSummary, ...] = ()
    """By the one that answers until then; empty if there is none."""


def by_urgency(
    scan: Scan, known: KnownFiles, *, reread: Container[str] = ()
) -> tuple[tuple[FileEvent, ...], tuple[FileEvent, ...]]:
    """Returns a hint for every path of which there is something to do, see ``changes``.

    Args:
        scan: What is on disk.
        known: What the indexes know.
        reread: As for ``changes``.

    Returns:
        Those that answers do not show as they are, and those that only an index lacks which is
        being built. A file that this one holds as it is stays away: what the other one shows of it
        until then cannot be helped.
    """
    behind = changes(scan, known.newest, reread=reread)
    if not known.old:
        return behind, ()
    held = {stamp.raw_path for stamp in scan.files} - {event.raw_path for event in behind}
    missed = tuple(event for event in changes(scan, known.old) if event.raw_path not in held)
    urgent = frozenset(missed)
    return missed, tuple(event for event in behind if event not in urgent)


def changes(
    scan: Scan, known: Iterable[FileSummary], *, reread: Container[str] = ()
) -> tuple[FileEvent, ...]:
    """Returns a hint for every path whose file and record differ (SPEC D6).

    Sorted by path, those that vanished last: so the files of a renamed folder find their vectors in
    the rows of its old name, however many there are, and need no cache (FAULTS 28). A path that
    vanished is left out while it lies at or below something unreadable: not seen is not gone.

    Args:
        scan: What is on disk.
        known: What the index knows.
        reread: Keys of files that are returned although their stamps are equal (see Rereading).
    """
    records = {summary.path: summary for summary in known}
    present = {stamp.path for stamp in scan.files}
    changed = [
        (stamp.path, stamp.raw_path)
        for stamp in scan.files
        if _differs(stamp, records.get(stamp.path)) or stamp.path in reread
    ]
    vanished = [
        (path, summary.raw_path)
        for path, summary in records.items()
        if path not in present and not is_hidden(path, scan.unreadable)
    ]
    return tuple(FileEvent(raw_path) for _path, raw_path in sorted(changed) + sorted(vanished))


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
