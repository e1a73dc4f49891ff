"""How does a client wait until a running daemon has embedded every file anew?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.daemon_calls import ask_daemon
from memory.daemon_client import is_running
from memory.errors import DaemonError, DaemonNotRunning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memory.clock import Clock
    from memory.payloads import RebuildBegunPayload, RebuildPayload
    from memory.status_payloads import StatusPayload

POLL_S = 0.5
ANSWER_S = 150.0
"""Longest answer: the keeper may be saving, or restarting."""
GO_ON = "`memory rebuild` or `memory start` go on with it, and nothing is paid twice"
"""What a person does about a rebuild that was begun."""


async def follow_rebuild(
    data: Path, clock: Clock, show: Callable[[StatusPayload], None]
) -> RebuildPayload:
    """Has a daemon embed every file anew, and returns what that took, once the new index answers.

    Cancelling it leaves the daemon at work.

    Args:
        data: The data folder.
        clock: For the pauses between two looks.
        show: Is given each status.

    Raises:
        DaemonNotRunning: nobody listens for this data folder.
        DaemonError: the daemon ended, refused, or gave the rebuild up.
    """
    before: StatusPayload = await ask_daemon(data, "status", ANSWER_S)
    begun: RebuildBegunPayload = await ask_daemon(data, "rebuild", ANSWER_S)
    try:
        while not await ask_daemon(data, "is_rebuilt", ANSWER_S, rebuild=begun["rebuild"]):
            show(await ask_daemon(data, "status", ANSWER_S))
            await clock.sleep(POLL_S)
        return rebuilt(begun, before, await ask_daemon(data, "status", ANSWER_S))
    except DaemonError as error:
        if isinstance(error, DaemonNotRunning) or not is_running(data):
            ended = f"the daemon ended before the rebuild was complete; {GO_ON}"
            raise DaemonError(ended) from None
        raise


def rebuilt(
    begun: RebuildBegunPayload, before: StatusPayload, after: StatusPayload
) -> RebuildPayload:
    """Returns what a rebuild took.

    Args:
        begun: What began it.
        before: The status before that.
        after: The status at the end.
    """
    return {
        "begun": begun["begun"],
        "resumed": begun["resumed"],
        "files": after["files"],
        "chunks": after["chunks"],
        "embedded_inputs": max(0, after["embedded_inputs"] - before["embedded_inputs"]),
        "tokens": max(0, after["tokens"] - before["tokens"]),
        "failed": [file["path"] for file in after["failed"]],
    }


def progress_line(status: StatusPayload) -> str:
    """Returns how far a rebuild is."""
    building = status["building"]
    if building is None:
        return f"{status['pending']:,} files are pending"
    most = max(building["files"], status["files"])
    if building["files"] >= most and not status["pending"]:
        return f"{most:,} files are embedded, the new index gets ready to answer"
    return f"{building['files']:,} of {most:,} files are embedded anew"


def trouble(status: StatusPayload) -> str:
    """Returns what keeps a rebuild from going on, in one line; empty if nothing does."""
    calls = status["model_calls"]
    if status["state"] == "workspace_missing":
        return "the workspace is missing; it goes on once that is back"
    if status["disk_error"]:
        return f"{status['disk_error']}; it is tried again"
    if calls["breaker"] != "closed":
        return f"{calls['last_error']}; it goes on once the model answers again"
    for failed in status["failed"]:
        return f"{failed['path']} failed and is tried again: {failed['reason']}"
    return ""
