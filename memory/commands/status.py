"""``memory status``: what is the memory doing?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.commands.printing import print_answer
from memory.daemon_client import request
from memory.data_lock import is_held
from memory.errors import DaemonNotRunning, SnapshotMissing
from memory.rendering import status_markdown
from memory.status_payloads import blank_status

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.status_payloads import StatusPayload

_TIMEOUT_S = 10.0


def run(options: Options) -> int:
    """Prints the state; a memory that is not running is no failure."""
    answer: StatusPayload
    try:
        answer = request(options.data, "status", _TIMEOUT_S)
    except DaemonNotRunning:
        answer = _without_daemon(options)
    print_answer(options, answer, lambda: [status_markdown(answer)])
    return 0


def _without_daemon(options: Options) -> StatusPayload:
    from memory.disk import status  # noqa: PLC0415 - as above
    from memory.embedding_config import disabled_reason  # noqa: PLC0415 - not needed beside a daemon

    try:
        answer = status(options.data, options.now_s)
    except SnapshotMissing:
        answer = blank_status("stopped")
    if is_held(options.data):
        answer["state"] = "starting"
    elif options.config.exists() and disabled_reason(options.settings()):
        answer["state"] = "disabled"
    return answer
