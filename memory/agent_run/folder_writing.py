"""How is a file of the workspace written without ever leaving it?

As it is read (``file_system``): component by component, each relative to the one before and none
through a symbolic link, so that not even a folder swapped for a link half-way leads out. The file
is replaced in one step, and only if it still is what the writer has seen.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

from memory.errors import WorkspaceMissing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FOLDER_MODE = 0o777  # less the umask
_NEW_FILE_MODE = 0o666  # less the umask
_SUFFIX = re.compile(r"\.[0-9a-f]{8}\.tmp")


class ChangedMeanwhile(Exception):
    """Somebody else wrote the file, so that its new content would undo that."""


def replace(root: Path, raw_path: str, data: bytes, seen: bytes | None) -> None:
    """Replaces or creates a file; its folders are made if need be.

    When this returns, the file survives a power loss. When it raises, the old one is untouched.

    Args:
        root: The workspace; it may itself be a link.
        raw_path: Relative, ``/``-separated; whoever calls has refused ``..`` and empty components.
        data: The new content.
        seen: The content that is replaced; None if there must be no file.

    Raises:
        ChangedMeanwhile: the file holds something else than ``seen``.
        WorkspaceMissing: the root cannot be opened.
        OSError: a component is a link or no folder, or the disk refused.
    """
    *folders, name = raw_path.split("/")
    with _made_folder(root, folders) as folder:
        _sweep(folder, name)
        temporary = f".{name}.{os.urandom(4).hex()}.tmp"
        try:
            _write_new(folder, temporary, data, _mode(folder, name))
            _expect(folder, name, seen)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


@contextlib.contextmanager
def _made_folder(root: Path, folders: list[str]) -> Iterator[int]:
    try:
        descriptor = os.open(root, _FOLDER)
    except OSError as error:
        raise WorkspaceMissing(str(root), error.strerror or "cannot be opened") from error
    try:
        for name in folders:
            parent = descriptor
            descriptor = _made(parent, name)
            os.close(parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _made(parent: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, _NEW_FOLDER_MODE, dir_fd=parent)
        os.fsync(parent)
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)


def _sweep(folder: int, name: str) -> None:
    """Removes what a kill left of an earlier attempt; one writer is at work at a time."""
    start = f".{name}"
    for entry in os.listdir(folder):
        if entry.startswith(start) and _SUFFIX.fullmatch(entry, len(start)):
            with contextlib.suppress(OSError):
                os.unlink(entry, dir_fd=folder)


def _mode(folder: int, name: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def _write_new(folder: int, name: str, data: bytes, mode: int | None) -> None:
    descriptor = os.open(name, _NEW, _NEW_FILE_MODE, dir_fd=folder)
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _expect(folder: int, name: str, seen: bytes | None) -> None:
    """Raises ChangedMeanwhile unless the file holds what was seen, or is as absent as it was."""
    try:
        descriptor = os.open(name, _OLD, dir_fd=folder)
    except FileNotFoundError:
        if seen is not None:
            raise ChangedMeanwhile from None
        return
    with os.fdopen(descriptor, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if not is_file or seen is None or file.read(len(seen) + 1) != seen:
            raise ChangedMeanwhile
