"""Who may write to a data folder? One daemon at a time (SPEC P4); readers need no lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
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
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            raise LockHeld(str(folder), f"process {owner or 'unknown'}") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Tells whether a daemon owns the folder, also while it is still starting; writes nothing."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
