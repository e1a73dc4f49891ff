"""Can anything that somebody asks or configures break who is asked?"""

from __future__ import annotations

import asyncio
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import memory
from actors.control import ControlServer
from actors.ray_config import RAY_CONFIG_NAME, load_ray_config, packaged_ray_config
from memory.agent_run.chat import ToolCall
from memory.agent_run.files import RunFiles
from memory.agent_run.toolbox import Toolbox
from memory.config import MemorySettings, load
from memory.errors import ConfigError, WorkspaceError
from memory.excerpts import read_excerpt
from memory.globs import Globs
from memory.messages import Query
from memory.prompt_parts import prompt_parts
from memory.tools import memory_tools
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, new_index, parsed, put

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TEXT = st.text(st.characters(), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
PATH_PIECES = ["a.md", "in", "out", "..", ".", "", "~", "link", "secret.md", "%2e%2e", "\0", "\\"]
PATHS = st.lists(st.sampled_from(PATH_PIECES) | TEXT, max_size=6).map("/".join)
YAML = st.text(alphabet="ab:1.-[]{},&*!<|>?'\"#%@ \n\t", max_size=80)
TAGS = ["!!int", "!!float", "!!bool", "!!timestamp", "!!binary", "!!set", "!!omap", "!!null", "!!x"]
SECRET = "sk-canary-outside"


CONFIG = Path(memory.__file__).with_name("config_template.yml").read_text(encoding="utf-8")


@cache
def home(_whose=""):
    """A workspace beside a secret, with links that lead there."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    root = folder / "workspace"
    (root / "in").mkdir(parents=True)
    (root / "a.md").write_text("inside")
    (root / "in" / "a.md").write_text("inside")
    (folder / "out").mkdir()
    for secret in (folder / "secret.md", folder / "out" / "secret.md"):
        secret.write_text(SECRET)
    (root / "link").symlink_to(folder / "out")
    (root / "secret.md").symlink_to(folder / "secret.md")
    return root


class Access:
    """A memory that answers with what it was asked."""

    async def search(self, query, limit):
        assert isinstance(query, str)
        assert 1 <= limit <= 50
        empty: dict[str, Any] = {"query": query, "source": "daemon", "age_s": 0.0, "hits": []}
        return empty | {"degraded": "", "ready": True, "pending": 0, "threshold": None}

    async def get(self, path, start_line, num_lines):
        return read_excerpt(
            home(), MemorySettings(), path, start_line=start_line, num_lines=num_lines
        )

    async def save(self, content):
        assert 0 < len(content) <= 100_000
        return {"event_id": "e", "state": "queued"}


NAMES = ["query", "q", "limit", "path", "from", "to", "lines", "content", "text", "start", "end"]
ARGUMENTS = st.dictionaries(st.sampled_from(NAMES) | TEXT, JSON | PATHS, max_size=5)


@given(st.sampled_from([0, 1, 2]), ARGUMENTS | JSON | ARGUMENTS.map(json.dumps))
@settings(max_examples=100)
def test_a_tool_answers_whatever_it_is_called_with(number, arguments):
    answer = asyncio.run(memory_tools(Access())[number](arguments))

    assert "see the log" not in answer.text
    assert SECRET not in answer.text
    json.dumps(dict(answer.data)).encode()
    answer.text.encode()


@given(PATHS)
@settings(max_examples=100)
def test_no_path_leads_out_of_the_workspace(path):
    try:
        found = read_excerpt(home(), MemorySettings(), path)
    except WorkspaceError:
        return
    assert found["text"] == "inside"


@given(
    st.sampled_from(["fs_read", "fs_list", "fs_write", "memory_search"]),
    st.fixed_dictionaries(
        {}, optional={"path": PATHS, "content": TEXT, "from": JSON, "query": JSON}
    )
    | JSON,
)
@settings(max_examples=100)
def test_a_run_answers_whatever_its_model_calls(name, arguments):
    root = home("run")
    files = RunFiles(root, writable=Globs(["*"]), exclude=Globs(), max_file_bytes=1000)
    names = ("fs_read", "fs_list", "fs_write", "memory_search")
    toolbox = Toolbox(names, files, lambda query, limit: "")
    answer = toolbox.answer(ToolCall("id", name, json.dumps(arguments)))

    assert SECRET not in answer
    outside = [
        path.name for folder in (root.parent, root.parent / "out") for path in folder.iterdir()
    ]
    assert sorted(outside) == ["out", "secret.md", "secret.md", "workspace"]
    assert (root.parent / "out" / "secret.md").read_text() == SECRET


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=100)
def test_a_request_at_the_socket_is_answered(line):
    async def echo(words: Mapping[str, Any]) -> object:
        return {"limit": int(words["limit"]), "query": str(words["query"])}

    server = ControlServer(Path(), Path(), {"search": echo})

    answer = asyncio.run(server._answer(line))
    assert answer["ok"] in {True, False}
    assert json.loads(json.dumps(answer))


def edited_lines(template, pieces):
    """Returns a template with some of its lines replaced."""
    lines = template.split("\n")
    for place, piece in pieces:
        lines[place % len(lines)] = piece
    return "\n".join(lines)


TAGGED = st.tuples(st.sampled_from(["a", "core", "memory"]), st.sampled_from(TAGS), YAML).map(
    lambda three: f"{three[0]}: {three[1]} {three[2]}"
)
PIECE = YAML | TAGGED | TEXT
EDITED = st.lists(st.tuples(st.integers(0, 200), PIECE), max_size=4)


def check_config(text, name, read):
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            read(path)
        except ConfigError as error:
            for line in str(error).splitlines():
                assert line.startswith(str(path))


@given(EDITED, PIECE)
@settings(max_examples=100)
def test_any_configuration_is_settings_or_complaints_that_name_the_file(edits, alone):
    for text in (edited_lines(CONFIG, edits), alone):
        check_config(text, "config.yml", load)


@given(EDITED, PIECE)
@settings(max_examples=60)
def test_any_ray_configuration_is_options_or_complaints_that_name_the_file(edits, alone):
    packaged = packaged_ray_config().read_text()
    for text in (edited_lines(packaged, edits), alone):
        check_config(text, RAY_CONFIG_NAME, lambda path: load_ray_config(path.parent))


@cache
def index():
    made, embedder = new_index(HashEmbedder()), HashEmbedder()
    put(made, embedder, parsed("wiki/ships.md", ["Ships sailed to Rome.", "\u65e5\u672c\u8a9e"]))
    return made


@given(TEXT | st.text(alphabet="ab?*\"'()[]{}~^:&|!+-\\/ \n\u65e5", max_size=200))
@settings(max_examples=80)
def test_any_prompt_is_answered_and_no_surrogate_reaches_the_model(prompt):
    parts = prompt_parts(prompt)
    found = index().search(Query(prompt, 5), np.zeros(16, np.float32) + 0.25)

    assert {hit.path for hit in found.hits} <= {"wiki/ships.md"}
    assert all(part.strip() for part in parts)
    assert ENGLISH.query_terms(prompt) == ENGLISH.query_terms(prompt)
