"""What is ``memory.wal``, and how is it read?

::

    magic (8 bytes) · format version (uint32 LE) · identity (32 bytes) · base revision (uint64)
    · CRC-32 of the header up to here (uint32)
    records: length of the payload (uint32) · revision (uint64) · CRC-32 (uint32) · payload

The CRC-32 of a record covers its length, its revision and its payload. Revisions strictly increase
and the first is above the base: together with a snapshot of any revision from the base to the last
record, the journal holds every change after it.

What is read is always a prefix of what was appended, never a changed or a half record: a torn tail
or a damaged byte ends the reading there. The payload is the caller's; nothing here looks inside it.
``journal_writer`` says what survives which crash.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.atomic_file import is_passing, open_at_once
from memory.errors import JournalUnusable

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

    from typing_extensions import Buffer

JOURNAL_NAME = "memory.wal"
FORMAT_VERSION = 1
_MAX_PAYLOAD_BYTES = 256 * 1024 * 1024
_READ_BYTES = 1 << 20
_IDENTITY_BYTES = 32
# The first byte is no text, and the line ends show a transfer in text mode, as in PNG.
_MAGIC = b"\x89MWL\r\n\x1a\n"
_HEADER = struct.Struct(f"<8sI{_IDENTITY_BYTES}sQ")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CRC.size
_FRAME = struct.Struct("<IQ")
FRAME_BYTES = _FRAME.size + _CRC.size


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One change."""

    revision: int
    """Change counter of the index after it."""
    payload: memoryview
    """What the caller appended; read-only, and keeps the bytes of the whole journal alive."""


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal holds at one moment."""

    base: int
    """Every change after this revision is in the records, up to the last of them."""
    records: tuple[JournalRecord, ...]
    valid_bytes: int
    """Length of the header and the records."""
    torn: bool
    """Whether something follows that is no whole record."""

    @property
    def last_revision(self) -> int:
        """Revision of the last record, or the base."""
        return self.records[-1].revision if self.records else self.base


def read_journal(path: Path, *, identity: bytes) -> Journal | None:
    """Returns the records up to the first that is torn or damaged; None if there is no file.

    Reads, never writes. The journal may be appended to or restarted meanwhile.

    Args:
        path: ``memory.wal``.
        identity: 32 bytes, what the writer was given.
    Raises:
        JournalUnusable: of another identity or format version, or not a journal.
        OSError: the system cannot read it now, which says nothing about what it holds.
    """
    try:
        with open(path, "rb", buffering=0, opener=open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise JournalUnusable(str(path), "not a regular file")
            base = _decode_header(file.read(HEADER_BYTES), path, identity)
            data, num_bytes = _read_records(file, after=base)
    except FileNotFoundError:
        return None
    except OSError as error:
        if is_passing(error):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise JournalUnusable(str(path), error.strerror or "cannot be read") from None
    records, num_valid = decode_records(data, after=base)
    return Journal(base, records, HEADER_BYTES + num_valid, torn=num_valid != num_bytes)


def _read_records(file: FileIO, *, after: int) -> tuple[bytes, int]:
    """Returns the bytes of the whole records, and how many bytes there are.

    Nothing else is held in memory: a file that is damaged or forged may be of any size.
    """
    start, end = file.tell(), 0
    num_bytes = max(0, os.fstat(file.fileno()).st_size - start)
    while num_bytes - end >= FRAME_BYTES:
        frame = file.read(FRAME_BYTES)
        if len(frame) < FRAME_BYTES:
            break
        length, revision = _FRAME.unpack_from(frame)
        crc = zlib.crc32(frame[: _FRAME.size])
        if length > min(_MAX_PAYLOAD_BYTES, num_bytes - end - FRAME_BYTES) or revision <= after:
            break
        if _CRC.unpack_from(frame, _FRAME.size)[0] != _checksum_of_next(file, length, crc):
            break
        after = revision
        end += FRAME_BYTES + length
    file.seek(start)
    return file.read(end), num_bytes


def _checksum_of_next(file: FileIO, num_bytes: int, crc: int) -> int:
    while num_bytes and (piece := file.read(min(num_bytes, _READ_BYTES))):
        crc = zlib.crc32(piece, crc)
        num_bytes -= len(piece)
    return crc


def encode_header(identity: bytes, base: int) -> bytes:
    """Returns the start of a journal.

    Raises:
        ValueError: the identity has another length than 32 bytes.
    """
    if len(identity) != _IDENTITY_BYTES:
        raise ValueError(f"an identity of {len(identity)} bytes instead of {_IDENTITY_BYTES}")
    header = _HEADER.pack(_MAGIC, FORMAT_VERSION, identity, base)
    return header + _CRC.pack(zlib.crc32(header))


def _decode_header(data: bytes, path: Path, identity: bytes) -> int:
    """Returns the base revision."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise JournalUnusable(str(path), "not a journal of this product")
    if len(data) < HEADER_BYTES:
        raise JournalUnusable(str(path), "its header is cut off")
    _magic, version, found, base = _HEADER.unpack_from(data)
    if version != FORMAT_VERSION:
        raise JournalUnusable(str(path), f"format {version}, expected {FORMAT_VERSION}")
    if _CRC.unpack_from(data, _HEADER.size)[0] != zlib.crc32(data[: _HEADER.size]):
        raise JournalUnusable(str(path), "checksum of the header is wrong")
    if found != identity:
        raise JournalUnusable(str(path), "belongs to another model")
    return int(base)


def encode_record(revision: int, payload: Buffer) -> bytes:
    """Returns a record as it is appended.

    Raises:
        ValueError: the payload is longer than 256 MiB.
    """
    view = memoryview(payload).cast("B")
    if len(view) > _MAX_PAYLOAD_BYTES:
        raise ValueError(f"a record of {len(view)} bytes could not be read again")
    frame = _FRAME.pack(len(view), revision)
    return b"".join((frame, _CRC.pack(zlib.crc32(view, zlib.crc32(frame))), view))


def decode_records(data: bytes, *, after: int) -> tuple[tuple[JournalRecord, ...], int]:
    """Returns the whole records at the start, each above the one before, and their length."""
    view = memoryview(data)
    records: list[JournalRecord] = []
    end = 0
    while end + FRAME_BYTES <= len(view):
        length, revision = _FRAME.unpack_from(view, end)
        (expected,) = _CRC.unpack_from(view, end + _FRAME.size)
        start = end + FRAME_BYTES
        if length > min(_MAX_PAYLOAD_BYTES, len(view) - start) or revision <= after:
            break
        payload = view[start : start + length]
        if zlib.crc32(payload, zlib.crc32(view[end : end + _FRAME.size])) != expected:
            break
        records.append(JournalRecord(revision, payload))
        after = revision
        end = start + length
    return tuple(records), end
