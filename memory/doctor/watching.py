"""How are changes of the workspace noticed, and are there enough watches?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from memory.doctor.finding import note, ok, problem
from memory.mounts import deaf_mount, parse_mountinfo
from memory.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memory.doctor.finding import Finding

_WATCHER = "watcher"
_WATCHES = "inotify watches"
_INSTANCES = "inotify instances"
_INOTIFY = "anon_inode:inotify"
_NEEDED_INSTANCES = 2
_POLLED = "it is polled instead of being watched"


def watching_findings(root: Path, proc: Path) -> Iterator[Finding]:
    """Yields whether the kernel tells of changes, and whether its limits let it.

    Args:
        root: The workspace.
        proc: ``/proc``.
    """
    try:
        mounts = parse_mountinfo(os.fsdecode((proc / "self" / "mountinfo").read_bytes()))
    except OSError:
        yield note(_WATCHER, "this system tells nothing about its mounts; events are relied on")
        return
    if (mount := deaf_mount(os.path.realpath(root), mounts)) is not None:
        detail = f"{mount.point} is a network file system ({mount.kind}), so {_POLLED}"
        yield note(_WATCHER, detail)
        return
    yield ok(_WATCHER, "the kernel tells of every change (inotify)")
    yield from _of_watches(root, proc)
    yield from _of_instances(proc)


def _of_watches(root: Path, proc: Path) -> Iterator[Finding]:
    limit, folders = _limit(proc, "max_user_watches"), _num_folders(root)
    if limit is None:
        return
    detail = f"{counted(folders, 'folder')}, one for each, this user may have {limit:,}"
    if folders >= limit:
        yield problem(_WATCHES, f"{detail}, so {_POLLED}", _raised("max_user_watches", 2 * folders))
    else:
        yield ok(_WATCHES, detail)


def _of_instances(proc: Path) -> Iterator[Finding]:
    limit, used = _limit(proc, "max_user_instances"), _num_instances(proc)
    if limit is None:
        return
    detail = f"{used:,} are in use, this user may have {limit:,}"
    if used + _NEEDED_INSTANCES > limit:
        yield problem(
            _INSTANCES, f"{detail}, so {_POLLED}", _raised("max_user_instances", 2 * used)
        )
    else:
        yield ok(_INSTANCES, detail)


def _limit(proc: Path, name: str) -> int | None:
    try:
        return int((proc / "sys" / "fs" / "inotify" / name).read_text())
    except (OSError, ValueError):
        return None


def _raised(name: str, number: int) -> str:
    return f"sysctl fs.inotify.{name}={number}"


def _num_folders(root: Path) -> int:
    """Counts hidden ones too, which are watched as well."""
    return sum(1 for _folder in os.walk(root))


def _num_instances(proc: Path) -> int:
    """Counts those of this user's processes, as far as they may be looked at."""
    number = 0
    for process in proc.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            if process.stat().st_uid == os.getuid():
                number += sum(
                    str(file.readlink()) == _INOTIFY for file in (process / "fd").iterdir()
                )
        except OSError:
            continue  # it ended
    return number
