"""What can be left on a disk after a crash?

``CrashDisk`` works in a real folder, records every operation and can fail some of them.
``crash_images`` replays the record and yields every state that a kill or a power loss between any
two operations, or in the middle of one, could leave:

- names: every subset of the creations, links, renames and removals since the folder was flushed;
- contents since the file was flushed: any version of the file up to any byte, and from there any
  other version or zeros, of the length of any of them; and any single write lost amid the others;
- what was written before a flush that failed may be zeros for ever, for the system drops such
  pages and the next flush succeeds.

Files only grow at their end and are cut off, so what all versions share is never touched.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from memory.atomic_file import OsDisk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


@dataclass(frozen=True)
class Operation:
    kind: str
    inode: int = 0
    name: str = ""
    source: str = ""
    data: bytes = b""
    size: int = 0
    value: object = None


@dataclass(frozen=True)
class Image:
    """A folder after a crash, and what had been promised by then."""

    files: dict[str, bytes]
    promise: object


class Killed(BaseException):
    """The process is gone: no cleaning up."""


class CrashDisk(OsDisk):
    """Records what is done to the files of one folder.

    Args:
        folder: What is there already counts as durable.
        failing: Numbers of the operations that fail, from 0.
        error: With which errno; a write that fails has written half.
        drops_pages: Whether a flush that fails also turns what it should have flushed to zeros in
            memory; else it stays readable until the power fails.
        lies: Flushes that succeed without flushing.
        killed_at: Number of the operation at which the process dies; a write then has written half.
    """

    def __init__(
        self,
        folder,
        *,
        failing: Collection[int] = (),
        error: int = errno.EIO,
        drops_pages: bool = False,
        lies: Collection[str] = (),
        killed_at: int | None = None,
    ) -> None:
        self.operations: list[Operation] = []
        self.num_calls = 0
        self.killed_at = killed_at
        self._failing = failing
        self._error = error
        self._drops_pages = drops_pages
        self._lies = lies
        self._names: dict[str, int] = {}
        self._inodes: dict[int, int] = {}
        self._flushed: dict[int, int] = {}
        self._num_inodes = 0
        for path in folder.iterdir():
            inode = self._new_inode(path.name)
            self._flushed[inode] = path.stat().st_size
            self.operations.append(Operation("there", inode, path.name, data=path.read_bytes()))

    def reap(self) -> None:
        """Closes what a killed process left open."""
        while self._inodes:
            os.close(self._inodes.popitem()[0])

    def promise(self, value: object) -> None:
        """Notes what the code under test has promised from now on."""
        self.operations.append(Operation("promise", value=value))

    def create(self, path):
        self._count()
        descriptor = super().create(path)
        self._inodes[descriptor] = self._new_inode(path.name)
        self.operations.append(Operation("create", self._inodes[descriptor], path.name))
        return descriptor

    def open_to_append(self, path):
        self._count()
        descriptor = super().open_to_append(path)
        self._inodes[descriptor] = self._names[path.name]
        return descriptor

    def duplicate(self, descriptor):
        self._count()
        copy = super().duplicate(descriptor)
        self._inodes[copy] = self._inodes[descriptor]
        return copy

    def size(self, descriptor):
        self._count()
        return super().size(descriptor)

    def read(self, descriptor, num_bytes, offset):
        self._count()
        return super().read(descriptor, num_bytes, offset)

    def write(self, descriptor, data):
        data = bytes(data)
        try:
            self._count()
        except (OSError, Killed):
            if self.killed_at is None or self.num_calls == self.killed_at + 1:
                self._write(descriptor, data[: len(data) // 2])
            raise
        self._write(descriptor, data)

    def truncate(self, descriptor, num_bytes):
        self._count()
        super().truncate(descriptor, num_bytes)
        inode = self._inodes[descriptor]
        self._flushed[inode] = min(self._flushed[inode], num_bytes)
        self.operations.append(Operation("truncate", inode, size=num_bytes))

    def fsync(self, descriptor):
        self._flush(descriptor, "fsync")

    def fdatasync(self, descriptor):
        self._flush(descriptor, "fdatasync")

    def close(self, descriptor):
        self._inodes.pop(descriptor)
        try:
            self._count()
        finally:
            super().close(descriptor)

    def rename(self, source, target):
        self._count()
        super().rename(source, target)
        inode = self._names[target.name] = self._names.pop(source.name)
        self.operations.append(Operation("rename", inode, target.name, source=source.name))

    def link(self, source, target):
        self._count()
        super().link(source, target)
        inode = self._names[target.name] = self._names[source.name]
        self.operations.append(Operation("link", inode, target.name))

    def fsync_folder(self, folder):
        self._count()
        if "fsync_folder" not in self._lies:
            self.operations.append(Operation("fsync_folder"))

    def remove(self, path):
        self._count()
        super().remove(path)
        del self._names[path.name]
        self.operations.append(Operation("remove", name=path.name))

    def _count(self) -> None:
        self.num_calls += 1
        if self.killed_at is not None and self.num_calls > self.killed_at:
            raise Killed
        if self.num_calls - 1 in self._failing:
            raise OSError(self._error, os.strerror(self._error))

    def _new_inode(self, name: str) -> int:
        self._num_inodes += 1
        self._names[name] = self._num_inodes
        self._flushed[self._num_inodes] = 0
        return self._num_inodes

    def _write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data)
        self.operations.append(Operation("write", self._inodes[descriptor], data=data))

    def _flush(self, descriptor: int, kind: str) -> None:
        inode = self._inodes[descriptor]
        size = os.fstat(descriptor).st_size
        try:
            self._count()
        except OSError:
            self.operations.append(Operation("lose", inode))
            if self._drops_pages:
                start = self._flushed[inode]
                os.ftruncate(descriptor, start)
                os.ftruncate(descriptor, size)
            raise
        if kind not in self._lies:
            self._flushed[inode] = size
            self.operations.append(Operation("flush", inode))


@dataclass
class _File:
    versions: list[bytes]
    """The durable one and those since."""
    writes: list[tuple[int, int]] = field(default_factory=list)
    """Ranges written since the flush."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Ranges that a failed flush may have dropped."""

    def apply(self, operation: Operation) -> None:
        match operation.kind:
            case "write":
                start = len(self.versions[-1])
                self.versions.append(self.versions[-1] + operation.data)
                self.writes.append((start, len(self.versions[-1])))
            case "truncate":
                size = operation.size
                self.versions.append(self.versions[-1][:size])
                self.writes = [
                    (start, min(end, size)) for start, end in self.writes if start < size
                ]
                self.lost = [(start, min(end, size)) for start, end in self.lost if start < size]
            case "flush":
                self.versions = self.versions[-1:]
                self.writes = []
            case "lose":
                self.lost.append((min(map(len, self.versions)), len(self.versions[-1])))

    def contents(self) -> set[bytes]:
        """Returns everything that a crash may leave of the file."""
        latest = self.versions[-1]
        contents = {*_mixtures(self.versions)}
        contents |= {_zeroed(latest, start, end) for start, end in self.writes}
        for start, end in self.lost:
            contents |= {_zeroed(content, start, end) for content in contents}
            contents |= {_zeroed(latest, start, cut) for cut in range(start, end)}
            contents |= {_zeroed(latest, cut, end) for cut in range(start, end)}
        return contents


def crash_images(disk: CrashDisk, *, since: int = 0, torn: bool = True) -> Iterator[Image]:
    """Yields each distinct state of the folder that a crash may have left, with the promise.

    Args:
        disk: With the record.
        since: Number of recorded operations; the crash comes not before them.
        torn: Whether contents may be mixtures, too; they are as many as a file has bytes.
    """
    seen = set()
    for names, files, promise in islice(_states(disk.operations), max(0, since - 1), None):
        for linked in names:
            whole = {name: files[inode].versions[-1] for name, inode in linked.items()}
            # Files do not depend on each other: in each image at most one of them is damaged.
            damaged = (
                whole | {name: content}
                for name, inode in linked.items()
                for content in (files[inode].contents() if torn else files[inode].versions)
            )
            for image in (whole, *damaged):
                key = (frozenset(image.items()), promise)
                if key not in seen:
                    seen.add(key)
                    yield Image(image, promise)


def _states(
    operations: list[Operation],
) -> Iterator[tuple[list[dict[str, int]], dict[int, _File], object]]:
    """Yields the names that may be there, the files and the promise after each operation."""
    files: dict[int, _File] = {}
    durable: dict[str, int] = {}
    pending: list[Operation] = []
    promise = None
    for operation in operations:
        match operation.kind:
            case "there":
                files[operation.inode] = _File([operation.data])
                durable[operation.name] = operation.inode
            case "create":
                files[operation.inode] = _File([b""])
                pending.append(operation)
            case "rename" | "remove" | "link":
                pending.append(operation)
            case "fsync_folder":
                durable, pending = _linked(durable, pending), []
            case "promise":
                promise = operation.value
            case _:
                files[operation.inode].apply(operation)
        yield _possible_names(durable, pending), files, promise


def _possible_names(durable: dict[str, int], pending: list[Operation]) -> list[dict[str, int]]:
    subsets: list[list[Operation]] = [[]]
    for operation in pending:
        subsets += [[*subset, operation] for subset in subsets]
    return [_linked(durable, subset) for subset in subsets]


def _linked(names: dict[str, int], operations: list[Operation]) -> dict[str, int]:
    """Returns the names after creations, links, renames and removals."""
    names = dict(names)
    for operation in operations:
        if operation.kind == "remove":
            names.pop(operation.name, None)
            continue
        names[operation.name] = operation.inode
        if operation.kind == "rename":
            names.pop(operation.source, None)
    return names


def _mixtures(versions: list[bytes]) -> Iterator[bytes]:
    """Yields each version up to each byte, followed by each other one or by zeros."""
    stable = min(map(len, versions))
    start = versions[0][:stable]
    tails = [version[stable:] for version in versions]
    longest = max(map(len, tails))
    tails += [bytes(len(tail)) for tail in tails]
    for head in set(tails):
        for tail in set(tails):
            for cut in range(longest + 1):
                # A write that starts behind the end leaves a hole of zeros.
                mixed = head[:cut].ljust(min(cut, len(tail)), b"\0") + tail[cut:]
                yield start + mixed


def _zeroed(content: bytes, start: int, end: int) -> bytes:
    end = min(end, len(content))
    return content[:start] + bytes(max(0, end - start)) + content[end:]


def put(folder, image: Image) -> None:
    """Makes an empty folder hold an image."""
    for name, content in image.files.items():
        (folder / name).write_bytes(content)
