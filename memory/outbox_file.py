"""How are the records of the outbox kept in a file, and read without trusting it?

A line is a JSON object with one kind of record and its CRC-32, for JSON itself notices few flipped
bits. Earlier versions wrote no checksum; their lines are read as well. A file is read line by line,
so that one which is none claims no memory (FAULTS 10).
"""

from __future__ import annotations

import json
import logging
import os
import stat
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from memory.atomic_file import (
    OsDisk,
    is_passing,
    open_at_once,
    replace_atomically,
    sweep_temporaries,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from memory.atomic_file import Disk

    Take = Callable[[Mapping[str, Any]], None]
    """Raises ValueError, KeyError or TypeError for a record that it does not understand."""

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Three times the longest text, as JSON may take twelve bytes for a character."""
MAX_KEPT_BYTES = 64 * 1024
"""Of what cannot be read; more is a damaged file and not the half line of a kill."""
MAX_COMPACT_BYTES = 64 * 1024
"""A smaller file is never worth a compaction."""
_KINDS = {"event": dict, "failed": dict, "retried": str, "acknowledged": str}
_CHECKSUM, _RESULT = "crc32", "result"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a file beside its records."""

    num_bytes: int = 0
    unreadable: tuple[bytes, ...] = ()
    """The first lines that are no record, MAX_KEPT_BYTES at most."""
    num_unreadable: int = 0
    ends_torn: bool = False
    """Whether the last line has no end."""


class NotAFile(OSError):
    """Something else has the name of the outbox."""


class OutboxFile:
    """Lines that are appended, each durable when ``append`` returns; one writer per file.

    Args:
        path: Created with its folder by the first line.
        disk: Where it lies.
        take: Gets every record that is there already.

    Raises:
        OSError: the file is there but cannot be read now.
    """

    def __init__(self, path: Path, disk: Disk | None, take: Take) -> None:
        self._path = path
        self._disk = disk or OsDisk()
        self._is_name_synced = False
        sweep_temporaries(path.parent, path.name)
        self._found = self._read(take)
        self._ends_torn = self._found.ends_torn
        """Whether the file may end in half a line, which the next one must not be glued to."""
        self._num_bytes = self._found.num_bytes
        self._compact_from = MAX_COMPACT_BYTES + 1

    def append(self, line: bytes) -> None:
        """Adds a line.

        Raises:
            OSError: the disk refused; the line is not there.
        """
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = self._disk.open_to_append(self._path)
        except FileNotFoundError:
            descriptor = self._disk.create(self._path)
            self._is_name_synced = self._ends_torn = False
        try:
            self._write(descriptor, b"\n" + line if self._ends_torn else line)
        finally:
            with suppress(OSError):  # it is flushed
                self._disk.close(descriptor)
        if not self._is_name_synced:
            self._disk.fsync_folder(self._path.parent)
            self._is_name_synced = True

    def _write(self, descriptor: int, line: bytes) -> None:
        before = self._disk.size(descriptor)
        try:
            self._disk.write(descriptor, line)
            self._disk.fsync(descriptor)
        except BaseException:
            self._ends_torn = True  # unless this works, which the next start sees
            with suppress(OSError):
                self._disk.truncate(descriptor, before)
            raise
        self._ends_torn = False
        self._num_bytes = before + len(line)

    def compact(self, records: Callable[[], Sequence[bytes]]) -> None:
        """Replaces the lines by those that still say something, if that halves the file.

        What a kill left as half a line stays, and so does a record of a later version. Of more than
        that, which only damage leaves, the file is kept aside. Whatever fails leaves it as it was.

        Args:
            records: Makes the lines; not called for a file that is too short.
        """
        if self._num_bytes < self._compact_from:
            return
        lines = [*(line + b"\n" for line in self._found.unreadable), *records()]
        num_bytes = sum(map(len, lines))
        self._compact_from = max(MAX_COMPACT_BYTES + 1, 2 * num_bytes)
        if self._num_bytes < self._compact_from:
            return
        try:
            if self._found.num_unreadable > len(self._found.unreadable):
                self._keep_aside()
            replace_atomically(self._path, lines, self._disk)
        except OSError as error:
            self._compact_from = 2 * self._num_bytes
            logger.warning("cannot compact %s: %s", self._path.name, error.strerror or error)
            return
        self._found = replace(self._found, num_unreadable=len(self._found.unreadable))
        self._num_bytes = num_bytes
        self._ends_torn, self._is_name_synced = False, True

    def _read(self, take: Take) -> Reading:
        try:
            found = read_records(self._path, take)
        except NotAFile as error:
            kept_as = _free_name(self._path)
            self._disk.rename(self._path, kept_as)
            logger.warning("%s: %s; kept as %s", self._path, error.strerror, kept_as.name)
            return Reading()
        if found.num_unreadable:
            logger.warning("%s", _damage(self._path, found.num_unreadable))
        return found

    def _keep_aside(self) -> None:
        """Gives the file a second name, which takes the place of an earlier one."""
        kept_as = _bad_name(self._path)
        with suppress(FileNotFoundError):
            self._disk.remove(kept_as)
        self._disk.link(self._path, kept_as)
        logger.warning("%s is damaged; kept as %s", self._path.name, kept_as.name)


def encode(record: Mapping[str, object]) -> bytes:
    """Returns a record as a line.

    Raises:
        ValueError: it is longer than MAX_LINE_BYTES and could not be read again.
    """
    line = json.dumps({**record, _CHECKSUM: _checksum(record)}).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a record of {len(line):,} bytes is longer than {MAX_LINE_BYTES:,}")
    return line


def decode(line: bytes) -> dict[str, Any]:
    """Returns the record of a line; its only keys are a kind and perhaps ``result``.

    Raises:
        ValueError: the line is none, or damaged, or of a later version.
    """
    try:
        record = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("no object")  # noqa: TRY004 - a value from outside
    if _CHECKSUM in record and record.pop(_CHECKSUM) != _checksum(record):
        raise ValueError("the checksum is wrong")
    kinds = record.keys() - {_RESULT}
    if not any(kinds == {kind} and type(record[kind]) is _KINDS[kind] for kind in _KINDS):
        raise ValueError("an unknown kind of record")
    return record


def damage(path: Path) -> str:
    """Returns one line about what cannot be read of a file; empty if all can.

    Raises:
        OSError: the file is there but cannot be read now.
    """
    try:
        found = read_records(path, lambda _record: None)
    except NotAFile as error:
        return f"{path.name}: {error.strerror}; facts that waited for a handler may be lost"
    return _damage(path, found.num_unreadable) if found.num_unreadable else ""


def _damage(path: Path, num_lines: int) -> str:
    # A kill in the middle of an append leaves half a line, too; its caller got no answer.
    lines = "1 line" if num_lines == 1 else f"{num_lines:,} lines"
    return f"{lines} of {path.name} cannot be read, so saved facts may be lost"


def read_records(path: Path, take: Take) -> Reading:
    """Hands the record of each line over; a missing file is empty.

    Raises:
        NotAFile: a folder, a pipe or a device.
        OSError: the file is there but cannot be read now.
    """
    try:
        with open(path, "rb", opener=open_at_once) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _read_lines(file, take)
    except FileNotFoundError:
        return Reading()
    except OSError as error:
        kind = OSError if is_passing(error) else NotAFile
        raise kind(error.errno, error.strerror, str(path)) from None
    raise NotAFile(0, "not a regular file", str(path))


def _read_lines(file: BinaryIO, take: Take) -> Reading:
    kept: list[bytes] = []
    num_bytes = num_kept_bytes = num_unreadable = 0
    line = b"\n"
    while piece := file.readline(MAX_LINE_BYTES):
        line = piece
        num_bytes += len(line)
        if not (text := line.strip()):
            continue
        try:
            take(decode(text))
        except (ValueError, KeyError, TypeError):
            num_unreadable += 1
            if num_kept_bytes + len(text) <= MAX_KEPT_BYTES:
                num_kept_bytes += len(text)
                kept.append(text)
    return Reading(num_bytes, tuple(kept), num_unreadable, not line.endswith(b"\n"))


def _checksum(record: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(record).encode())


def _bad_name(path: Path) -> Path:
    return path.with_name(f"{path.name}.bad")


def _free_name(path: Path) -> Path:
    bad = _bad_name(path)
    names = (bad, *(bad.with_name(f"{bad.name}.{number}") for number in range(1, 100)))
    return next((name for name in names if not os.path.lexists(name)), bad)
