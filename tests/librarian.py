"""A scripted model that files facts as ``skills/memory/save.md`` asks, led by what tools answer."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.chat_server import calls, says

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.chat_server import Turn

SKILL = "skills/memory/SKILL.md"
HELD_S = 60.0
_SNIPPET = re.compile(r"snippet:\n<(data-[0-9a-f]+)>\n(.*?)\n</\1>", re.DOTALL)
_FOUND = re.compile(r"^## `(wiki/[^`]+)`$", re.MULTILINE)


@dataclass(frozen=True)
class Subject:
    """What a fact with a certain word in it is about."""

    word: str
    path: str
    """Of the file that is written if none covers it."""
    opening: str
    """Its heading and its first paragraph."""
    section: str = "Details"
    """The heading under which facts are."""


@dataclass
class Librarian:
    """Searches, reads what was found, then extends what covers the subject, or creates a file."""

    subjects: Sequence[Subject]
    is_held: threading.Event = field(default_factory=threading.Event)
    """Set once an answer is kept back."""
    gate: threading.Event = field(default_factory=threading.Event)
    _held: tuple[str, str] | None = None

    def hold(self, word: str, after: str) -> None:
        """Keeps back the next answer about a subject that follows a call of a tool.

        Args:
            word: Of the subject.
            after: The tool; empty for the first answer.
        """
        self.is_held.clear()
        self.gate.clear()
        self._held = (word, after)

    def __call__(self, body: Mapping[str, Any]) -> Turn:
        """Returns the next turn of a conversation."""
        messages = body["messages"]
        match = _SNIPPET.search(messages[1]["content"])
        assert match is not None
        snippet = match[2]
        subject = next(each for each in self.subjects if each.word in snippet)
        done = tuple(_done(messages))
        self._wait_if_held(subject, done[-1][0] if done else "")
        return _next(subject, snippet, done)

    def _wait_if_held(self, subject: Subject, after: str) -> None:
        if self._held == (subject.word, after):
            self._held = None
            self.is_held.set()
            self.gate.wait(HELD_S)


Done = tuple[str, dict[str, Any], str]
"""Name and arguments of a tool call, and its answer."""


def _done(messages: Sequence[Mapping[str, Any]]) -> Iterator[Done]:
    asked: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant":
            asked = [call["function"] for call in message["tool_calls"]]
        elif message["role"] == "tool":
            call = asked.pop(0)
            yield call["name"], json.loads(call["arguments"]), message["content"]


def _next(subject: Subject, snippet: str, done: Sequence[Done]) -> Turn:
    if not done:
        return calls(("fs_read", {"path": SKILL}), ("memory_search", {"query": snippet}))
    name, arguments, answer = done[-1]
    if name == "fs_write" and not answer.startswith("error:"):
        return says(answer)
    if name == "fs_write":  # it is there, but the search did not know it yet
        return calls(("fs_read", {"path": arguments["path"]}))
    read = {given["path"]: text for name, given, text in done if name == "fs_read"}
    found = [path for name, _, text in done if name == "memory_search" for path in _paths(text)]
    if unread := [path for path in found if path not in read]:
        return calls(("fs_read", {"path": unread[0]}))
    return _filed(subject, snippet, read)


def _filed(subject: Subject, snippet: str, read: Mapping[str, str]) -> Turn:
    """Returns what is done with a fact once every file that may cover it was read."""
    covering = [path for path, text in read.items() if subject.word in text and path != SKILL]
    if not covering:
        return _writes(subject.path, f"{subject.opening}\n\n## {subject.section}\n\n{snippet}\n")
    path, text = covering[0], read[covering[0]]
    if snippet in text:
        return says("noop \u2014 already recorded")
    return _writes(path, f"{text.rstrip()} {snippet}\n")


def _paths(found: str) -> list[str]:
    return _FOUND.findall(found)


def _writes(path: str, content: str) -> Turn:
    return calls(("fs_write", {"path": path, "content": content}))
