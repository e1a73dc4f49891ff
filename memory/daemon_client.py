"""How does the command line talk to a running daemon?

The daemon writes ``daemon.json`` (pid, socket) into the data folder and listens on a Unix socket:
one request a connection, one JSON line each way. The address lives in a file because a data folder
may lie deeper than the 107 bytes a socket path may have.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory.atomic_file import open_at_once
from memory.errors import AnswerTooLarge, DaemonError, DaemonNotRunning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ADDRESS_NAME = "daemon.json"
_MAX_ADDRESS_BYTES = 4096
MAX_ANSWER_BYTES = 64 * 1024 * 1024
_RECEIVE_BYTES = 64 * 1024
CONNECT_TIMEOUT_S = 2.0
NO_DAEMON = "no daemon is running for this data folder; `memory start` starts one"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a daemon said it listens."""

    pid: int
    socket: str


def request(data_dir: Path, command: str, timeout_s: float, **args: object) -> Any:
    """Sends one request to the daemon of a data folder and returns the result.

    Args:
        data_dir: Folder that holds ``daemon.json``.
        command: One of those of ``actors.answers``, ``status`` or ``stop``.
        timeout_s: Longest silence of the daemon, seconds.
        args: Arguments of the command.

    Raises:
        DaemonNotRunning: nobody listens for this data folder.
        AnswerTooLarge: the answer is larger than ``MAX_ANSWER_BYTES``.
        DaemonError: the daemon did not answer in time, broke off, or refused.
    """
    address = running(data_dir)
    if address is None:
        raise DaemonNotRunning(NO_DAEMON)
    line = request_line(command, args)
    try:
        with _connect(address) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(line)
            answer = _receive_line(connection)
    except (ConnectionRefusedError, FileNotFoundError):
        raise DaemonNotRunning(NO_DAEMON) from None
    except TimeoutError:
        raise DaemonError(f"the daemon did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise DaemonError(f"the daemon broke off: {error.strerror or error}") from None
    return result_of(answer)


def is_running(data_dir: Path) -> bool:
    """Tells whether a daemon listens for this data folder."""
    address = running(data_dir)
    if address is None:
        return False
    try:
        _connect(address).close()
    except OSError:
        return False
    return True


def running(data_dir: Path) -> Address | None:
    """Returns the address of the daemon; None if there is none or its process is gone."""
    try:
        with open(data_dir / ADDRESS_NAME, "rb", opener=open_at_once) as file:
            written = json.loads(file.read(_MAX_ADDRESS_BYTES))
        address = Address(int(written["pid"]), str(written["socket"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return address if is_alive(address.pid) else None


def is_alive(pid: int) -> bool:
    """Tells whether a process exists, whoever owns it."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _connect(address: Address) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_TIMEOUT_S)
    try:
        connection.connect(address.socket)
    except BaseException:
        connection.close()
        raise
    return connection


def _receive_line(connection: socket.socket) -> bytes:
    received = bytearray()
    while not received.endswith(b"\n"):
        piece = connection.recv(_RECEIVE_BYTES)
        if not piece:
            raise DaemonError("the daemon closed the connection in the middle of its answer")
        received += piece
        if len(received) > MAX_ANSWER_BYTES:
            raise AnswerTooLarge(f"the daemon's answer is larger than {MAX_ANSWER_BYTES:,} bytes")
    return bytes(received)


def request_line(command: str, args: Mapping[str, object]) -> bytes:
    """Returns what is sent for a request."""
    return json.dumps({"command": command, **args}).encode() + b"\n"


def result_of(answer: bytes) -> Any:
    """Returns what an answer holds.

    Raises:
        DaemonError: the daemon refused, or the answer is not understood.
    """
    try:
        reply = json.loads(answer)
        succeeded = reply["ok"]
        if succeeded:
            return reply["result"]
        complaint = str(reply["error"])
    except (ValueError, KeyError, TypeError):
        raise DaemonError("the daemon's answer is not understood") from None
    raise DaemonError(complaint)
