"""Where may a text be cut without breaking what a reader sees as one character?"""

from __future__ import annotations

import regex

_CLUSTER = regex.compile(r"\X")
_LONGEST = 64
"""Code points looked at before a position."""


def boundary_before(text: str, position: int) -> int:
    """Returns the last place at or before a position that is not inside a grapheme cluster.

    Looks at a few code points only, whatever the length of the text. In a cluster, or an unbroken
    run of flags, that is longer than that (hundreds of marks on one letter), any place will do.
    """
    if not 0 < position < len(text):
        return position
    pair = text[position - 1 : position + 1]
    if pair.isascii() and pair != "\r\n":
        return position
    start = max(0, position - _LONGEST)
    boundary = max(match.start() for match in _CLUSTER.finditer(text[start : position + 1]))
    return start + boundary if boundary or not start else position


def cut(text: str, limit: int) -> str:
    """Returns at most ``limit`` code points of a text; ``…`` shows that something is missing."""
    if len(text) <= limit:
        return text
    end = boundary_before(text, limit - 1) or limit - 1
    return text[:end].rstrip() + "…"
