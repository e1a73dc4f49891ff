"""``python -m memory.sweeper FOLDER``: who ends what a killed daemon leaves behind?

Nobody else is there to do it when a daemon without a host is killed, or both at once. This process
waits for the end of the daemon, which is the end of a pipe, and then ends whoever writes its output
below the folder of the daemon's Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memory.clock import SystemClock
from memory.processes import end, writing_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.clock import Clock

_PAUSE_S = 0.2
_MOST_PAUSES = 50
_PATIENCE_S = 15.0


@contextlib.contextmanager
def sweeping(folder: Path) -> Iterator[None]:
    """Has everything that writes below a folder ended after the block, however that ends."""
    command = (sys.executable, "-P", "-m", "memory.sweeper", str(folder))
    # In a session of its own: what ends the daemon, a closed terminal say, must not end it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as sweeper:  # noqa: S603 - our own interpreter
        try:
            yield
        finally:
            if sweeper.stdin is not None:
                sweeper.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                sweeper.wait(_PATIENCE_S)


async def sweep(folder: Path, clock: Clock) -> bool:
    """Ends who writes below a folder; returns whether nobody is left."""
    for _ in range(_MOST_PAUSES):
        left = writing_below(folder)
        if not left:
            return True
        end(left)
        await clock.sleep(_PAUSE_S)
    return not writing_below(folder)


def main() -> int:
    """Waits for the end of standard input and sweeps; returns the exit code."""
    sys.stdin.buffer.read()
    return 0 if asyncio.run(sweep(Path(sys.argv[1]), SystemClock())) else 1


if __name__ == "__main__":
    sys.exit(main())
