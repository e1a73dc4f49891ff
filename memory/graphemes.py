"""Where may a text be cut without breaking what a reader sees as one character?"""

from __future__ import annotations

import re

import regex

_CLUSTER = regex.compile(r"\X")
_NEVER_JOINED = re.compile(
    "[\n\x20-\x7e\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\ufffd]{2}"
)
"""Two ASCII, kana, Chinese or Hangul characters: the short way for most texts."""
_LONGEST = 64
"""Code points looked at before a position."""


def boundary_before(text: str, position: int) -> int:
    """Returns the last place at or before a position that is not inside a grapheme cluster.

    Looks at a few code points only, whatever the length of the text. In a cluster, or an unbroken
    run of flags, that is longer than that (hundreds of marks on one letter), any place will do.
    """
    if not 0 < position < len(text) or _NEVER_JOINED.match(text, position - 1):
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
