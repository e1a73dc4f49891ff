"""How does the daemon answer the command line?

A Unix socket in a private folder: one request a connection, one JSON line each way. The address is
written to ``daemon.json`` in the data folder (see memory.daemon_client, the other side).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
from typing import TYPE_CHECKING, Any

from memory.atomic_file import replace_atomically
from memory.daemon_client import ADDRESS_NAME
from memory.errors import MemoryPluginError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from pathlib import Path

    Command = Callable[[Mapping[str, Any]], Awaitable[object]]

logger = logging.getLogger(__name__)

SOCKET_NAME = "control.sock"
MAX_REQUEST_BYTES = 4 * 1024 * 1024
REQUEST_DEADLINE_S = 10.0
_DISCARDED_BYTES = 64 * 1024
_ROOT = 0
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group at the other end of a Unix socket."""


class ControlServer:
    """Answers requests while the daemon lives.

    Args:
        folder: Private folder for the socket; its path must be short.
        data: Data folder that gets ``daemon.json``.
        commands: What each command does; its argument are the other keys of the request.
    """

    def __init__(self, folder: Path, data: Path, commands: Mapping[str, Command]) -> None:
        self._socket = folder / SOCKET_NAME
        self._address = data / ADDRESS_NAME
        self._commands = commands
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begins to listen; the data folder's lock must be held."""
        self._socket.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._serve, str(self._socket), limit=MAX_REQUEST_BYTES
        )
        self._socket.chmod(0o600)
        address = json.dumps({"pid": os.getpid(), "socket": str(self._socket)}).encode()
        replace_atomically(self._address, (address,))

    async def stop(self) -> None:
        """Stops listening and removes the address."""
        if self._server is not None:
            self._server.close()
        self._address.unlink(missing_ok=True)
        self._socket.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _is_trusted(writer):
            logger.warning("another account of this machine asked and was refused")
            writer.transport.abort()
            return
        try:
            async with asyncio.timeout(REQUEST_DEADLINE_S):
                line = await reader.readline()
            answer = await _unless_gone(self._answer(line), reader)
            writer.write(json.dumps(answer).encode() + b"\n")
            async with asyncio.timeout(REQUEST_DEADLINE_S):
                await writer.drain()
        except TimeoutError:
            logger.info("a client neither asks nor reads")
            writer.transport.abort()  # close would keep what the client does not read
        except (EOFError, OSError, ValueError) as error:
            logger.info("a request broke off: %s", type(error).__name__)
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, object]:
        try:
            request = json.loads(line)
            command = self._commands[request.pop("command")]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {"ok": False, "error": "this request is not understood"}
        try:
            return {"ok": True, "result": await command(request)}
        except (MemoryPluginError, KeyError, TypeError, ValueError) as error:
            return {"ok": False, "error": str(error)}
        except TimeoutError:
            return {"ok": False, "error": "the index is restarting, try again"}
        except OSError as error:
            return {"ok": False, "error": f"the disk refused: {error.strerror or error}"}
        except Exception:
            logger.exception("a request failed")
            return {"ok": False, "error": "internal error, see the daemon's log"}


def _is_trusted(writer: asyncio.StreamWriter) -> bool:
    """Tells whether the client runs as us or as root; where the system does not say, the modes do.

    The socket and its folder are ours alone already; this holds if somebody opens them up.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    connection = writer.get_extra_info("socket")
    given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _process, user, _group = _CREDENTIALS.unpack(given)
    return user in {_ROOT, os.geteuid()}


async def _end_of(reader: asyncio.StreamReader) -> None:
    """Waits for the end of what a client sends, and keeps nothing of it."""
    while await reader.read(_DISCARDED_BYTES):
        pass


async def _unless_gone(
    answering: Coroutine[Any, Any, dict[str, object]], reader: asyncio.StreamReader
) -> dict[str, object]:
    """Returns the answer; gives it up when the client closes the connection before.

    Else an event would be handed to somebody who no longer listens.

    Raises:
        EOFError: the client is gone.
    """
    answer = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(_end_of(reader))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise EOFError("the client did not wait for its answer")
        return answer.result()
    finally:
        for task in (answer, gone):
            task.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)
