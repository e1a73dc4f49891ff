"""How is the workspace read without ever leaving it?

Every path is opened component by component, each relative to the one before and none through a
symbolic link, so that not even a folder swapped for a link half-way leads out of the root.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from memory.errors import WorkspaceMissing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO would block


class FileSystem(Protocol):
    """What a workspace needs of the operating system."""

    def entries(self, root: Path, folder: str) -> Iterator[os.DirEntry[str]]:
        """Yields what a folder holds; ``""`` is the root. Entries live as long as the iterator."""
        ...

    def open_file(self, root: Path, raw_path: str) -> int:
        """Returns a descriptor for reading, which the caller closes."""
        ...

    def stat(self, descriptor: int) -> os.stat_result:
        """Returns the present state of an open file."""
        ...

    def read(self, descriptor: int, num_bytes: int) -> bytes:
        """Returns the first bytes of an open file, fewer only if it is shorter."""
        ...


class OsFileSystem:
    """The real file system; holds no state.

    Raises:
        WorkspaceMissing: the root cannot be opened.
        OSError: anything below the root cannot be.
    """

    def entries(self, root: Path, folder: str) -> Iterator[os.DirEntry[str]]:
        """Yields what a folder holds; ``""`` is the root."""
        with (
            _opened_folder(root, folder.split("/") if folder else []) as descriptor,
            os.scandir(descriptor) as listing,
        ):
            yield from listing

    def open_file(self, root: Path, raw_path: str) -> int:
        """Returns a descriptor for reading; never waits, never follows a link."""
        *folders, name = raw_path.split("/")
        with _opened_folder(root, folders) as descriptor:
            return os.open(name, _FILE, dir_fd=descriptor)

    def stat(self, descriptor: int) -> os.stat_result:
        """Returns the present state of an open file."""
        return os.fstat(descriptor)

    def read(self, descriptor: int, num_bytes: int) -> bytes:
        """Returns the first bytes of an open file, fewer only if it is shorter."""
        data = os.pread(descriptor, num_bytes, 0)
        while len(data) < num_bytes and (
            more := os.pread(descriptor, num_bytes - len(data), len(data))
        ):
            data += more
        return data


@contextmanager
def _opened_folder(root: Path, folders: list[str]) -> Iterator[int]:
    try:
        descriptor = os.open(root, _FOLDER)
    except OSError as error:
        raise WorkspaceMissing(str(root), error.strerror or "cannot be opened") from error
    try:
        for folder in folders:
            parent = descriptor
            descriptor = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
        yield descriptor
    finally:
        os.close(descriptor)
