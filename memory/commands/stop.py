"""``memory stop``: how does a person end the daemon?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memory.commands.printing import say
from memory.daemon_client import request, running
from memory.data_lock import is_held
from memory.errors import DaemonError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memory.commands import Options

_ANSWER_TIMEOUT_S = 10.0
_TIMEOUT_S = 60.0
_POLL_S = 0.1


def run(options: Options) -> int:
    """Asks the daemon to end and waits until its lock is free; never kills it.

    One that is still starting is waited for: it listens once Ray runs.

    Raises:
        DaemonError: no daemon is running, or it is still there after a minute.
    """
    _wait_until(lambda: running(options.data) is not None or not is_held(options.data), time.sleep)
    request(options.data, "stop", _ANSWER_TIMEOUT_S)
    _wait_for_end(options.data, time.sleep)
    say("stopped")
    return 0


def _wait_for_end(data: Path, sleep: Callable[[float], None]) -> None:
    # The kernel frees the lock with the process, whether or not its parent has noticed the end.
    if not _wait_until(lambda: not is_held(data), sleep):
        raise DaemonError(
            f"the daemon accepted to stop but still runs after {_TIMEOUT_S:.0f} s;"
            " it may be writing the index, look at `memory status`"
        )


def _wait_until(condition: Callable[[], bool], sleep: Callable[[float], None]) -> bool:
    for _ in range(round(_TIMEOUT_S / _POLL_S)):
        if condition():
            return True
        sleep(_POLL_S)
    return condition()
