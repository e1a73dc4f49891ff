"""How is a file described in one line (SPEC A2)?"""

from __future__ import annotations

import html
import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from memory import graphemes
from memory.outline import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    from memory.outline import Block

MAX_CHARACTERS = 200
_MAX_SOURCE = 2048
"""Characters of source that are looked at: enough for any line of the length above."""
_MAX_CANDIDATES = 100
"""Paragraphs, or lines, that are looked at before giving up."""
_WIKILINK = re.compile(r"(!?)\[\[(?:[^\[\]\n|]*\|)*([^\[\]\n|]*)\]\]")
_FOOTNOTE_MARK = re.compile(r"\[\^[^\]\s]+\]:?")
_TASK_BOX = re.compile(r"\A\[[ xX]\]\s")
_REFERENCE = re.compile(r"\[[^\]\n]+\]:")
_TAG = re.compile(r"<!--.*?(?:-->|$)|<[^<>]*>", re.DOTALL)
_TEXT = frozenset({"text", "code_inline"})
_BREAKS = frozenset({"softbreak", "hardbreak"})


@cache
def _parser() -> MarkdownIt:
    return compiled(MarkdownIt("commonmark").enable(["table", "strikethrough"]))


def plain_text(markdown: str, limit: int = MAX_CHARACTERS) -> str:
    """Returns what a reader sees of a piece of markdown, on one line of ``limit`` characters."""
    source = _FOOTNOTE_MARK.sub("", _WIKILINK.sub(_label, markdown[:_MAX_SOURCE]))
    words = " ".join(_texts(_parser().parse(source))).split()
    return graphemes.cut(" ".join(words), limit)


def first_paragraph(blocks: Iterable[Block]) -> str:
    """Returns the source of the first plain paragraph; empty if there is none.

    Plain is what holds words in a line of text: not a list, quote, table, rule, code, HTML, nor a
    paragraph of images or a reference such as ``[1]: …``.
    """
    paragraphs = (block.text for block in blocks if block.kind == "paragraph")
    return next(filter(_is_prose, islice(paragraphs, _MAX_CANDIDATES)), "")


def _is_prose(paragraph: str) -> bool:
    if _REFERENCE.match(paragraph):
        return False
    source = _WIKILINK.sub(_label, paragraph[:_MAX_SOURCE])
    inline = _parser().parseInline(source)[0].children or []
    return any(child.content.strip() for child in inline if child.type in _TEXT)


def summary_of(blocks: Sequence[Block], lines: Sequence[str]) -> str:
    """Returns the first plain paragraph, else the first line of content, else a heading.

    Args:
        blocks: Of the body, in order.
        lines: Of the body, as the blocks number them.
    """
    return plain_text(first_paragraph(blocks)) or _first_line(blocks, lines)


def _first_line(blocks: Sequence[Block], lines: Sequence[str]) -> str:
    headings_last = sorted(blocks, key=lambda block: block.kind == "heading")
    candidates = (
        plain_text(line)
        for block in headings_last
        for line in lines[block.start + (block.kind == "fence") : block.end]
    )
    looked_at = islice(candidates, _MAX_CANDIDATES)
    return next((text for text in looked_at if any(map(str.isalnum, text))), "")


def _label(link: re.Match[str]) -> str:
    """Returns what a wikilink shows; an embedded file shows nothing that is text."""
    return "" if link[1] else link[2]


def _texts(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield _TASK_BOX.sub("", "".join(map(_shown, token.children or [])))
        elif token.type in {"fence", "code_block"}:
            yield token.content
        elif token.type == "html_block":
            yield html.unescape(_TAG.sub(" ", token.content))


def _shown(child: Token) -> str:
    if child.type in _TEXT or child.type == "image":
        return child.content
    is_break = child.type in _BREAKS or child.content.startswith("<br")
    return " " if is_break else ""
