"""``memory mcp``: how does an agent of another program use this memory?"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memory.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.commands import Options
    from memory.tools import Tool

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8377
_PACKAGES = ("mcp", "starlette", "uvicorn")


def run(options: Options) -> int:
    """Serves the tools on stdin and stdout until they are closed, or over HTTP until it is ended.

    Raises:
        ConfigError: the extra is not installed, the configuration is wrong, or so is the token.
        OSError: the port is taken.
    """
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise ConfigError(
            f"memory mcp needs {', '.join(missing)}; run: pip install 'agent-memory-actors[mcp]',"
            " or `./cli.sh lint` in a checkout"
        )
    # One answer from disk has nothing to share out, see ``memory.commands.asking``.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tools = _tools(options)
    if options.http:
        return _serve_http(options, tools)
    from memory.mcp_server import serve_stdio, tool_server  # noqa: PLC0415 - needs the extra

    asyncio.run(serve_stdio(tool_server(tools)))
    return 0


def _tools(options: Options) -> Sequence[Tool]:
    from memory.local_access import LocalAccess  # noqa: PLC0415 - as the extra
    from memory.tools import memory_tools  # noqa: PLC0415 - as the extra

    settings = options.settings()
    workspace = options.find_workspace(settings.core.workspace)
    access = LocalAccess(
        options.data,
        settings,
        configured=workspace,
        named=workspace if options.workspace else None,
    )
    return memory_tools(access, default_limit=settings.memory.max_tool_memory_results)


def _serve_http(options: Options, tools: Sequence[Tool]) -> int:
    from memory.access_token import TOKEN_NAME, access_token  # noqa: PLC0415 - as the extra
    from memory.mcp_server import PATH, serve_http, tool_server  # noqa: PLC0415 - as the extra

    token = access_token(options.data)
    port = DEFAULT_PORT if options.port is None else options.port
    with _listening(port) as listener:
        address = f"http://{LOOPBACK}:{listener.getsockname()[1]}{PATH}"
        sys.stderr.write(f"memory: MCP at {address}\n")
        sys.stderr.write(f"memory: the bearer token is in {options.data / TOKEN_NAME}\n")
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        asyncio.run(serve_http(tool_server(tools), listener, token))
    return 0


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        reason = f"{os.strerror(error.errno or 0)}; --port names another one"
        raise OSError(error.errno, reason, f"{LOOPBACK}:{port}") from None
