"""How is an index begun for which every file is embedded anew?

As an empty one in ``next/`` whose identity has the next number (``Identity.rebuild``). From then on
it is built, resumed and put in its place as that of another model, see ``succession``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from memory.index_folders import NEXT_NAME, clear

if TYPE_CHECKING:
    from pathlib import Path

    from memory.atomic_file import Disk
    from memory.index_opening import Kept, Opener
    from memory.providers.base import ModelInfo


def begin_rebuild(
    opener: Opener,
    data: Path,
    *,
    current: Kept,
    model: ModelInfo,
    now: float,
    disk: Disk | None = None,
) -> Kept:
    """Returns an empty index that is on disk already, so that a kill does not forget it.

    Killed before that, there is only the old one.

    Args:
        opener: Opens indexes.
        data: The data folder, whose lock is held.
        current: What ``memory.msp`` stands for; untouched.
        model: Its model, which is the configured one.
        now: Unix time, seconds.
        disk: For tests.

    Raises:
        OSError: the disk refused; nothing was begun.
    """
    following = data / NEXT_NAME
    clear(following, disk)
    number = current.index.identity.rebuild + 1
    begun = opener.next(data, model, f"{current.index.epoch}.rebuild-{number}", rebuild=number)
    try:
        begun.storage.save(now)
    except OSError:
        with suppress(OSError):
            clear(following, disk)
        raise
    return begun
