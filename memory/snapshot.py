"""What is ``memory.msp``, and how is it written and read safely?

One file, so that identity, files, vectors and text are always of one generation: the parts, one
after another, and the header that lists them, see ``snapshot_header``.

Neither msgpack nor FAISS nor Whoosh notices a flipped bit; every byte here is covered by a checksum
or compared. Lengths are checked against the size of the file before anything is allocated.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Self

import msgpack

from memory import atomic_file, mapped_pages
from memory.checksums import Checksums
from memory.errors import SnapshotCorrupt, SnapshotIncompatible, SnapshotMissing
from memory.snapshot_header import (
    FOOTER,
    FORMAT_VERSION,
    MAGIC,
    MAX_HEADER_BYTES,
    PREAMBLE,
    decode_header,
    encode_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Buffer

    from memory.snapshot_header import Header, SnapshotInfo

SNAPSHOT_NAME = "memory.msp"
MAX_SET_ASIDE = 2
_WRITE_BYTES = 1 << 20


Blocks = Callable[[], Iterable["Buffer"]]
"""Makes the content of a part, piece by piece; called once. A piece never changes."""


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotParts:
    """One generation of the index, ready to be written."""

    info: SnapshotInfo
    parts: Callable[[], Iterable[tuple[str, Blocks]]]
    """Makes name and content of each part; called once."""


def write(
    path: Path,
    snapshot: SnapshotParts,
    *,
    saved_at: float,
    helper: Executor | None = None,
    disk: atomic_file.Disk | None = None,
) -> None:
    """Replaces the snapshot atomically; when this returns, it survives a power loss.

    Args:
        path: ``memory.msp``.
        snapshot: From ``MemoryIndex.snapshot``.
        saved_at: Unix time, seconds.
        helper: Has one thread, which computes the checksums beside the writing and lets go of the
            old snapshot after it; without one both are done in between.
        disk: For tests.
    Raises:
        OSError: the disk refused; the old snapshot is untouched.
        ValueError: the header would be too long to be read again; the same.
    """
    blocks = _encoded(snapshot, saved_at, helper)
    atomic_file.replace_atomically(path, blocks, disk, helper)


def read_header(path: Path) -> Header:
    """Returns the header alone.

    Raises:
        SnapshotMissing: there is no file.
        SnapshotCorrupt: see SnapshotFile.
        SnapshotIncompatible: see SnapshotFile.
    """
    with SnapshotFile(path) as snapshot:
        return snapshot.header


def sweep_temporaries(folder: Path, *, disk: atomic_file.Disk | None = None) -> int:
    """Removes what killed writers left behind; returns how many. For the owner only."""
    return atomic_file.sweep_temporaries(folder, SNAPSHOT_NAME, disk)


def set_aside(path: Path, now: float) -> Path:
    """Renames an unreadable snapshot to ``memory.msp.bad-<UTC time>``. For the owner only.

    Only the last MAX_SET_ASIDE of them are kept: a disk that goes bad must not fill itself.

    Args:
        path: ``memory.msp``.
        now: Unix time, seconds.
    Returns:
        The new name.
    Raises:
        OSError: the folder refused.
    """
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    kept_as = path.replace(path.with_name(f"{path.name}.bad-{moment}"))
    forget_set_aside(path, num_kept=MAX_SET_ASIDE)
    return kept_as


def forget_set_aside(path: Path, *, num_kept: int = 0) -> bool:
    """Removes snapshots that were set aside, but for the last ones. For the owner only.

    Args:
        path: ``memory.msp``.
        num_kept: How many stay.

    Returns:
        Whether there was one.
    """
    earlier = [each for each in path.parent.glob(f"{path.name}.bad-*") if each.is_file()]
    is_there = False
    # Their names are those of their times.
    for each in sorted(earlier)[: max(0, len(earlier) - num_kept)]:
        with suppress(OSError):
            each.unlink()
            is_there = True
    return is_there


class SnapshotFile:
    """One open snapshot; it stays the same generation while the daemon replaces the file.

    Reads, never writes or deletes. Only what is asked for is read and verified.

    Raises:
        SnapshotMissing: there is no file.
        SnapshotCorrupt: checksum, length or content is wrong, or it is no file.
        SnapshotIncompatible: written by another format version.
        OSError: the system cannot read it now, which says nothing about what it holds; so do all
            methods.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "rb", opener=atomic_file.open_at_once)  # noqa: SIM115 - closed by close
        except FileNotFoundError:
            raise SnapshotMissing(str(path)) from None
        except OSError as error:
            if atomic_file.is_passing(error):
                raise
            raise self._corrupt(error.strerror or "cannot be opened") from None
        try:
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; closing twice is harmless."""
        self._file.close()

    def view(self, name: str) -> memoryview:
        """Returns a part, verified, in the memory where the system keeps the file.

        It stays readable after the snapshot is closed or replaced: both leave the file itself
        alone.

        Raises:
            SnapshotCorrupt: there is no such part, or its checksum is wrong.
        """
        part = next((part for part in self.header.parts if part.name == name), None)
        if part is None:
            raise self._corrupt(f"part {name} is missing")
        view = memoryview(self._mapped)[part.offset : part.offset + part.length]
        if len(view) != part.length or hashlib.sha256(view).digest() != part.sha256:
            raise self._corrupt(f"checksum of part {name} is wrong")
        return view

    def release(self) -> None:
        """Lets go of the memory of every part; what is looked at again comes back by itself."""
        mapped_pages.release([self._mapped])

    @cached_property
    def _mapped(self) -> mmap.mmap:
        try:
            return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self._refused(error) from None
        except ValueError:
            raise self._corrupt("cannot be read") from None

    def _read_header(self) -> Header:
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise self._corrupt("not a regular file")
        preamble = self._read_at(0, PREAMBLE.size)
        if len(preamble) < PREAMBLE.size:
            raise self._corrupt("cut off")
        magic, version = PREAMBLE.unpack(preamble)
        if magic != MAGIC:
            raise self._corrupt("not a snapshot of this product")
        if version != FORMAT_VERSION:
            raise SnapshotIncompatible(str(self.path), str(version), str(FORMAT_VERSION))
        length, sha256 = FOOTER.unpack(self._footer(status.st_size))
        start = status.st_size - FOOTER.size - length
        if length > MAX_HEADER_BYTES or start < PREAMBLE.size:
            raise self._corrupt("its header is too long")
        data = self._read_verified(start, length, sha256, what="header")
        try:
            header = decode_header(data)
        except (ValueError, TypeError, KeyError, msgpack.UnpackException):
            raise self._corrupt("its header is not understood") from None
        last = header.parts[-1] if header.parts else None
        end = last.offset + last.length if last is not None else PREAMBLE.size
        if end != start:
            raise self._corrupt(f"its parts end at {end}, its header begins at {start}")
        return header

    def _footer(self, size: int) -> bytes:
        footer = self._read_at(max(size - FOOTER.size, 0), FOOTER.size)
        if len(footer) < FOOTER.size:
            raise self._corrupt("cut off")
        return footer

    def _read_verified(self, offset: int, length: int, sha256: bytes, *, what: str) -> bytes:
        data = self._read_at(offset, length)
        if len(data) != length or hashlib.sha256(data).digest() != sha256:
            raise self._corrupt(f"checksum of {what} is wrong")
        return data

    def _read_at(self, offset: int, length: int) -> bytes:
        try:
            self._file.seek(offset)
            return self._file.read(length)
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: OSError) -> OSError:
        """Returns the error of the system with the name of the file."""
        return OSError(error.errno, error.strerror, str(self.path))

    def _corrupt(self, reason: str) -> SnapshotCorrupt:
        return SnapshotCorrupt(str(self.path), reason)


def _encoded(snapshot: SnapshotParts, saved_at: float, helper: Executor | None) -> Iterator[Buffer]:
    """Yields the whole file in one pass."""
    yield PREAMBLE.pack(MAGIC, FORMAT_VERSION)
    parts, checksums = [], Checksums(helper)
    for name, blocks in snapshot.parts():
        digest, length = hashlib.sha256(), 0
        for block in _in_large_blocks(blocks()):
            checksums.add(digest, block)
            length += memoryview(block).nbytes
            yield block
        parts.append((name, length, digest))
    checksums.finish()
    table = [(name, length, digest.digest()) for name, length, digest in parts]
    yield encode_header(snapshot.info, saved_at, table)


def _in_large_blocks(pieces: Iterable[Buffer]) -> Iterator[Buffer]:
    """Joins small pieces, as each is a call of the system to write."""
    small: list[Buffer] = []
    num_bytes = 0
    for piece in pieces:
        size = memoryview(piece).nbytes
        if small and num_bytes + size > _WRITE_BYTES:
            yield b"".join(small)
            small, num_bytes = [], 0
        if size >= _WRITE_BYTES:
            yield memoryview(piece).cast("B")
        else:
            small.append(piece)
            num_bytes += size
    if small:
        yield b"".join(small)
