"""How is text that comes from files made harmless where it is shown?

Paths, descriptions, headlines, snippets and contents are written by anybody. Whoever shows them
(the ``# Memories`` table, a tool's answer, the terminal) passes them through here first, so that
they can neither leave their row, nor hide text, nor move the cursor (SPEC A3).
"""

from __future__ import annotations

import unicodedata

import regex

from memory.graphemes import cut

_MAX_CHARACTERS = 200
_PLACEHOLDER = "?"

# Combining marks beyond the eighth only smear over neighbouring lines, and long runs of them make
# canonical ordering (NFC) quadratic. Living orthographies stack at most four or five.
_MARK_RUN = regex.compile(r"(\p{M}{8})\p{M}+")

# Default_Ignorable_Code_Point holds what no category does: Hangul fillers, variation selectors,
# the combining grapheme joiner. White space is left to the collapsing step, joiners to _JOINER.
_INVISIBLE = regex.compile(
    r"[[\p{C}\p{Default_Ignorable_Code_Point}]--[\s\u200c\u200d]]+", regex.VERSION1
)

# Arabic and the Indic scripts spell with joiners, emoji sequences are glued with them.
_JOINING = (
    r"\p{Arabic}\p{Syriac}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
    r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}"
)
_JOINER = regex.compile(
    rf"(?:(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    r"|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}])\u200d(?=\p{Extended_Pictographic})"
    r")(*SKIP)(*FAIL)|[\u200c\u200d]"
)

_BLANK = regex.compile(r"[\s\u2800]+")
_LINE_BREAK = regex.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
_BLOCK_STARTS = ("-", "+", "*", "=", "~", ":", ">", "_", "[")
_LIST_NUMBER = regex.compile(r"([0-9]{1,9})[.)]")
# A parser would turn ``&#27;`` into the very character that was taken out.
_ENTITY = regex.compile(r"&(?=#?[0-9A-Za-z]+;)")
_BACKSLASH_BEFORE_PIPE = regex.compile(r"\\(?=\\*\|)")


def sanitize_cell(text: str, limit: int = _MAX_CHARACTERS) -> str:
    r"""Returns text as one inert line of markdown, fit for a table cell.

    Backslashes are doubled, pipes and character references escaped, so every markdown parser reads
    back what a person would see; links, HTML and code spans cannot begin.

    Args:
        text: Anything, lone surrogates included; the time is linear in its length.
        limit: Most characters (code points) of the visible text; the cut never splits a grapheme.
    """
    visible = cut(_one_line(text), limit)
    inert = visible.replace("`", "'").replace("](", "] (").replace("<", "\u2039")
    escaped = inert.replace("\\", "\\\\").replace("|", "\\|")
    escaped = _ENTITY.sub(r"\\&", escaped)
    return f"\\{escaped}" if escaped.startswith("#") else escaped


def sanitize_line(text: str, limit: int = _MAX_CHARACTERS) -> str:
    r"""Returns text as one inert line of markdown that may begin a paragraph.

    As ``sanitize_cell``; besides, no list, quote, fence, rule or reference definition can begin.
    A definition would vanish, and make links of what other files say in brackets.
    """
    cell = sanitize_cell(text, limit)
    if number := _LIST_NUMBER.match(cell):
        return f"{number[1]}\\{cell[number.end(1) :]}"
    return f"\\{cell}" if cell.startswith(_BLOCK_STARTS) else cell


def sanitize_code(text: str, limit: int = _MAX_CHARACTERS, *, in_table: bool = True) -> str:
    r"""Returns text that can stand between two backticks, also in a table cell.

    Only pipes are escaped, because a backslash means itself in a code span. A backslash right
    before a pipe becomes a full-width one: markdown parsers disagree about ``\\|``.

    Args:
        text: Anything; the time is linear in its length.
        limit: Most characters of the visible text.
        in_table: Whether it stands in a table; elsewhere an escaped pipe would show its backslash.
    """
    visible = cut(_one_line(text), limit).replace("`", "'") or _PLACEHOLDER
    if not in_table:
        return visible
    return _BACKSLASH_BEFORE_PIPE.sub("\uff3c", visible).replace("|", "\\|")


def sanitize_path(path: str, *, in_table: bool = True) -> str:
    """Returns a path, as the file system or the index spells it, fit for a code span."""
    return sanitize_code(path, in_table=in_table)


def printable_block(text: str) -> str:
    """Returns text of several lines that a terminal shows and does not obey (FAULTS 87).

    Newlines and tabs stay; every other control, escape, bidi and invisible character goes.
    """
    return _without_invisible(_LINE_BREAK.sub("\n", text))


def _one_line(text: str) -> str:
    composed = unicodedata.normalize("NFC", _MARK_RUN.sub(r"\1", _without_invisible(text)))
    return _BLANK.sub(" ", composed).strip()


def _without_invisible(text: str) -> str:
    return _JOINER.sub("", _INVISIBLE.sub("", text))
