"""Which files does a file point to, and with which words?"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from memory.descriptions import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    from memory.messages import Chunk

# In a table the bar is escaped.
_WIKI_LINK = re.compile(r"(?<!!)\[\[([^\[\]\n|]+?)(?:\\?\|([^\[\]\n]*))?\]\]")
_SHOWN = frozenset({"text", "code_inline"})
_BREAKS = frozenset({"softbreak", "hardbreak"})
_SUFFIXES = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a file has it."""

    text: str
    """What a reader sees, on one line."""
    target: str
    """Path or name of a file, without the section."""
    is_wiki: bool
    """Whether it was written as ``[[name]]``, which means a file wherever it is."""


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def links(chunks: Sequence[Chunk]) -> Iterator[Link]:
    """Yields the links in the sections of one file that may point to a file."""
    definitions: dict[str, Any] = {}
    # From the last to the first: definitions of references mostly stand at the end of a file.
    for chunk in reversed(chunks):
        if "[" in chunk.content:
            for token in _parser().parse(chunk.content, definitions):
                yield from _markdown_links(token.children or ())
                yield from _wiki_links(token.children or ())


def _markdown_links(tokens: Iterable[Token]) -> Iterator[Link]:
    target = ""
    words: list[str] = []
    for token in tokens:
        if token.type == "link_open":
            target, words = _path_in(str(token.attrGet("href") or "")), []
        elif token.type == "link_close":
            if target:
                yield Link(" ".join("".join(words).split()), target, is_wiki=False)
            target = ""
        else:
            words.append(_shown(token))


def _path_in(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return "" if parts.scheme or parts.netloc else unquote(parts.path)


def _wiki_links(tokens: Iterable[Token]) -> Iterator[Link]:
    source = "".join(token.content if token.type == "text" else " " for token in tokens)
    for match in _WIKI_LINK.finditer(source):
        written, label = match[1].strip(), match[2]
        target = written.partition("#")[0].strip()
        text = plain_text(label) if label else " ".join(written.replace("#", " ").split())
        if target:
            yield Link(text, target, is_wiki=True)


def _shown(token: Token) -> str:
    if token.type in _SHOWN:
        return token.content
    return " " if token.type in _BREAKS else ""


class Targets:
    """The files that links may point to.

    Args:
        paths: Keys of all files.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            self._by_name[_name(path)].append(path)

    def find(self, link: Link, source: str) -> str | None:
        """Returns the path of the file that a link in ``source`` means.

        None if it means the file itself, none of the files, or one of several.
        """
        target = unicodedata.normalize("NFC", link.target)
        found = self._by_path(posixpath.dirname(source), target)
        if found is None and link.is_wiki:
            found = self._anywhere(target)
        return found if found != source else None

    def _by_path(self, folder: str, target: str) -> str | None:
        bases = ("",) if target.startswith("/") else (folder, "")
        for base in bases:
            path = posixpath.normpath(posixpath.join(base, target.lstrip("/")))
            for spelled in (path, *(path + suffix for suffix in _SUFFIXES)):
                if spelled in self._paths:
                    return spelled
        return None

    def _anywhere(self, target: str) -> str | None:
        wanted = without_suffix(target).casefold().strip("/")
        found = [
            path
            for path in self._by_name.get(_name(target), ())
            if f"/{without_suffix(path).casefold()}".endswith(f"/{wanted}")
        ]
        return found[0] if len(found) == 1 else None


def _name(path: str) -> str:
    return without_suffix(posixpath.basename(path)).casefold()


def without_suffix(path: str) -> str:
    """Returns a path, or a name, without the suffix of a markdown file."""
    suffix = next((suffix for suffix in _SUFFIXES if path.lower().endswith(suffix)), "")
    return path.removesuffix(path[len(path) - len(suffix) :])
