"""Where is the index of another model kept, before and after its turn?

In two folders beside ``memory.msp``, each with a snapshot and perhaps a journal, as the data folder
itself: ``next`` holds the index that is being built, ``previous`` the one it took over from. Every
function is for the owner of the data folder.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from memory.atomic_file import OsDisk
from memory.errors import StoreError
from memory.identity import differences, replaces
from memory.journal import JOURNAL_NAME
from memory.snapshot import SNAPSHOT_NAME, read_header

if TYPE_CHECKING:
    from pathlib import Path

    from memory.atomic_file import Disk
    from memory.identity import Identity

logger = logging.getLogger(__name__)

NEXT_NAME = "next"
PREVIOUS_NAME = "previous"
KEPT_S = 7 * 86_400
"""How long a replaced index is kept for whoever switches back, seconds."""
_OURS = (SNAPSHOT_NAME, JOURNAL_NAME, f".{SNAPSHOT_NAME}", f".{JOURNAL_NAME}")


def settle(
    data: Path, *, current: Identity, configured: Identity, now: float, disk: Disk | None = None
) -> bool:
    """Makes ``next`` hold what there is of the configured model, and nothing else.

    Args:
        data: The data folder.
        current: Of ``memory.msp``.
        configured: Of the index that is wanted.
        now: Unix time in seconds.
        disk: For tests.

    Returns:
        Whether another index than that of ``memory.msp`` is wanted.

    Raises:
        OSError: a snapshot cannot be read now, or a folder not be cleared.
    """
    disk = disk or OsDisk()
    following, previous = data / NEXT_NAME, data / PREVIOUS_NAME
    forget_previous(data, before=now - KEPT_S, disk=disk)
    found, kept = identity_in(following), identity_in(previous)
    if kept is not None and not differences(kept, current):
        # Only its second name, as it was not replaced after all; or nobody trusts its vectors.
        clear(previous, disk)
        kept = None
    if found is not None and not differences(found, configured) and replaces(found, current):
        return True
    if not differences(current, configured):
        if found is not None and kept is None:
            _rename(following, previous, disk)
        clear(following, disk)
        return False
    clear(following, disk)
    if kept is not None and not differences(kept, configured):
        _rename(previous, following, disk)
    return True


def reusable(data: Path, *, configured: Identity, now: float) -> Path | None:
    """Returns the folder of the index that a start would go on with, see ``settle``; reads only.

    Args:
        data: The data folder.
        configured: Of the index that is wanted.
        now: Unix time in seconds.

    Returns:
        None if everything would be embedded.

    Raises:
        OSError: a snapshot cannot be read now.
    """
    if not (data / SNAPSHOT_NAME).exists():
        return None
    current, following, previous = identity_in(data), data / NEXT_NAME, data / PREVIOUS_NAME
    found, kept = identity_in(following), identity_in(previous)
    is_wanted = found is not None and not differences(found, configured)
    if found is not None and is_wanted and (current is None or replaces(found, current)):
        return following
    if current is not None and not differences(current, configured):
        return data
    if current is None or kept is None or differences(kept, configured):
        return None
    return previous if previous.stat().st_mtime >= now - KEPT_S else None


def exchange(data: Path, disk: Disk | None = None) -> bool:
    """Puts the snapshot in ``next`` in the place of ``memory.msp``, which becomes ``previous``.

    Both hold all of their indexes, neither of which changes meanwhile. Killed at any moment, the
    name ``memory.msp`` stands for the old or for the new one, whole.

    Returns:
        Whether the new one also survives a power loss; else ``memory.msp`` is to be written again.

    Raises:
        OSError: the old one is in place, its journal perhaps not.
    """
    disk = disk or OsDisk()
    _keep_as_previous(data, disk)
    with suppress(FileNotFoundError):
        disk.remove(data / JOURNAL_NAME)
    # Else a power loss may bring it back beside the new snapshot, whose changes it would seem to
    # hold if only the dimension differs.
    disk.fsync_folder(data)
    disk.rename(data / NEXT_NAME / SNAPSHOT_NAME, data / SNAPSHOT_NAME)
    try:
        disk.fsync_folder(data)
    except OSError as error:
        logger.warning("%s may be lost with the power: %s", SNAPSHOT_NAME, error)
        return False
    return True


def adopt_next(data: Path, configured: Identity) -> bool:
    """Puts what was built of the configured model in the place of a ``memory.msp`` that is gone.

    Returns:
        Whether there was something.

    Raises:
        OSError: it cannot be read now, or the disk refused.
    """
    following, disk = data / NEXT_NAME, OsDisk()
    found = identity_in(following)
    if found is None or differences(found, configured):
        return False
    with suppress(FileNotFoundError):
        disk.remove(data / JOURNAL_NAME)
    disk.fsync_folder(data)
    disk.rename(following / SNAPSHOT_NAME, data / SNAPSHOT_NAME)
    with suppress(FileNotFoundError):
        disk.rename(following / JOURNAL_NAME, data / JOURNAL_NAME)
    disk.fsync_folder(data)
    return True


def forget_previous(data: Path, *, before: float | None = None, disk: Disk | None = None) -> bool:
    """Removes the replaced index; returns whether there was one.

    Args:
        data: The data folder.
        before: Only if it was replaced before this Unix time, seconds.
        disk: For tests.
    """
    previous = data / PREVIOUS_NAME
    try:
        if before is not None and previous.stat().st_mtime >= before:
            return False
        is_there = (previous / SNAPSHOT_NAME).exists()
        clear(previous, disk)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            logger.warning("%s cannot be removed: %s", previous, error)
        return False
    return is_there


def clear(folder: Path, disk: Disk | None = None) -> None:
    """Removes what an index writes, and the folder if it holds nothing else.

    Raises:
        OSError: a file cannot be removed.
    """
    disk = disk or OsDisk()
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(_OURS) and not path.is_dir():
            disk.remove(path)
    with suppress(OSError):  # something else is in it
        folder.rmdir()


def identity_in(folder: Path) -> Identity | None:
    """Returns the identity of the snapshot in a folder; None if there is none to be read.

    Raises:
        OSError: the system cannot read it now.
    """
    try:
        return read_header(folder / SNAPSHOT_NAME).info.identity
    except StoreError:
        return None


def _keep_as_previous(data: Path, disk: Disk) -> None:
    previous = data / PREVIOUS_NAME
    try:
        clear(previous, disk)
        previous.mkdir(mode=0o700, exist_ok=True)
        disk.link(data / SNAPSHOT_NAME, previous / SNAPSHOT_NAME)
        disk.fsync_folder(previous)
    except OSError as error:
        # Not every file system has links. It only costs whoever switches back.
        logger.info("the replaced index is not kept: %s", error)


def _rename(source: Path, target: Path, disk: Disk) -> None:
    try:
        clear(target, disk)
        disk.rename(source, target)
        disk.fsync_folder(source.parent)
    except OSError as error:
        logger.warning("%s cannot become %s: %s", source, target.name, error)
