"""What does the front matter of a file say, and where does the body begin (SPEC C5)?

Front matter is read for a handful of strings. It may be broken or hostile: nothing in it is ever
built into an object, aliases are never expanded, and what YAML refuses is read line by line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from memory.descriptions import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_BYTES = 16 * 1024
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Makes strings only: no dates, no numbers, no objects; the C version where there is one."""
_DATES = ("created", "date", "modified", "published", "updated")
_NULL = frozenset({"~", "null", "Null", "NULL"})
_NAME = re.compile(r"[A-Za-z_][\w -]*")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The part of the front matter that the memory uses; empty strings and tuples if absent."""

    title: str = ""
    description: str = ""
    """Plain text, at most 200 characters."""
    tags: tuple[str, ...] = ()
    """Without ``#``, each once, in order."""
    dates: tuple[tuple[str, str], ...] = ()
    """(key, value as written), sorted by key."""


def split(text: str) -> tuple[FrontMatter, int]:
    r"""Returns the front matter of a text and the line at which its body begins, 0-based.

    A text has front matter if it begins with a line ``---``, another line ``---`` or ``...``
    follows within 16 KiB, and there is an entry, or nothing at all, between them; a text that
    merely begins with a rule has none.

    Args:
        text: Decoded, without byte order mark, with ``\\n`` line ends.
    """
    entries, first_line = raw_entries(text)
    return _read(entries), first_line


def raw_entries(text: str) -> tuple[Mapping[str, object], int]:
    """Returns every entry by its key in lower case, and the line at which the body begins.

    Values are strings, lists and mappings as written, and not to be trusted; for readers of other
    keys than those of ``FrontMatter``. The text is that of ``split``.
    """
    block = _block(text)
    entries = None if block is None else _entries(block)
    if block is None or entries is None:
        return {}, 0
    return entries, block.count("\n") + 2


def _block(text: str) -> str | None:
    """Returns the lines between the fences, each with its line end."""
    opening, *lines = text[:MAX_BYTES].split("\n")
    if opening.rstrip() != "---":
        return None
    if len(text) > MAX_BYTES:
        lines.pop()  # may have been cut
    for number, line in enumerate(lines):
        if line.rstrip() in {"---", "..."}:
            block = "".join(f"{inner}\n" for inner in lines[:number])
            return block if len(block.encode()) <= MAX_BYTES else None
    return None


def _entries(block: str) -> Mapping[str, object] | None:
    """Returns keys in lower case with their values; None if the block is not front matter."""
    try:
        loaded = yaml.load(block, Loader=_LOADER)  # noqa: S506 - makes strings only
    except (yaml.YAMLError, RecursionError, ValueError, MemoryError):
        loaded = dict(_entries_by_line(block)) or block
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        return None
    return {key.lower(): value for key, value in loaded.items() if isinstance(key, str)}


def _entries_by_line(block: str) -> Iterator[tuple[str, object]]:
    """Yields the simple entries of a block that is not YAML: ``key: value`` and lists below."""
    items: list[str] = []
    for line in block.split("\n"):
        name, colon, value = line.partition(":")
        if colon and _NAME.fullmatch(name) and value[:1] in {"", " ", "\t"}:
            items = []
            yield name.rstrip(), _unquoted(value) or items
        elif line.lstrip().startswith("- "):
            items.append(_unquoted(line.lstrip()[1:]))


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] in "\"'" else value


def _read(entries: Mapping[str, object]) -> FrontMatter:
    dates = ((name, _string(entries.get(name))) for name in _DATES)
    return FrontMatter(
        title=_string(entries.get("title")),
        description=plain_text(_string(entries.get("description"))),
        tags=tuple(dict.fromkeys(_tags(entries.get("tags")))),
        dates=tuple((name, value) for name, value in dates if value),
    )


def _string(value: object) -> str:
    """Returns a scalar on one line; empty for everything else."""
    return " ".join(value.split()) if isinstance(value, str) and value not in _NULL else ""


def _tags(value: object) -> Iterator[str]:
    if isinstance(value, list):
        listed = [_string(item) for item in value]
    else:
        text = _string(value).removeprefix("[").removesuffix("]")
        listed = text.split(",") if "," in text else text.split()
    for tag in listed:
        if name := tag.strip().strip("\"'").removeprefix("#").strip():
            yield name
