"""The daemon's socket, asked by the real client."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import stat
import tempfile
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actors import control
from actors.control import MAX_REQUEST_BYTES, SOCKET_NAME, ControlServer
from memory.daemon_client import ADDRESS_NAME, request, running
from memory.errors import DaemonError, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mem-") as short:
        yield Path(short)


@pytest.fixture
async def data(folder: Path, tmp_path: Path) -> AsyncIterator[Path]:
    async def echo(words: Mapping[str, Any]) -> object:
        return dict(words)

    async def refuse(_words: Mapping[str, Any]) -> object:
        raise WorkspaceError("a.md", "not in the index")

    async def break_down(_words: Mapping[str, Any]) -> object:
        raise ZeroDivisionError("a detail nobody should see")

    async def hang(_words: Mapping[str, Any]) -> object:
        raise TimeoutError

    async def fill_the_disk(_words: Mapping[str, Any]) -> object:
        raise OSError(errno.ENOSPC, "No space left on device", "a detail")

    commands = {
        "echo": echo,
        "refuse": refuse,
        "break": break_down,
        "hang": hang,
        "write": fill_the_disk,
    }
    server = ControlServer(folder, tmp_path, commands)
    await server.start()
    yield tmp_path
    await server.stop()
    assert not (tmp_path / ADDRESS_NAME).exists()
    assert not (folder / SOCKET_NAME).exists()


async def asked(data: Path, command: str, **words: object) -> Any:
    return await asyncio.to_thread(request, data, command, 5.0, **words)


async def raw(folder: Path, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_NAME))
    writer.write(sent)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def pieces(client: socket.socket) -> AsyncIterator[bytes]:
    """Receives until the connection is closed or broken."""
    with contextlib.suppress(ConnectionError):
        while piece := await asyncio.get_running_loop().sock_recv(client, 1_000_000):
            yield piece


async def test_an_answer_comes_back_whole_and_only_its_owner_may_ask(data: Path, folder: Path):
    text = "\u00e9\u2028\U0001f600" * 1000

    assert await asked(data, "echo", query=text) == {"query": text}
    assert stat.S_IMODE((folder / SOCKET_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((data / ADDRESS_NAME).stat().st_mode) == 0o600


async def test_many_may_ask_at_once(data: Path):
    answers = await asyncio.gather(*(asked(data, "echo", n=number) for number in range(20)))

    assert answers == [{"n": number} for number in range(20)]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("refuse", "a.md: not in the index"),
        ("break", "internal error, see the daemon's log"),
        ("hang", "the index is restarting, try again"),
        ("write", "the disk refused: No space left on device"),
        ("unknown", "this request is not understood"),
    ],
)
async def test_an_error_is_one_line_without_details(data: Path, command: str, complaint: str):
    with pytest.raises(DaemonError) as caught:
        await asked(data, command)

    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    "sent",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"\xff\n",
        b'{"command": 1}\n',
        b'{"command": []}\n',
        b"[" * 100_000 + b"\n",
        b'{"command": "echo"',
    ],
)
async def test_nonsense_is_answered_and_the_server_lives_on(data: Path, folder: Path, sent: bytes):
    answer = json.loads(await raw(folder, sent))

    assert answer == {"ok": False, "error": "this request is not understood"}
    assert await asked(data, "echo") == {}


async def test_a_giant_request_and_a_lost_client_do_no_harm(data: Path, folder: Path):
    assert await raw(folder, b"x" * (MAX_REQUEST_BYTES + 10)) == b""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / SOCKET_NAME))

    assert await asked(data, "echo") == {}


async def test_a_client_that_never_asks_is_left_after_a_while(
    data: Path, folder: Path, monkeypatch
):
    monkeypatch.setattr(control, "REQUEST_DEADLINE_S", 0.05)
    reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_NAME))
    writer.write(b'{"command": ')

    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
    assert await asked(data, "echo") == {}


async def test_a_client_that_never_reads_is_left_after_a_while(
    data: Path, folder: Path, monkeypatch
):
    """Else its answer, which may be megabytes, would stay in memory."""
    monkeypatch.setattr(control, "REQUEST_DEADLINE_S", 0.2)
    others = asyncio.all_tasks()
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, str(folder / SOCKET_NAME))
        sent = json.dumps({"command": "echo", "query": "x" * 2_000_000}).encode() + b"\n"
        await loop.sock_sendall(client, sent)
        _done, waiting = await asyncio.wait(asyncio.all_tasks() - others, timeout=5)
        assert not waiting
        async with asyncio.timeout(5):
            received = sum([len(piece) async for piece in pieces(client)])
    assert received < 2_000_000

    assert await asked(data, "echo") == {}


async def test_another_account_is_refused_even_where_the_socket_is_open_to_it(
    data: Path, folder: Path, monkeypatch
):
    """Nobody but root could play another account, so the server believes it is one."""
    monkeypatch.setattr(control.os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr(control, "_ROOT", -1)

    with contextlib.suppress(ConnectionError):
        assert await raw(folder, b'{"command": "echo"}\n') == b""
    monkeypatch.undo()
    assert await asked(data, "echo") == {}


async def test_what_a_client_sends_after_its_request_is_not_kept(folder: Path, tmp_path: Path):
    """Else 32 MB of it would wait in memory for the answer."""
    received = asyncio.Event()

    async def wait(_words: Mapping[str, Any]) -> object:
        await received.wait()
        return tracemalloc.get_traced_memory()[1]

    server = ControlServer(folder, tmp_path, {"wait": wait})
    await server.start()
    reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_NAME))
    tracemalloc.start()
    writer.write(b'{"command": "wait"}\n')
    for _piece in range(32):
        writer.write(b"x" * 1_000_000)
        await writer.drain()
    received.set()
    peak = json.loads(await reader.readline())["result"]
    tracemalloc.stop()
    writer.close()
    await server.stop()

    assert peak < 16_000_000


async def test_the_address_names_this_process_and_replaces_an_old_one(folder: Path, tmp_path: Path):
    """What a killed daemon left behind neither hinders nor misleads."""
    (tmp_path / ADDRESS_NAME).write_text('{"pid": 1, "socket": "elsewhere"}')
    (folder / SOCKET_NAME).touch()
    server = ControlServer(folder, tmp_path, {})
    await server.start()

    address = running(tmp_path)
    await server.stop()
    await server.stop()

    assert address is not None
    assert address.pid == os.getpid()
    assert address.socket == str(folder / SOCKET_NAME)
