"""``memory status``: what is the memory doing?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.commands.printing import print_answer
from memory.daemon_client import request
from memory.data_lock import is_held
from memory.errors import ConfigError, DaemonNotRunning, SnapshotMissing
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
    else:
        answer["config_error"] = _config_problem(options)[1]
    print_answer(options, answer, lambda: [status_markdown(answer)])
    return 0


def _without_daemon(options: Options) -> StatusPayload:
    from memory.disk import status  # noqa: PLC0415 - not needed beside a daemon

    try:
        answer = status(options.data, options.now_s)
    except SnapshotMissing:
        answer = blank_status("stopped")
    is_disabled, answer["config_error"] = _config_problem(options)
    if is_held(options.data):
        answer["state"] = "starting"
    elif is_disabled:
        answer["state"] = "disabled"
    return answer


def _config_problem(options: Options) -> tuple[bool, str]:
    """Returns whether a start would refuse the configuration, and why if it cannot be read."""
    from memory.embedding_config import disabled_reason  # noqa: PLC0415 - loads pydantic

    try:
        settings = options.settings()
        return options.config.exists() and disabled_reason(settings) is not None, ""
    except ConfigError as error:
        return True, str(error)
    except OSError as error:
        return True, f"{options.config}: {error.strerror or error}"
