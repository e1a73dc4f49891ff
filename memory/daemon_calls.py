"""How does a coroutine ask a running daemon?

As ``memory.daemon_client``, for programs that do more than one thing: a call that is cancelled
closes its connection, and the daemon gives the answer up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from memory.daemon_client import (
    CONNECT_TIMEOUT_S,
    MAX_ANSWER_BYTES,
    NO_DAEMON,
    request_line,
    result_of,
    running,
)
from memory.errors import DaemonError, DaemonNotRunning

if TYPE_CHECKING:
    from pathlib import Path


async def ask_daemon(data: Path, command: str, timeout_s: float, **args: object) -> Any:
    """Sends one request to the daemon of a data folder and returns the result.

    Args:
        data: Folder that holds ``daemon.json``.
        command: As for ``memory.daemon_client.request``.
        timeout_s: Longest time until the whole answer is there, seconds.
        args: Arguments of the command.

    Raises:
        DaemonNotRunning: nobody listens for this data folder.
        DaemonError: the daemon did not answer in time, broke off, or refused.
    """
    address = running(data)
    if address is None:
        raise DaemonNotRunning(NO_DAEMON)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(
                address.socket, limit=MAX_ANSWER_BYTES
            )
    except (ConnectionRefusedError, FileNotFoundError):
        raise DaemonNotRunning(NO_DAEMON) from None
    except OSError as error:
        raise DaemonError(f"the daemon cannot be reached: {type(error).__name__}") from None
    try:
        async with asyncio.timeout(timeout_s):
            writer.write(request_line(command, args))
            answer = await reader.readline()
    except TimeoutError:
        raise DaemonError(f"the daemon did not answer within {timeout_s:g} s") from None
    except (OSError, ValueError) as error:
        raise DaemonError(f"the daemon broke off: {error}") from None
    finally:
        writer.close()
    if not answer.endswith(b"\n"):
        raise DaemonError("the daemon closed the connection in the middle of its answer")
    return result_of(answer)
