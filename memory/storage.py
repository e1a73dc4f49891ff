"""How is an index kept on disk while it changes?

Every change goes into the journal before its caller hears of it; a snapshot makes the journal short
again. Changes wait only for the moment in which the image of a snapshot is taken, not for it to be
written.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from memory import heap
from memory.atomic_file import OsDisk
from memory.errors import JournalUnusable
from memory.identity import journal_identity
from memory.journal import JOURNAL_NAME
from memory.journal_writer import JournalWriter
from memory.snapshot import SNAPSHOT_NAME, sweep_temporaries, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path

    from memory.atomic_file import Disk
    from memory.identity import Identity
    from memory.index import MemoryIndex

logger = logging.getLogger(__name__)

OLD_JOURNAL_NAME = f"{JOURNAL_NAME}.old"
"""The last journal that could not be used, kept for whoever can."""

_MAX_JOURNAL_SHARE = 0.25
_MAX_JOURNAL_BYTES = 8 * 1024 * 1024
"""About 2,500 sections, which take a second to be made again at the next start."""
_LONGEST_JOURNAL_BYTES = 1 << 30
"""Beyond it, which takes a disk that has refused every snapshot for long, nothing is added."""


@dataclass(frozen=True, slots=True)
class StorageStatus:
    """What is on disk."""

    identity: Identity
    saved_revision: int
    """Of the snapshot; -1 if there is none."""
    saved_at: float
    """Unix time of the snapshot, seconds."""
    journal_bytes: int
    is_complete: bool
    """Whether snapshot and journal together hold every change."""
    needs_save: bool
    """Whether a snapshot is due: they do not, the journal is long, or scores were calibrated."""
    trouble: str = ""
    """Why they do not, if the disk refused."""


class IndexStorage:
    """Writes one index into its data folder; nobody else does.

    ``log`` and ``changing`` belong to the thread that changes the index, ``save`` and ``sync`` may
    each run in a thread of their own beside it.

    Args:
        data: Folder of the snapshot and the journal.
        index: Hands its changes over from now on.
        saved_revision: Of the snapshot on disk, -1 if there is none.
        saved_at: When that was written, Unix time in seconds.
        complete: Whether snapshot and journal together hold all of the index.
        disk: For tests.
    Raises:
        OSError: a journal of another index could not be moved out of the way.
    """

    def __init__(
        self,
        data: Path,
        index: MemoryIndex,
        *,
        saved_revision: int,
        saved_at: float,
        complete: bool,
        disk: Disk | None = None,
    ) -> None:
        self._data = data
        self._index = index
        self._disk = disk or OsDisk()
        self._saved_revision, self._saved_at = saved_revision, saved_at
        self._saved_threshold = self._threshold()
        self._snapshot_bytes = _size(data / SNAPSHOT_NAME)
        self._trouble = ""
        self.changing = threading.Lock()
        """Held while the index changes, and while its image is taken."""
        sweep_temporaries(data, disk=self._disk)
        if not complete:
            # It belongs to another index, or its changes could not all be made again.
            self._put_aside()
        self._journal = (
            self._open_journal(saved_revision, ends_at=index.revision) if complete else None
        )
        self._waiting: list[tuple[int, bytes]] | None = None
        """Changes since the image that is being saved, while there is no journal."""
        index.log_to(self._log)

    def status(self) -> StorageStatus:
        """Returns what is on disk, and whether it is time for a snapshot."""
        journal = self._journal
        num_bytes = journal.num_bytes if journal is not None else 0
        is_complete = journal is not None and not journal.needs_snapshot
        is_long = num_bytes > min(_MAX_JOURNAL_BYTES, _MAX_JOURNAL_SHARE * self._snapshot_bytes)
        return StorageStatus(
            identity=self._index.identity,
            saved_revision=self._saved_revision,
            saved_at=self._saved_at,
            journal_bytes=num_bytes,
            is_complete=is_complete,
            needs_save=not is_complete or is_long or self._threshold() != self._saved_threshold,
            trouble="" if is_complete else self._trouble,
        )

    def stop_logging(self) -> None:
        """Notes that the index changed in a way the journal cannot tell; a snapshot is due."""
        self._waiting = None
        if self._journal is not None:
            _give_up(self._journal)
            self._journal = None

    def sync(self) -> None:
        """Makes every change so far survive a power loss, if ``status().is_complete``.

        Raises:
            OSError: the disk refused; a snapshot is due.
        """
        journal = self._journal
        if journal is not None:
            journal.sync()

    def save(self, now: float, helper: Executor | None = None) -> int:
        """Replaces the snapshot, and drops what it holds from the journal.

        Args:
            now: Unix time, seconds.
            helper: See ``snapshot.write``.

        Returns:
            The revision that was saved.

        Raises:
            OSError: the disk refused. Either the old snapshot is in place, or the new one and only
                the journal was not made shorter; nothing is lost.
        """
        self._merge()
        self.changing.acquire()
        try:
            with self._index.frozen() as parts:
                self._waiting = [] if self._journal is None else None
                threshold = self._threshold()
                self.changing.release()
                try:
                    path = self._data / SNAPSHOT_NAME
                    write(path, parts, saved_at=now, helper=helper, disk=self._disk)
                finally:
                    self.changing.acquire()
            self._note_saved(parts.info.revision, now)
            self._saved_threshold = threshold
        finally:
            self._waiting = None
            self.changing.release()
        # Merges and the image leave holes, 1 kB a chunk after an index was filled.
        heap.trim()
        return parts.info.revision

    def _merge(self) -> None:
        """Merges segments of the text half beside the searches."""
        while True:
            with self.changing:
                merge = self._index.text.next_merge()
            if merge is None:
                return
            merged = merge.run()
            with self.changing:
                if not self._index.text.adopt(merge, merged):
                    return

    def _note_saved(self, revision: int, now: float) -> None:
        self._saved_revision, self._saved_at = revision, now
        self._snapshot_bytes = _size(self._data / SNAPSHOT_NAME)
        if self._journal is not None:
            self._journal.restart(revision)
        elif self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._journal = self._open_journal(revision, ends_at=revision)
            for change in waiting:
                self._log(*change)
        # Otherwise the index changed in a way that cannot be told: the next snapshot has it.

    def _open_journal(self, revision: int, *, ends_at: int) -> JournalWriter | None:
        try:
            try:
                journal = self._journal_after(revision)
            except JournalUnusable:
                self._put_aside()
                journal = self._journal_after(revision)
            if journal.last_revision != ends_at:
                # It goes on differently from the index, which was opened without it.
                _give_up(journal)
                self._put_aside()
                journal = self._journal_after(revision)
        except OSError as error:
            self._complain(error)
            return None
        return journal

    def _threshold(self) -> float | None:
        return self._index.status().threshold

    def _complain(self, error: Exception) -> None:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        self._trouble = f"cannot write {JOURNAL_NAME}: {reason}"
        logger.warning("%s; each save writes the whole index until it can", self._trouble)

    def _journal_after(self, revision: int) -> JournalWriter:
        identity = journal_identity(self._index.identity)
        return JournalWriter(self._data, base=revision, identity=identity, disk=self._disk)

    def _put_aside(self) -> None:
        """Makes room for a new journal; the old one may hold what somebody paid for."""
        journal, kept = self._data / JOURNAL_NAME, self._data / OLD_JOURNAL_NAME
        # Somebody's folder neither replaces a file nor is replaced.
        if journal.is_dir() and os.path.lexists(kept):
            kept = _other_name(kept, os.path.lexists)
        elif kept.is_dir():
            kept = _other_name(kept, os.path.isdir)
        with suppress(FileNotFoundError):
            self._disk.rename(journal, kept)
            # Else a power loss may bring it back beside the next snapshot, which it does not fit.
            self._disk.fsync_folder(self._data)

    def _log(self, revision: int, change: bytes) -> None:
        if self._journal is None:
            if self._waiting is not None:
                self._waiting.append((revision, change))
            return
        try:
            if self._journal.num_bytes + len(change) > _LONGEST_JOURNAL_BYTES:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))  # noqa: TRY301 - as the disk
            self._journal.append(revision, change)
        except (OSError, ValueError) as error:
            self._complain(error)
            self.stop_logging()


def _give_up(journal: JournalWriter) -> None:
    """Closes a journal that nothing will be added to."""
    with suppress(OSError):
        journal.close()


def _other_name(path: Path, is_taken: Callable[[Path], bool]) -> Path:
    names = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return next(name for name in names if not is_taken(name))


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
