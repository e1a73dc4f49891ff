"""What did an agent mean by the arguments it sent?

Models call tools from memory: they use other names, send numbers as text, paste a citation where a
path belongs. What can be understood without guessing is taken; the rest is answered with a line
that says what is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_CITATION = re.compile(
    r"(?P<path>.+\.(?:md|markdown)):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.IGNORECASE
)
_WHOLE = re.compile(r"\s*[+-]?\d{1,9}(?:\.0*)?\s*")
_LARGEST = 10**9


class BadArguments(ValueError):
    """The arguments of a tool call cannot be used; the message tells the agent why."""


class Arguments:
    """The arguments of one call of a tool.

    Args:
        tool: Name of the tool, for complaints.
        given: What the agent sent: an object, or JSON text of one.

    Raises:
        BadArguments: it is neither.
    """

    def __init__(self, tool: str, given: object) -> None:
        self._tool = tool
        self._given = _mapping(tool, given)

    def text(self, name: str, *aliases: str) -> str:
        """Returns a text; a number is one too, and a list of texts is its lines.

        Raises:
            BadArguments: it is missing, blank or something else.
        """
        value = self._find(name, aliases)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            value = "\n".join(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if value is None:
            raise BadArguments(f"{self._tool} needs {name!r}, a text; got {self._names()}")
        if not isinstance(value, str):
            raise BadArguments(f"{self._tool}: {name!r} must be a text, not {_kind(value)}")
        if not value.strip():
            raise BadArguments(f"{self._tool}: {name!r} is blank")
        return value

    def whole_number(self, name: str, *aliases: str, default: int, most: int = _LARGEST) -> int:
        """Returns a number between 1 and ``most``, the nearest one if what was sent is outside.

        Raises:
            BadArguments: it is no whole number.
        """
        value = self._find(name, aliases)
        if value is None or value == "":
            return default
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = float(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadArguments(f"{self._tool}: {name!r} must be a whole number, at least 1")
        return min(max(value, 1), most)

    def path_and_lines(self, *, most: int) -> tuple[str, int, int]:
        """Returns (path, first line, number of lines) of a file; the path may be a citation.

        Raises:
            BadArguments: there is no path, or a line is no number.
        """
        path = self.text("path", "file", "filename", "file_path", "filepath").strip().strip("`'\"")
        first, count = 1, most
        if cited := _CITATION.fullmatch(path):
            path, first = cited["path"], max(1, int(cited["first"]))
            count = max(1, int(cited["last"] or first) - first + 1)
        first = self.whole_number("from", "start", "start_line", "from_line", "line", default=first)
        end = self.whole_number("to", "end", "end_line", "to_line", default=first + count - 1)
        count = max(1, end - first + 1)
        count = self.whole_number("lines", "num_lines", "count", "limit", default=count)
        return path, first, min(count, most)

    def _find(self, name: str, aliases: tuple[str, ...]) -> Any:
        found = (self._given[key] for key in (name, *aliases) if self._given.get(key) is not None)
        return next(found, None)

    def _names(self) -> str:
        return ", ".join(repr(str(key)[:40]) for key in list(self._given)[:10]) or "nothing"


def _mapping(tool: str, given: object) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            raise BadArguments(f"{tool}: the arguments are not valid JSON") from None
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadArguments(f"{tool}: the arguments must be an object, not {_kind(given)}")
    return given


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "something else")
