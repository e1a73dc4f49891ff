"""How does a daemon behave that another program started as its child?

Its standard input brings the configuration and then nothing more, until the host is gone; then the
daemon saves and ends. It leads a session of its own, of which nothing may be left.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from memory.errors import ConfigError
from memory.processes import end, find, of_session

if TYPE_CHECKING:
    from collections.abc import Iterator

GRACE_S = 30.0
"""How long saving may take after the host's death, seconds."""
_LOOK_S = 1.0
_STDIN = 0
_FAILED = 1


def received_config() -> dict[str, Any] | None:
    """Returns the configuration that the host sends first; None if it is in the file.

    Raises:
        ConfigError: there is none, because nobody started this as a child.
    """
    try:
        config = json.loads(sys.stdin.buffer.readline())
    except ValueError:
        raise ConfigError("--hosted is for programs that start the daemon as their child") from None
    return config if isinstance(config, dict) else None


@contextlib.contextmanager
def tied_to_host() -> Iterator[None]:
    """Ends this process when the host is gone, and what is left of its session in any case."""
    host = os.getppid()
    threading.Thread(target=_outlive_briefly, args=(host,), name="host", daemon=True).start()
    try:
        yield
    finally:
        end_session()


def end_session() -> None:
    """Kills every other process of the session that this one leads; nothing if it leads none."""
    itself = find(os.getpid())
    if itself is not None and itself.session == itself.pid:
        end(of_session(itself.pid, itself.started))


def _outlive_briefly(host: int) -> None:
    _wait_for_end(host)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_S)
    end_session()
    os._exit(_FAILED)


def _wait_for_end(host: int) -> None:
    """Returns when the pipe is closed, or this process has another parent.

    The host's death is seen by both, unless a copy of the host that it forked holds the pipe. That
    the kernel signals the death of a parent (``PR_SET_PDEATHSIG``) would be no use: it means the
    thread that started the child.
    """
    while os.getppid() == host:
        readable, _, _ = select.select([_STDIN], [], [], _LOOK_S)
        if readable and not os.read(_STDIN, 4096):
            return
