"""Which top-level blocks does a markdown text consist of?

Blocks are those of CommonMark plus tables. Only the block structure is parsed, not what is inside
a line. Headings inside list items and quotes are part of their container: a section that began
there could not end before the container does, and its body would carry the container's markers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt

_MAX_NESTING = 100
"""Lists may be 50 levels deep; what follows a deeper one is read as part of it."""
_HOLDS_TEXT = frozenset({"heading_open", "paragraph_open"})


@dataclass(frozen=True, slots=True)
class Block:
    """A block that stands in no other block."""

    kind: str
    """Name of the first markdown-it token without ``_open``: ``heading``, ``paragraph``, …"""
    level: int
    """1 to 6 for headings, else 0."""
    start: int
    """First line, 0-based."""
    end: int
    """Line after the last."""
    text: str
    """Source of a heading or paragraph without its markers; empty for other kinds."""


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    parser.core.ruler.enableOnly(["block"])
    return compiled(parser)


def compiled(parser: MarkdownIt) -> MarkdownIt:
    """Makes a parser safe to be shared by threads.

    Its rules are compiled at the first use, into a table that other threads see half filled: they
    would miss headings, and say nothing.
    """
    parser.parse("text")
    return parser


def blocks(text: str) -> tuple[Block, ...]:
    r"""Returns the top-level blocks of a text with ``\\n`` line ends, in order.

    Link reference definitions and blank lines belong to no block.
    """
    tokens = _parser().parse(text)
    found = []
    for index, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        found.append(
            Block(
                kind=token.type.removesuffix("_open"),
                level=int(token.tag[1:]) if token.type == "heading_open" else 0,
                start=token.map[0],
                end=token.map[1],
                text=tokens[index + 1].content if token.type in _HOLDS_TEXT else "",
            )
        )
    return tuple(found)
