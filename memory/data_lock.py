"""Who may write to a data folder? One daemon at a time (SPEC P4); readers need no lock.

The lock belongs to the open file and not to the process, so that nobody gives it back by closing
the file elsewhere in the same process; and the kernel tells of it without its being taken. That is
an open file description lock on Linux, and ``flock`` elsewhere, where ``F_GETLK`` reports it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import sys
from typing import TYPE_CHECKING

from memory.errors import LockHeld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_NAME = "lock"


@contextlib.contextmanager
def data_lock(folder: Path) -> Iterator[None]:
    """Owns a data folder while the block runs; the kernel gives the lock back after any death.

    Args:
        folder: Data folder; created 0700 if it does not exist.
    Raises:
        LockHeld: another process owns it; the error names its pid.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            _take(descriptor)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            raise LockHeld(str(folder), f"process {owner or 'unknown'}") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Tells whether a daemon owns the folder, also while it is still starting.

    Takes and writes nothing, so that any number of processes may ask while one starts.
    """
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _is_taken(descriptor)
    finally:
        os.close(descriptor)


if sys.platform == "linux":
    # The fields of struct flock: type, whence, start, length, process.
    _LAYOUT = "hhqqi"

    def _take(descriptor: int) -> None:
        wanted = struct.pack(_LAYOUT, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)

    def _is_taken(descriptor: int) -> bool:
        wanted = struct.pack(_LAYOUT, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted)
        return bool(struct.unpack(_LAYOUT, found)[0] != fcntl.F_UNLCK)

else:
    # macOS and the BSDs order them start, length, process, type, whence.
    _LAYOUT = "qqihh"

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_taken(descriptor: int) -> bool:
        wanted = struct.pack(_LAYOUT, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
        found = fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted)
        return bool(struct.unpack(_LAYOUT, found)[3] != fcntl.F_UNLCK)
