"""Does a key stand anywhere but in the configuration (FAULTS 89, invariant I7)?

Every command runs against a provider that refuses the key and says it again in its answer, as
OpenAI's does; then everything that was printed, written, logged or answered is searched for any
eight characters of it that follow each other.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from memory import snapshot
from memory.analysis import Analyzer
from memory.cli import main
from memory.config import load
from memory.embedding_config import configured_model
from memory.identity import write_embedding_json
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from tests.doubles import HashEmbedder
from tests.embedding_server import CANARY, EmbeddingServer, Fault
from tests.unit.building import image_of, parsed, put

ROOT = Path(__file__).parents[2]
RUNS = {CANARY[start : start + 8] for start in range(len(CANARY) - 7)}
CONFIG = """
inference:
  apiKeys: {{openai: "{key}"}}
  customProviders:
    gateway: {{type: openai-compatible, baseUrl: "{url}/v1", apiKey: "{key}"}}
  defaultModel: gateway/m
memory: {{embeddings: {{provider: gateway, model: m}}}}
"""
COMMANDS = [
    *(["search", "ships"], ["search", "ships", "--explain"], ["list"], ["status"], ["events"]),
    *(["show", "a.md"], ["context", "ships"], ["check"], ["check", "--rebuild-compare"]),
    *(["doctor"], ["doctor", "--offline"], ["eval"], ["rebuild", "--dry-run"], ["save", "fact"]),
]


@pytest.fixture
def server():
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def home(tmp_path, server, monkeypatch):
    """An index of one file, of a model behind a gateway that echoes the key it refuses."""
    server.outage = Fault("echo")
    (tmp_path / "config.yml").write_text(CONFIG.format(key=CANARY, url=server.url))
    root, data = tmp_path / "workspace", tmp_path / "data" / "memory"
    root.mkdir()
    (root / "a.md").write_text("# Ships\n\nShips sailed.\n")
    (root / "new.md").write_text("# New\n")
    data.mkdir(parents=True)
    model, _access = configured_model(load(tmp_path / "config.yml"))
    index = MemoryIndex(
        replace(model, dim=16), Analyzer("english"), IndexSettings(workspace=str(root)), epoch="e"
    )
    put(index, HashEmbedder(), parsed("a.md", ["Ships sailed."]))
    snapshot.write(data / "memory.msp", image_of(index), saved_at=1.0)
    write_embedding_json(data, index.identity)
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path))
    return tmp_path


def leaks(text):
    return [run for run in RUNS if run in text]


@pytest.mark.slow
def test_no_command_prints_logs_or_writes_the_key(home, server, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    for command in COMMANDS:
        for form in ([], ["--json"]):
            with contextlib.suppress(SystemExit):  # not every command has --json
                main([*command, *form])

    shown = capsys.readouterr()
    written = [path for path in (home / "data").rglob("*") if path.is_file()]
    assert server.num_requests > 3
    assert "401" in shown.out + shown.err
    assert leaks(shown.out) == leaks(shown.err) == leaks(caplog.text) == []
    assert {path.name for path in written} >= {"memory.msp", "embedding.json"}
    assert [path for path in written if leaks(path.read_bytes().decode("latin-1"))] == []


@pytest.mark.slow
def test_no_answer_over_mcp_holds_the_key_nor_does_the_list_of_processes(home):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    calls = [
        ("initialize", hello | {"clientInfo": {"name": "test", "version": "1"}}),
        ("tools/call", {"name": "memory_search", "arguments": {"query": "ships"}}),
        ("tools/call", {"name": "memory_save", "arguments": {"content": "fact"}}),
        ("tools/call", {"name": "memory_get", "arguments": {"path": "../config.yml"}}),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "memory", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        answers = []
        for number, (method, params) in enumerate(calls):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        arguments = Path(f"/proc/{process.pid}/cmdline")
        seen = arguments.read_text() if arguments.exists() else ""
        rest, told = process.communicate(timeout=30)

    assert "401" in answers[1]
    assert leaks("".join((*answers, seen, rest, told))) == []
