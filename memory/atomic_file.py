"""How is a file replaced so that a crash leaves the old or the new one, never a mixture?"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from typing_extensions import Buffer


_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_PRIVATE = 0o600
_FLUSHED_BYTES = 4 << 20
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
_NEVER_A_FILE = frozenset({errno.EISDIR, errno.ENXIO, errno.ELOOP})


class Disk(Protocol):
    """The few operations a durable file needs, so that a test can fail or record each of them."""

    def create(self, path: Path) -> int:
        """Creates a file that must not exist, mode 0600, to be read and appended to."""
        ...

    def open_to_append(self, path: Path) -> int:
        """Opens a file that exists, to be read and appended to."""
        ...

    def duplicate(self, descriptor: int) -> int:
        """Returns another descriptor of the same open file."""
        ...

    def size(self, descriptor: int) -> int:
        """Returns the length of the file in bytes."""
        ...

    def read(self, descriptor: int, num_bytes: int, offset: int) -> bytes:
        """Returns what stands at an offset; less than asked for only at the end of the file."""
        ...

    def write(self, descriptor: int, data: Buffer) -> None:
        """Appends all of the data."""
        ...

    def truncate(self, descriptor: int, num_bytes: int) -> None:
        """Cuts the file off."""
        ...

    def begin_flush(self, descriptor: int, offset: int, num_bytes: int) -> None:
        """Has the disk begin with what was written there, and waits for nothing; only a hint."""
        ...

    def fsync(self, descriptor: int) -> None:
        """Returns once everything written is on the disk."""
        ...

    def fdatasync(self, descriptor: int) -> None:
        """Like fsync, but what reading the data does not need may be left for later."""
        ...

    def close(self, descriptor: int) -> None:
        """Closes the descriptor."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Gives a file another name in one step; an existing target is replaced."""
        ...

    def link(self, source: Path, target: Path) -> None:
        """Gives a file a second name, which must not exist."""
        ...

    def fsync_folder(self, folder: Path) -> None:
        """Returns once the names in a folder are on the disk."""
        ...

    def remove(self, path: Path) -> None:
        """Removes a file."""
        ...


class OsDisk:
    """The disk of the machine."""

    def create(self, path: Path) -> int:
        """Creates a file that must not exist, mode 0600."""
        return os.open(path, _APPENDING | os.O_CREAT | os.O_EXCL, _PRIVATE)

    def open_to_append(self, path: Path) -> int:
        """Opens a file that exists."""
        return os.open(path, _APPENDING)

    def duplicate(self, descriptor: int) -> int:
        """Returns another descriptor of the same open file."""
        return os.dup(descriptor)

    def size(self, descriptor: int) -> int:
        """Returns the length of the file in bytes."""
        return os.fstat(descriptor).st_size

    def read(self, descriptor: int, num_bytes: int, offset: int) -> bytes:
        """Reads on until there is enough or the file ends."""
        blocks = []
        while num_bytes and (block := os.pread(descriptor, num_bytes, offset)):
            blocks.append(block)
            num_bytes -= len(block)
            offset += len(block)
        return b"".join(blocks)

    def write(self, descriptor: int, data: Buffer) -> None:
        """Appends all of the data, however little the system takes at once."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def truncate(self, descriptor: int, num_bytes: int) -> None:
        """Cuts the file off."""
        os.ftruncate(descriptor, num_bytes)

    def begin_flush(self, descriptor: int, offset: int, num_bytes: int) -> None:
        """Begins where the system knows how.

        Linux starts to write what it is told will not be needed, and only forgets what is on the
        disk already, so that nothing is forgotten here (``mm/fadvise.c``).
        """
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):
                os.posix_fadvise(descriptor, offset, num_bytes, os.POSIX_FADV_DONTNEED)

    def fsync(self, descriptor: int) -> None:
        """Flushes one file."""
        os.fsync(descriptor)

    def fdatasync(self, descriptor: int) -> None:
        """Flushes one file; without its times where the system can tell them apart."""
        getattr(os, "fdatasync", os.fsync)(descriptor)

    def close(self, descriptor: int) -> None:
        """Closes the descriptor."""
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Replaces the target."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Makes a hard link."""
        target.hardlink_to(source)

    def fsync_folder(self, folder: Path) -> None:
        """Flushes the entries of a folder."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        """Removes a file."""
        path.unlink()


def replace_atomically(
    path: Path, blocks: Iterable[Buffer], disk: Disk | None = None, helper: Executor | None = None
) -> None:
    """Writes a temporary file beside the target, flushes it and renames it over the target.

    When this returns, the new content survives a power loss. When it raises, the target is the old
    or the new file, whole, and the temporary file is gone; only a kill leaves one behind, see
    ``sweep_temporaries``.

    Args:
        path: The target.
        blocks: The new content.
        disk: For tests.
        helper: Lets go of the old file afterwards; to free a large one takes the system long.

    Raises:
        OSError: the disk refused.
    """
    disk = disk or OsDisk()
    with _freed_by(helper, path, disk):
        descriptor = replace_unflushed(path, blocks, disk)
        try:
            disk.fsync_folder(path.parent)
        finally:
            disk.close(descriptor)


def replace_unflushed(path: Path, blocks: Iterable[Buffer], disk: Disk) -> int:
    """Like replace_atomically, but leaves the folder to be flushed and the new file open.

    Until the folder is flushed, a power loss may bring the old file back.

    Returns:
        The descriptor of the new file, to be read and appended to.
    Raises:
        OSError: the disk refused; the old content is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = disk.create(temporary)
    try:
        _write_all(descriptor, blocks, disk)
        disk.fsync(descriptor)
        disk.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            disk.close(descriptor)
        with contextlib.suppress(OSError):
            disk.remove(temporary)
        raise
    return descriptor


def create_atomically(
    path: Path, blocks: Iterable[Buffer], disk: Disk | None = None, *, mode: int = 0o600
) -> bool:
    """Writes a file that nobody sees before it is whole and flushed.

    Args:
        path: The file.
        blocks: Its content.
        disk: For tests.
        mode: Who may do what with it.

    Returns:
        False if something of that name is there, which is left alone.

    Raises:
        OSError: the disk refused; there is no file of that name.
    """
    disk = disk or OsDisk()
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = disk.create(temporary)
    try:
        if mode != _PRIVATE:
            os.fchmod(descriptor, mode)
        _write_all(descriptor, blocks, disk)
        disk.fsync(descriptor)
        if not _named(temporary, path, disk):
            return False
        disk.fsync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            disk.close(descriptor)
        with contextlib.suppress(OSError):
            disk.remove(temporary)
    return True


def _named(temporary: Path, path: Path, disk: Disk) -> bool:
    """Gives a file a name that nothing has; without links, somebody may take it meanwhile."""
    try:
        disk.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            return False
        disk.rename(temporary, path)
    return True


@contextlib.contextmanager
def _freed_by(helper: Executor | None, path: Path, disk: Disk) -> Iterator[None]:
    """Keeps a file open, so that it is not freed when it loses its name but when it is closed."""
    old = None
    if helper is not None:
        # There may be none, or one that only the folder's owner may replace.
        with contextlib.suppress(OSError):
            old = disk.open_to_append(path)
    try:
        yield
    finally:
        if helper is not None and old is not None:
            helper.submit(disk.close, old)


def _write_all(descriptor: int, blocks: Iterable[Buffer], disk: Disk) -> None:
    """Writes blocks; the disk works while the next ones are made, so that fsync has little left."""
    written = flushed = 0
    for block in blocks:
        disk.write(descriptor, block)
        written += memoryview(block).nbytes
        if written - flushed >= _FLUSHED_BYTES:
            disk.begin_flush(descriptor, flushed, written - flushed)
            flushed = written


def sweep_temporaries(folder: Path, name: str, disk: Disk | None = None) -> int:
    """Removes what killed replacements of ``folder/name`` left behind; returns how many.

    For the owner of the folder only: a replacement under way elsewhere would lose its file. What
    cannot be removed waits for the next time.
    """
    disk = disk or OsDisk()
    num_removed = 0
    for path in folder.glob(f".{name}.*.tmp"):
        with contextlib.suppress(OSError):
            if path.is_file():
                disk.remove(path)
                num_removed += 1
    return num_removed


def open_at_once(path: str, flags: int) -> int:
    """Opens a file to be read, for ``open(opener=...)``; a FIFO must not wait for a writer."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)


def is_passing(error: OSError) -> bool:
    """Tells whether a file may be readable at another moment, or to somebody else.

    Not so a folder, a socket or a ring of links. All other errors (descriptors or memory run out, a
    disk that does not answer, missing rights) say nothing about the content.
    """
    return error.errno not in _NEVER_A_FILE
