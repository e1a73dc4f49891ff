"""Do README and ARCHITECTURE say what the code does?"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from actors.chunker import Chunker
from actors.context_provider import ContextProvider
from actors.embedder import EmbedderWorker
from actors.embedder_pool import EmbedderPool
from actors.event_emitter import EventEmitter
from actors.index_keeper import IndexKeeper
from actors.persister import Persister
from actors.save_handler import SaveHandler
from actors.watcher import Watcher
from memory import errors
from memory.cli import main
from memory.config import MemorySettings
from memory.plugin import DaemonPlugin, MemoryPlugin, create
from memory.providers.local import LOCAL_MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
SHELLS = {
    "Watcher": Watcher,
    "Chunker": Chunker,
    "EmbedderPool": EmbedderPool,
    "Embedder": EmbedderWorker,
    "IndexKeeper": IndexKeeper,
    "Persister": Persister,
    "ContextProvider": ContextProvider,
    "EventEmitter": EventEmitter,
    "SaveHandler": SaveHandler,
}
COMMANDS = (
    "start",
    "stop",
    "status",
    "search",
    "show",
    "list",
    "context",
    "eval",
    "check",
    "doctor",
    "events",
    "mcp",
    "save",
    "rebuild",
    "init",
)


def config_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for field in model.model_fields.values():
        nested = getattr(field.annotation, "model_fields", None)
        if nested:
            yield from config_keys(field.annotation, f"{prefix}{field.alias}.")
        else:
            yield f"{prefix}{field.alias}"


def drawn_arrows() -> set[tuple[str, str]]:
    """Returns the arrows of the diagram that join two actors."""
    diagram = ARCHITECTURE.split("```mermaid")[1].split("```")[0]
    names = {
        letters: label.split(" ")[0]
        for letters, label in re.findall(r"\b([A-Z]+)\[([^\]]+)\]", diagram)
    }
    arrows = re.findall(r"^\s*([A-Z]+)(?:\[[^\]]+\])? -.*--> ([A-Z]+)", diagram, re.MULTILINE)
    joined = {(names.get(source), names.get(target)) for source, target in arrows}
    return {(source, target) for source, target in joined if {source, target} <= SHELLS.keys()}


def held_handles() -> set[tuple[str, str]]:
    """Returns who takes whose handle in its constructor."""
    by_class = {shell.__name__: name for name, shell in SHELLS.items()}
    return {
        (name, by_class[held])
        for name, shell in SHELLS.items()
        for parameter in inspect.signature(shell.__init__).parameters.values()
        for held in re.findall(r"ActorProxy\[(\w+)\]", str(parameter.annotation))
    }


def test_the_diagram_shows_exactly_the_handles_that_actors_hold() -> None:
    handles = held_handles()

    assert len(handles) == 11
    assert drawn_arrows() == handles


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme_and_in_the_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])

    assert f"`memory {command}" in README
    assert re.search(rf"^\s+{command}\s", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("key", tuple(config_keys(MemorySettings)))
def test_every_key_of_memory_is_in_the_readme(key: str) -> None:
    assert f"`{key}`" in README


@pytest.mark.parametrize("model", LOCAL_MODELS)
def test_every_local_model_is_in_the_readme_with_its_dimension(model: str) -> None:
    dim = LOCAL_MODELS[model].info.dim

    assert re.search(rf"^\| `{model}` \|[^|]+\| {dim} \|", README, re.MULTILINE)


@pytest.mark.parametrize("package", ["actors", "memory"])
def test_every_module_stands_in_the_architecture(package: str) -> None:
    modules = [
        path.stem for path in (ROOT / package).glob("*.py") if not path.stem.startswith("__")
    ]

    assert modules
    assert [name for name in modules if f"`{name}`" not in ARCHITECTURE] == []


def test_every_error_class_stands_in_the_tree_of_its_module() -> None:
    names = [name for name, value in vars(errors).items() if inspect.isclass(value)]

    assert names
    assert [name for name in names if name not in (errors.__doc__ or "")] == []


def plugin_examples() -> list[str]:
    """Returns the programs that the README shows for daemons."""
    section = README.split("### Inside a daemon")[1].split("\n### ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def test_the_example_for_a_daemon_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a memory that is disabled, which has the same members."""
    monkeypatch.chdir(tmp_path)
    Path("config.yml").touch()

    exec(compile(plugin_examples()[0], "README.md", "exec"), {"__name__": "__main__"})

    assert "memory: disabled \u2014 pending config" in capsys.readouterr().out


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_for_daemons_use_only_what_there_is(number: int) -> None:
    tree = ast.parse(plugin_examples()[number])
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "plugin"
    }

    assert {"start", "context_provider", "stop"} <= used <= set(dir(MemoryPlugin))


def test_every_member_of_the_plugin_and_every_argument_of_create_is_in_the_readme() -> None:
    members = [name for name in vars(MemoryPlugin) if not name.startswith("_")]
    arguments = list(inspect.signature(create).parameters)[1:]
    stopping = list(inspect.signature(DaemonPlugin.stop).parameters)[1:]

    assert [name for name in members if not re.search(rf"`{name}[`(]", README)] == []
    assert [name for name in arguments if f"{name}=" not in README] == []
    assert all(f"`{name}`" in README for name in stopping)
