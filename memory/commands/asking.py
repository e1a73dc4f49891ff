"""Who answers a command: the running daemon, or the index on disk?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from memory.daemon_client import request
from memory.errors import AnswerTooLarge, DaemonNotRunning
from memory.rendering import source_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory.commands import Options

_TIMEOUT_S = 30.0

Answer = TypeVar("Answer")


def ask(options: Options, from_disk: Callable[[], Answer], **args: object) -> tuple[Answer, str]:
    """Returns the answer to a command and a line that says where it came from.

    Args:
        options: How the command was called.
        from_disk: Answers without a daemon, and what is too large for its socket.
        args: What the daemon needs to know.

    Raises:
        DaemonError: the daemon broke off, or refused.
        StoreError: there is neither a daemon nor an index.
    """
    try:
        answer: Any = request(options.data, options.command, _TIMEOUT_S, **args)
    except (DaemonNotRunning, AnswerTooLarge):
        pass  # the journal has every change, so the disk knows what the daemon knows
    else:
        return answer, source_line("daemon", 0)
    # OpenBLAS, loaded with numpy and with FAISS, starts a thread a core: 0.1 s of processor time.
    # One answer has nothing to share out.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from memory.disk import index_age_s  # noqa: PLC0415 - not needed beside a daemon

    return from_disk(), source_line("disk", index_age_s(options.data, options.now_s))
