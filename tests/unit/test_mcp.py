"""The tools over MCP, as a client of the official SDK uses them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
import numpy as np
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from memory import snapshot
from memory.access_token import TOKEN_NAME, access_token
from memory.analysis import Analyzer
from memory.chunk_limits import chunk_limits
from memory.cli import main
from memory.config import Settings
from memory.embedding_input import compose
from memory.globs import Globs
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.markdown import parse_file
from memory.mcp_server import MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_HEADER_BYTES
from memory.messages import FileUpdate
from memory.providers.factory import model_info, open_embedder
from memory.workspace import Workspace
from tests.unit.building import image_of
from tests.unit.fake_daemon import FakeDaemon, fake_daemon

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
MODEL = model_info("local", "all-minilm-l6-v2")
TOOLS = ["memory_search", "memory_get", "memory_save"]
ALICE = "# Alice Smith\n\nSenior PM at Acme.\n\n## Home\n\nShe lives in Atlanta.\n"


class Home(NamedTuple):
    """A configuration, a workspace with one file, and a data folder."""

    folder: Path
    data: Path

    def command(self, *arguments: str) -> list[str]:
        config = str(self.folder / "config.yml")
        return ["-m", "memory", "mcp", "--config", config, "--data", str(self.data), *arguments]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "config.yml").write_text("memory: {embeddings: {provider: local}}\n")
    (tmp_path / "data/workspace/wiki").mkdir(parents=True)
    (tmp_path / "data/workspace/wiki/alice.md").write_text(ALICE)
    return Home(tmp_path, tmp_path / "data/memory")


@pytest.fixture
def daemon(home: Home) -> Iterator[FakeDaemon]:
    with fake_daemon(home.data) as daemon:
        yield daemon


def index_workspace(home: Home) -> None:
    """Saves an index of the workspace, as a daemon that has ended left it."""
    root = home.folder / "data/workspace"
    settings = IndexSettings.of(Settings().memory, workspace=str(root))
    index = MemoryIndex(MODEL, Analyzer("english"), settings, epoch="e")
    source = Workspace(root, exclude=Globs()).read("wiki/alice.md")
    limits = chunk_limits(None, MODEL)
    parsed = parse_file(source, limits=limits)  # type: ignore[arg-type]
    missing = index.plan(parsed).missing
    vectors = open_embedder(MODEL).embed_documents([compose(chunk, limits) for chunk in missing])
    hashes = tuple(chunk.content_hash for chunk in missing)
    index.apply(FileUpdate("wiki/alice.md", parsed, hashes, np.asarray(vectors)))
    home.data.mkdir(parents=True)
    snapshot.write(home.data / "memory.msp", image_of(index), saved_at=0.0)


def over_stdio(home: Home) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=home.command(), env={"PYTHONPATH": str(ROOT)}, cwd=home.folder
    )


def text_of(result: Any) -> str:
    (block,) = result.content
    return str(block.text)


@pytest.mark.slow
async def test_a_client_lists_searches_reads_and_is_told_how_to_save_without_a_daemon(home: Home):
    index_workspace(home)

    async with Client(over_stdio(home)) as client:
        listed = (await client.list_tools()).tools
        found = await client.call_tool("memory_search", {"query": "where does Alice live?"})
        read = await client.call_tool("memory_get", {"path": "wiki/alice.md", "from": 5})
        outside = await client.call_tool("memory_get", {"path": "../../config.yml"})
        saved = await client.call_tool("memory_save", {"content": "Alice moved."})
        unknown = await client.call_tool("memory_delete", {})

    assert [tool.name for tool in listed] == TOOLS
    assert [tool.input_schema["required"] for tool in listed] == [["query"], ["path"], ["content"]]
    assert "`wiki/alice.md:5-7`" in text_of(found)
    assert found.structured_content["source"] == "disk"
    assert found.structured_content["hits"][0]["path"] == "wiki/alice.md"
    assert text_of(read).endswith("\n\n## Home\n\nShe lives in Atlanta.\n")
    assert outside.is_error
    assert "no such markdown file" in text_of(outside)
    assert not saved.is_error
    assert "`memory start`" in text_of(saved)
    assert unknown.is_error


@pytest.mark.slow
async def test_beside_a_daemon_the_tools_ask_it(home: Home, daemon: FakeDaemon):
    daemon.will_answer({"event_id": "ab12", "state": "queued"})
    daemon.answers.append(b'{"ok": false, "error": "wiki/x.md: no such file"}\n')

    async with Client(over_stdio(home)) as client:
        saved = await client.call_tool("memory_save", {"text": "Alice moved."})
        read = await client.call_tool("memory_get", {"path": "wiki/x.md"})

    assert saved.structured_content == {"event_id": "ab12", "state": "queued"}
    assert read.is_error
    assert daemon.requests == [
        {"command": "save", "content": "Alice moved."},
        {"command": "get", "path": "wiki/x.md", "start_line": 1, "num_lines": 400},
    ]


@pytest.mark.slow
def test_standard_output_carries_the_protocol_and_nothing_else(home: Home):
    """A configuration that complains, and a peer that talks nonsense."""
    (home.folder / "config.yml").write_text("memry: {}\nmemory: {}\n")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }

    done = subprocess.run(
        [sys.executable, *home.command()],
        input=f"{json.dumps(hello)}\nnonsense\n",
        capture_output=True,
        text=True,
        cwd=home.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=True,
    )

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert answers[0]["result"]["serverInfo"]["name"] == "memory"
    assert "memry" in done.stderr


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    """A server that listens on a port of its own."""
    process = subprocess.Popen(
        [sys.executable, *home.command("--http", "--port", "0")],
        cwd=home.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
    assert found, line
    yield found[0]
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert out == ""
    assert (home.data / TOKEN_NAME).read_text().strip() not in err


def client_with(home: Home, **headers: str) -> httpx2.AsyncClient:
    token = (home.data / TOKEN_NAME).read_text().strip()
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}", **headers})


PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.slow
async def test_over_http_the_token_opens_and_a_wrong_one_or_a_foreign_page_does_not(
    home: Home, daemon: FakeDaemon, url: str
):
    """The token alone does not help a page that resolved its own name to this machine."""
    daemon.will_answer({"event_id": "ab12", "state": "queued"})
    async with (
        client_with(home) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = (await client.list_tools()).tools
        saved = await client.call_tool("memory_save", {"content": "Alice moved."})

    assert [tool.name for tool in listed] == TOOLS
    assert saved.structured_content["event_id"] == "ab12"
    own = url.removesuffix("/mcp")
    tries = {
        "none": ({"Authorization": ""}, 401),
        "wrong": ({"Authorization": "Bearer wrong"}, 401),
        "no scheme": ({"Authorization": access_token(home.data)}, 401),
        "foreign origin": ({"Origin": "http://evil.example"}, 403),
        "null origin": ({"Origin": "null"}, 403),
        "other port": ({"Origin": "http://127.0.0.1:1"}, 403),
        "foreign host": ({"Host": "evil.example"}, 421),
        "own origin": ({"Origin": own}, 200),
    }
    statuses = {}
    for name, (headers, _status) in tries.items():
        accept = {"Accept": "application/json, text/event-stream"}
        async with client_with(home, **accept, **headers) as http:
            statuses[name] = (await http.post(url, json=PING)).status_code
    assert statuses == {name: status for name, (_headers, status) in tries.items()}


def refusal(port: int, *lines: str) -> int:
    """Returns the status of the answer to the beginning of a request, which is all that is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        begin = ("POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", *lines)
        connection.sendall("\r\n".join(begin).encode())
        return int(connection.recv(1000).split()[1])


@pytest.mark.slow
def test_a_request_that_is_too_large_or_one_too_many_is_turned_away(home: Home, url: str):
    """Others of this machine reach the port, so what they can make it hold is bounded."""
    port = int(url.rsplit(":", 1)[1].removesuffix("/mcp"))
    mine = f"Authorization: Bearer {access_token(home.data)}"
    large = (f"Content-Length: {MAX_BODY_BYTES + 1}", "Content-Type: application/json", "", "")

    assert refusal(port, mine, *large) == 413
    assert refusal(port, *large) == 401
    assert refusal(port, "X-Long: " + "x" * MAX_HEADER_BYTES) == 400
    with contextlib.ExitStack() as idle:
        for _number in range(MAX_CONNECTIONS):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert refusal(port, mine, "Content-Length: 0", "", "") == 503


@pytest.mark.slow
async def test_a_client_without_the_token_gets_no_session(home: Home, url: str):
    with pytest.RaisesGroup(MCPError, flatten_subgroups=True):
        async with (
            httpx2.AsyncClient(headers={"Authorization": "Bearer wrong"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await client.list_tools()


def test_a_missing_package_is_one_line_with_the_command(home: Home, monkeypatch, capsys):
    real = util.find_spec
    monkeypatch.setattr(
        "memory.commands.mcp.find_spec",
        lambda name: None if name == "mcp" else real(name),
    )

    assert main(home.command()[2:]) == 1
    assert capsys.readouterr().err == (
        "memory: memory mcp needs mcp; run: pip install 'agent-memory-actors[mcp]',"
        " or `./cli.sh lint` in a checkout\n"
    )


def test_a_port_that_is_taken_is_one_line(home: Home, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([*home.command()[2:], "--http", "--port", str(port)]) == 1

    error = capsys.readouterr().err
    assert error.startswith(f"memory: 127.0.0.1:{port}: Address already in use; --port")
    assert error.count("\n") == 1
