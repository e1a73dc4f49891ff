"""How is a file replaced so that a crash leaves the old or the new one, never a mixture?"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from typing_extensions import Buffer


class Disk(Protocol):
    """The few operations a replacement needs, so that a test can fail or record each of them."""

    def create(self, path: Path) -> int:
        """Creates a file that must not exist, mode 0600, and returns its descriptor."""
        ...

    def write(self, descriptor: int, data: Buffer) -> None:
        """Writes all of the data."""
        ...

    def fsync(self, descriptor: int) -> None:
        """Returns once everything written is on the disk."""
        ...

    def close(self, descriptor: int) -> None:
        """Closes the descriptor."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Gives a file another name in one step; an existing target is replaced."""
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
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, descriptor: int, data: Buffer) -> None:
        """Writes all of the data, however little the system takes at once."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def fsync(self, descriptor: int) -> None:
        """Flushes one file."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Closes the descriptor."""
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Replaces the target."""
        source.replace(target)

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


def replace_atomically(path: Path, blocks: Iterable[Buffer], disk: Disk | None = None) -> None:
    """Writes a temporary file beside the target, flushes it and renames it over the target.

    When this returns, the new content survives a power loss. When it raises, the old content is
    untouched and the temporary file is gone; only a kill leaves one behind, see
    ``sweep_temporaries``.

    Raises:
        OSError: the disk refused.
    """
    disk = disk or OsDisk()
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = disk.create(temporary)
    try:
        try:
            for block in blocks:
                disk.write(descriptor, block)
            disk.fsync(descriptor)
        finally:
            disk.close(descriptor)
        disk.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            disk.remove(temporary)
        raise
    disk.fsync_folder(path.parent)


def sweep_temporaries(folder: Path, name: str) -> int:
    """Removes what killed replacements of ``folder/name`` left behind; returns how many.

    For the owner of the folder only: a replacement under way elsewhere would lose its file.
    """
    strays = [path for path in folder.glob(f".{name}.*.tmp") if path.is_file()]
    for path in strays:
        path.unlink(missing_ok=True)
    return len(strays)
