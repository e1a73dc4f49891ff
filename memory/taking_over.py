"""May the index of another model take over, and how does it get the place of the old one?"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING

from memory.index_folders import exchange, forget_previous
from memory.index_opening import Kept
from memory.snapshot import SNAPSHOT_NAME, forget_set_aside
from memory.storage import IndexStorage

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from memory.atomic_file import Disk

logger = logging.getLogger(__name__)

MAX_MISSING_SHARE = 0.05
"""Of the files, how many the new index may lack when it takes over in spite of failures."""
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_ready(new: Kept, old: Kept, is_urgent: bool) -> bool:  # noqa: FBT001 - as its callers say it
    """Tells whether nobody would miss the old index.

    Args:
        new: Of the configured model.
        old: Answers meanwhile.
        is_urgent: Scores need not be calibrated, and few files may be missing, or a single one.
    """
    known = new.index.paths()
    num_missing = len(old.index.paths() - known)
    if not is_urgent:
        return not num_missing and (not known or new.index.is_calibrated)
    most = max(1, int(MAX_MISSING_SHARE * len(known))) if known else 0
    return num_missing <= most


def is_saved(kept: Kept) -> bool:
    """Tells whether its snapshot holds all of an index."""
    return kept.storage.status().saved_revision == kept.index.revision


def saved(kept: Kept, data: Path, now: float, helper: Executor | None = None) -> int:
    """Saves an index whole and returns its revision; a full disk takes what nobody needs.

    Args:
        kept: What to save.
        data: The data folder.
        now: Unix time, seconds.
        helper: See ``snapshot.write``.

    Raises:
        OSError: see IndexStorage.save.
    """
    try:
        return kept.storage.save(now, helper)
    except OSError as error:
        if error.errno not in _DISK_FULL or not _makes_room(data):
            raise
    logger.warning("the disk is full; the replaced index and unreadable ones were removed")
    return kept.storage.save(now, helper)


def _makes_room(data: Path) -> bool:
    """Removes what nobody needs to go on; returns whether there was anything."""
    found = forget_previous(data), forget_set_aside(data / SNAPSHOT_NAME)
    return any(found)


def moved(new: Kept, old: Kept, data: Path, disk: Disk | None = None) -> Kept:
    """Returns the new index in the place of the old one.

    Args:
        new: Saved whole; it and the old one do not change meanwhile.
        old: Saved whole.
        data: The data folder.
        disk: For tests.

    Raises:
        OSError: the disk refused. Both need to be saved again.
    """
    try:
        is_durable = exchange(data, disk)
    except OSError:
        # Perhaps without a journal.
        old.storage.stop_logging()
        new.storage.stop_logging()
        raise
    before = new.storage.status()
    storage = IndexStorage(
        data,
        new.index,
        saved_revision=before.saved_revision,
        saved_at=before.saved_at,
        complete=is_durable,
        disk=disk,
    )
    # Somebody may wait for it to make the next change.
    storage.changing = new.storage.changing
    return Kept(new.index, storage)
