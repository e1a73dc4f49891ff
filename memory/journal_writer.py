"""How are changes since the last snapshot kept through a crash?

Guarantees, for a killed process and for a power loss, with the reading of ``journal``:

- The name stands for a whole journal at any moment; ``restart`` leaves the old or the new one.
- Every record that ``sync`` or ``restart`` acknowledged is read, until a ``restart`` drops it
  because a snapshot holds it. What was not acknowledged is read as a prefix.
- An append that failed left nothing behind, and later appends work.

``append`` alone survives a kill but not a power loss. After a failed sync nothing is acknowledged
before a snapshot and ``restart``: the system may have dropped what was written and reports that
once only. A process that ends between the two takes that knowledge with it; if the power fails
later, records written since the last good sync, and those behind them, may be lost.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from memory import atomic_file
from memory.errors import JournalUnusable
from memory.journal import (
    FRAME_BYTES,
    HEADER_BYTES,
    JOURNAL_NAME,
    decode_records,
    encode_header,
    encode_record,
    read_journal,
)

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

    from memory.journal import Journal, JournalRecord


class JournalWriter:
    """Appends changes to the journal of a folder; one writer a folder, see ``data_lock``.

    A journal that reaches the base is continued after its torn tail is cut off; one that ends
    before it holds nothing that the snapshot lacks and is replaced, as is a missing one.

    All methods are for one thread, except ``sync``, which may run in another at the same time.

    Args:
        folder: Where ``memory.wal`` is.
        base: Revision of the snapshot that was loaded, 0 without one.
        identity: 32 bytes that tell journals of different models apart.
        disk: For tests.
    Raises:
        JournalUnusable: see read_journal, or it starts after the base. Nothing was changed; move
            the file away and open again.
        OSError: the disk refused to open or to create the file. If it failed later,
            ``needs_snapshot`` is set instead.
    """

    def __init__(
        self, folder: Path, *, base: int, identity: bytes, disk: atomic_file.Disk | None = None
    ) -> None:
        self._path = folder / JOURNAL_NAME
        self._identity = identity
        self._disk = disk or atomic_file.OsDisk()
        self._lock = threading.Lock()
        """Held while the open file is exchanged or grows, and never during a disk operation
        that can take long."""
        journal = read_journal(self._path, identity=identity)
        if journal is not None and journal.base > base:
            reason = f"starts at revision {journal.base}, the index is at {base}"
            raise JournalUnusable(str(self._path), reason)
        atomic_file.sweep_temporaries(folder, JOURNAL_NAME, self._disk)
        if journal is None or journal.last_revision < base:
            self._file = self._create(base)
        else:
            self._file = self._continue(journal)
        try:
            # Whether the name of a journal that was found had been flushed is not known.
            self._disk.fsync_folder(folder)
        except OSError:
            self._file.in_doubt = True

    @property
    def base(self) -> int:
        """Every change after this revision is in the journal."""
        return self._file.base

    @property
    def last_revision(self) -> int:
        """Revision of the last record, or the base."""
        return self._file.last_revision

    @property
    def num_bytes(self) -> int:
        """Length of the journal, for deciding when a snapshot is due."""
        return self._file.num_bytes

    @property
    def needs_snapshot(self) -> bool:
        """Whether the disk failed so that only ``restart``, after a snapshot, can go on."""
        return self._file.in_doubt or self._file.ends_torn

    def append(self, revision: int, payload: Buffer) -> None:
        """Adds a record; it survives a kill of this process, and a power loss after ``sync``.

        Args:
            revision: Above ``last_revision``.
            payload: At most 256 MiB.
        Raises:
            ValueError: the revision or the size is out of range.
            OSError: the disk refused; the record is not in the journal and may be appended again.
                If even the half-written record could not be removed, ``needs_snapshot`` is set and
                everything is refused until ``restart``.
        """
        file = self._file
        if revision <= file.last_revision:
            raise ValueError(f"revision {revision} after {file.last_revision}")
        record = encode_record(revision, payload)
        if file.ends_torn:
            raise OSError(errno.EIO, "the journal ends in half a record, a snapshot is needed")
        try:
            self._disk.write(file.descriptor, record)
        except BaseException:
            self._roll_back(file)
            raise
        with self._lock:
            file.add(revision, len(record))

    def sync(self) -> int:
        """Makes every record durable; may run in another thread than the other methods.

        Returns:
            The revision up to which changes now survive a power loss.
        Raises:
            OSError: the disk refused. The system may have dropped what was written since the last
                success and forget the failure, so ``needs_snapshot`` is set and syncing is refused
                until ``restart``.
        """
        with self._lock:
            file = self._file
            if file.in_doubt:
                raise OSError(errno.EIO, "records may be lost, a snapshot is needed")
            revision = file.last_revision
            # Its own descriptor, for restart or close may meanwhile close the other.
            descriptor = self._disk.duplicate(file.descriptor)
        try:
            self._disk.fdatasync(descriptor)
        except BaseException:
            file.in_doubt = True
            raise
        finally:
            self._disk.close(descriptor)
        if file.in_doubt:  # another sync failed meanwhile, and only one of them is told
            raise OSError(errno.EIO, "records may be lost, a snapshot is needed")
        return revision

    def restart(self, after: int) -> None:
        """Drops the records that a snapshot holds; when this returns, all others are durable.

        With ``base`` it drops nothing, and ends ``needs_snapshot`` without a snapshot if all
        records can still be read back.

        Args:
            after: Revision of a snapshot that is durable, at least ``base``.
        Raises:
            ValueError: the journal lacks changes between the revision and its base.
            OSError: the disk refused. Nothing is lost: the old journal goes on, or the new one
                with ``needs_snapshot`` set if its name may not be durable.
        """
        old = self._file
        if after < old.base:
            raise ValueError(f"revision {after} before the base {old.base}")
        new = self._create(after, self._read_back(old, after))
        try:
            self._disk.fsync_folder(self._path.parent)
        except BaseException:
            new.in_doubt = True
            raise
        finally:
            with self._lock:
                self._file = new
            with contextlib.suppress(OSError):  # it has no name any more
                self._disk.close(old.descriptor)

    def close(self) -> None:
        """Closes the file without syncing; closing twice is harmless, any other call an OSError."""
        with self._lock:
            descriptor, self._file.descriptor = self._file.descriptor, -1
        if descriptor >= 0:
            self._disk.close(descriptor)

    def _create(self, base: int, records: bytes = b"") -> _OpenJournal:
        """Replaces the journal; the folder is still to be flushed."""
        blocks = (encode_header(self._identity, base), records)
        descriptor = atomic_file.replace_unflushed(self._path, blocks, self._disk)
        return _OpenJournal(descriptor, base, decode_records(records, after=base)[0])

    def _continue(self, journal: Journal) -> _OpenJournal:
        """Opens the journal that was read and cuts its torn tail off."""
        descriptor = self._disk.open_to_append(self._path)
        file = _OpenJournal(descriptor, journal.base, journal.records)
        try:
            if self._disk.size(descriptor) != file.num_bytes:
                self._disk.truncate(descriptor, file.num_bytes)
            self._disk.fsync(descriptor)
        except OSError:
            # Raising would invite another try, whose flush would succeed without having flushed.
            file.in_doubt = file.ends_torn = True
        return file

    def _roll_back(self, file: _OpenJournal) -> None:
        try:
            self._disk.truncate(file.descriptor, file.num_bytes)
        except OSError:
            file.ends_torn = True

    def _read_back(self, file: _OpenJournal, after: int) -> bytes:
        """Returns the records above a revision, verified."""
        start = file.offset_after(after)
        data = self._disk.read(file.descriptor, file.num_bytes - start, start)
        if start + decode_records(data, after=after)[1] != file.num_bytes:
            raise OSError(errno.EIO, "the last records cannot be read back")
        return data


class _OpenJournal:
    """The file that a writer has open, and where its records are."""

    def __init__(self, descriptor: int, base: int, records: tuple[JournalRecord, ...]) -> None:
        self.descriptor = descriptor
        self.base = base
        self.num_bytes = HEADER_BYTES
        self.in_doubt = False
        """Whether something that was written may never reach the disk."""
        self.ends_torn = False
        """Whether half a record stands behind the last one."""
        self._revisions = array("Q")
        self._offsets = array("Q")
        for record in records:
            self.add(record.revision, FRAME_BYTES + len(record.payload))

    @property
    def last_revision(self) -> int:
        return self._revisions[-1] if self._revisions else self.base

    def add(self, revision: int, num_bytes: int) -> None:
        """Notes a record that was appended."""
        self._revisions.append(revision)
        self._offsets.append(self.num_bytes)
        self.num_bytes += num_bytes

    def offset_after(self, revision: int) -> int:
        """Returns where the first record above a revision starts, or the end."""
        index = bisect_right(self._revisions, revision)
        return self._offsets[index] if index < len(self._offsets) else self.num_bytes
