"""How does the disk differ from what the index knows?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.messages import FileEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memory.messages import FileStamp, FileSummary, Scan

EMPTY_GRACE_S = 600.0
"""How long a workspace without a single file counts as one that is not there."""
_COARSE_NS = 1_000_000_000


class Emptiness:
    """Whether an empty workspace is to be believed.

    A file system that is not mounted leaves an empty folder in its place, and who removes the last
    file of a workspace can wait until the index knows it (FAULTS 24).
    """

    def __init__(self) -> None:
        self._since_s: float | None = None

    def is_doubtful(self, scan: Scan, known: Sequence[FileSummary], now_s: float) -> bool:
        """Tells whether a scan shows nothing of what was known, and has done so only for a while.

        Args:
            scan: What is on disk.
            known: What the index knows.
            now_s: Monotonic time, seconds.
        """
        if scan.files or scan.skipped or not known:
            self._since_s = None
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        return now_s - self._since_s < EMPTY_GRACE_S


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
