"""Which processes belong together, and how are they ended without hitting a stranger?

A process is known by its id and the moment it began, because ids are given again. Read from
``/proc``; where there is none (macOS), nobody is found and only process groups can be ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PROC = Path("/proc")
_ZOMBIE = "Z"


@dataclass(frozen=True, slots=True)
class Process:
    """One process as the kernel describes it."""

    pid: int
    name: str
    """Of its program, at most 15 characters."""
    state: str
    """One letter; ``Z`` has ended and waits for its parent to ask."""
    parent: int
    session: int
    started: int
    """Clock ticks from the start of the machine."""

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.state != _ZOMBIE


def find(pid: int) -> Process | None:
    """Returns a process, or None if there is none of that id."""
    try:
        line = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold any of them itself.
    head, _, tail = line.rpartition(")")
    fields = tail.split()
    return Process(
        pid=pid,
        name=head.partition("(")[2],
        state=fields[0],
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
    )


def of_session(session: int, leader_started: int) -> tuple[Process, ...]:
    """Returns the living processes of a session besides its leader.

    Args:
        session: Id of the process that began it, which may have ended.
        leader_started: When that process began.

    Returns:
        Nothing if the id was given to another process since: its session is a stranger's.
    """
    leader = find(session)
    if leader is not None and leader.started != leader_started:
        return ()
    return tuple(
        process
        for process in _all()
        if process.session == session
        and process.pid != session
        and process.is_alive
        and process.started >= leader_started
    )


def below(pid: int) -> tuple[Process, ...]:
    """Returns the living descendants of a process, parents first."""
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    pending = [pid]
    while pending:
        mine = children.pop(pending.pop(), [])
        found += mine
        pending += [process.pid for process in mine]
    return tuple(process for process in found if process.is_alive)


def writing_below(folder: Path) -> tuple[Process, ...]:
    """Returns the living processes that have a file below a folder open for writing."""
    return tuple(process for process in _all() if process.is_alive and _writes(process, folder))


def end(processes: Iterable[Process], number: int = signal.SIGKILL) -> None:
    """Signals processes; one that ended, whatever has its id by now, is left alone."""
    for process in processes:
        with contextlib.suppress(OSError), _held(process.pid) as descriptor:
            # Looked at again while its id cannot be given to another one.
            now = find(process.pid)
            if now is not None and now.started == process.started:
                signal.pidfd_send_signal(descriptor, number)


@contextlib.contextmanager
def _held(pid: int) -> Iterator[int]:
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _writes(process: Process, folder: Path) -> bool:
    folder_of_process = _PROC / str(process.pid)
    with contextlib.suppress(OSError):  # it ended, or is somebody else's
        for descriptor in (folder_of_process / "fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed
                if descriptor.readlink().is_relative_to(folder):
                    info = (folder_of_process / "fdinfo" / descriptor.name).read_text()
                    if _is_for_writing(info):
                        return True
    return False


def _is_for_writing(info: str) -> bool:
    flags = next(line for line in info.splitlines() if line.startswith("flags:"))
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _all() -> Iterator[Process]:
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - a Path for each of them is not needed
    except OSError:
        return
    for name in names:
        if name.isdecimal() and (process := find(int(name))) is not None:
            yield process
