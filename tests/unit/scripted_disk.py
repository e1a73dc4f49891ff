"""A disk that notes what is called, fails where told to, and runs something during a flush."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from memory.atomic_file import OsDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class ScriptedDisk(OsDisk):
    """The disk of the machine, but for what a test wants of it.

    Args:
        failing: Names of operations that fail; a write that fails has written five bytes.
        error: With which errno.
    """

    def __init__(self, *failing: str, error: int = errno.ENOSPC) -> None:
        self.calls: list[str] = []
        """Names of the operations that change something, in order."""
        self.folders: list[Path] = []
        """The folders that were flushed, in order."""
        self.failing = set(failing)
        self.during_flush: Callable[[], object] | None = None
        """Called at the start of each fdatasync."""
        self._error = error

    def create(self, path):
        self._note("create")
        return super().create(path)

    def write(self, descriptor, data):
        if "write" in self.failing:
            super().write(descriptor, bytes(data)[:5])
        self._note("write")
        super().write(descriptor, data)

    def truncate(self, descriptor, num_bytes):
        self._note("truncate")
        super().truncate(descriptor, num_bytes)

    def fsync(self, descriptor):
        self._note("fsync")
        super().fsync(descriptor)

    def fdatasync(self, descriptor):
        if self.during_flush:
            self.during_flush()
        self._note("fdatasync")
        super().fdatasync(descriptor)

    def rename(self, source, target):
        self._note("rename")
        super().rename(source, target)

    def fsync_folder(self, folder):
        self.folders.append(folder)
        self._note("fsync_folder")
        super().fsync_folder(folder)

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise OSError(self._error, os.strerror(self._error))
