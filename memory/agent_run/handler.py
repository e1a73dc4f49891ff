"""Which handler answers an event, with which tools and under which model?

A fixed rule: an event ``skills:<name>`` is answered by ``skills/<name>/save.md`` of the workspace.
Its front matter names the tools of the run and may name its model; its body is what the run is told
to do. It is a file of the workspace like any other, so nothing in it is believed beyond that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory import front_matter
from memory.errors import HandlerUnusable
from memory.globs import Globs
from memory.messages import SkippedFile
from memory.workspace import Gone, Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDER = "skills"
"""Where handlers lie, which no run may write."""
KNOWN_TOOLS = ("fs_list", "fs_read", "fs_write", "memory_search")
MAX_HANDLER_BYTES = 128 * 1024
_SKILL = re.compile(r"skills:(\w[\w-]{0,63})")
_LINE_BREAK = re.compile(r"\r\n?")
_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler as its file describes it at this moment."""

    path: str
    instructions: str
    """The body, markdown."""
    tools: tuple[str, ...]
    """Some of KNOWN_TOOLS, each once, in the order named."""
    model: str
    """``provider/model``; empty if the file names none."""


def handler_path(skill: str) -> str:
    """Returns where the handler of a skill lies in the workspace.

    Raises:
        HandlerUnusable: the rule does not cover such events.
    """
    match = _SKILL.fullmatch(skill)
    if match is None:
        raise HandlerUnusable(f"{_shown(skill)} is not skills:<name>, so no file handles it")
    return f"{FOLDER}/{match[1]}/save.md"


def resolve(root: Path, skill: str) -> Handler:
    """Reads the handler of a skill.

    Args:
        root: The workspace.
        skill: Name of the event, ``skills:memory``.

    Raises:
        HandlerUnusable: the file is missing or cannot be used as it is; one line with the remedy.
        WorkspaceError: it cannot be read for now.
    """
    path = handler_path(skill)
    workspace = Workspace(root, exclude=Globs(), max_file_bytes=MAX_HANDLER_BYTES)
    match workspace.read(path):
        case Gone():
            raise HandlerUnusable(f"{path} is missing; `memory init` writes it")
        case SkippedFile(reason=reason):
            raise HandlerUnusable(f"{path}: {reason}")
        case source:
            text = source.data.decode("utf-8", "replace").removeprefix("\ufeff")
            return _parsed(path, _LINE_BREAK.sub("\n", text))


def _parsed(path: str, text: str) -> Handler:
    entries, first_line = front_matter.raw_entries(text)
    instructions = "\n".join(text.split("\n")[first_line:]).strip()
    if not instructions:
        raise HandlerUnusable(f"{path} has no text below its front matter")
    return Handler(path, instructions, _tools(path, entries), _model(path, entries))


def _tools(path: str, entries: Mapping[str, object]) -> tuple[str, ...]:
    written = entries.get("tools", "")
    listed = written if isinstance(written, list) else str(written).strip("[] ").split(",")
    names = tuple(dict.fromkeys(str(name).strip().strip("\"'") for name in listed))
    names = tuple(filter(None, names))
    known = ", ".join(KNOWN_TOOLS)
    if not names:
        raise HandlerUnusable(f"{path} names no tools; known are {known}")
    if unknown := [name for name in names if name not in KNOWN_TOOLS]:
        raise HandlerUnusable(f"{path}: unknown tool {_shown(unknown[0])}; known are {known}")
    return names


def _model(path: str, entries: Mapping[str, object]) -> str:
    written = entries.get("model", "")
    if not isinstance(written, str):
        raise HandlerUnusable(f"{path}: model is not written as provider/model")
    return written.strip()


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}\u2026")
