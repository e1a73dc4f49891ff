"""``python -m memory.sweeper FOLDER PID``: who ends what a killed daemon leaves behind?

Nobody else is there to do it when a daemon without a host is killed, or both at once. This process
waits for the end of the daemon, which is the end of a pipe, and then ends whoever has a file open
for writing below the folder of the daemon's Ray session, as all of its processes have: their logs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memory.clock import SystemClock
from memory.processes import end, writing_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.clock import Clock
    from memory.processes import Process

_PAUSE_S = 0.2
_MOST_PAUSES = 50
_PATIENCE_S = 15.0


@contextlib.contextmanager
def sweeping(folder: Path) -> Iterator[None]:
    """Has every process of this process's Ray ended after the block, however that ends.

    Args:
        folder: Where Ray has its sessions, whose names end with the process that began them.
    """
    ours = (str(folder), str(os.getpid()))
    command = (sys.executable, "-P", "-m", "memory.sweeper", *ours)
    # In a session of its own: what ends the daemon, a closed terminal say, must not end it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as sweeper:  # noqa: S603 - our own interpreter
        try:
            yield
        finally:
            if sweeper.stdin is not None:
                sweeper.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                sweeper.wait(_PATIENCE_S)


async def sweep(folder: Path, daemon: int, clock: Clock) -> bool:
    """Ends who writes in the sessions of a daemon; returns whether nobody is left.

    The next daemon, which may have come by now, has a session of its own.
    """
    for _ in range(_MOST_PAUSES):
        left = _left(folder, daemon)
        if not left:
            return True
        end(left)
        await clock.sleep(_PAUSE_S)
    return not _left(folder, daemon)


def _left(folder: Path, daemon: int) -> list[Process]:
    sessions = folder.resolve().glob(f"session_*_{daemon}")
    # The daemon writes there itself, and may still be on its way to its own end.
    return [
        process
        for session in sessions
        for process in writing_below(session)
        if process.pid != daemon
    ]


def main() -> int:
    """Waits for the end of standard input and sweeps; returns the exit code."""
    sys.stdin.buffer.read()
    return 0 if asyncio.run(sweep(Path(sys.argv[1]), int(sys.argv[2]), SystemClock())) else 1


if __name__ == "__main__":
    sys.exit(main())
