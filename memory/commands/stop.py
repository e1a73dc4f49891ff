"""``memory stop``: how does a person end the daemon?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memory.commands.printing import say
from memory.daemon_client import is_alive, request, running
from memory.errors import DaemonError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory.commands import Options

_ANSWER_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 60.0
_POLL_S = 0.1


def run(options: Options) -> int:
    """Asks the daemon to end and waits until its process is gone; never kills it.

    Raises:
        DaemonError: no daemon is running, or it is still there after a minute.
    """
    address = running(options.data)
    request(options.data, "stop", _ANSWER_TIMEOUT_S)
    if address is not None:
        _wait_for_end(address.pid, time.sleep)
    say("stopped")
    return 0


def _wait_for_end(pid: int, sleep: Callable[[float], None]) -> None:
    for _ in range(round(_END_TIMEOUT_S / _POLL_S)):
        if not is_alive(pid):
            return
        sleep(_POLL_S)
    raise DaemonError(
        f"the daemon (pid {pid}) accepted to stop but still runs after {_END_TIMEOUT_S:.0f} s;"
        " it may be writing the index, look at `memory status`"
    )
