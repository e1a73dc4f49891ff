"""In which script is a text written?"""

from __future__ import annotations

import regex

LATIN = "Latin"
_MOST_CHARS = 4_096
_OTHERS = (
    "Arabic",
    "Armenian",
    "Bengali",
    "Cyrillic",
    "Devanagari",
    "Ethiopic",
    "Georgian",
    "Greek",
    "Han",
    "Hangul",
    "Hebrew",
    "Khmer",
    "Lao",
    "Myanmar",
    "Tamil",
    "Telugu",
    "Thai",
)
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_LETTER = regex.compile(
    rf"(?P<{LATIN}>\p{{{LATIN}}})|" + "|".join(rf"(?P<{name}>\p{{{name}}})" for name in _OTHERS)
)


def script_of(text: str) -> str:
    """Returns the name of the script with most letters among the first 4,096 characters.

    Japanese, which mixes three, is ``Kana``; what has no letter of a known script is ``Latin``.
    """
    text = text[:_MOST_CHARS]
    if text.isascii():
        return LATIN
    if _KANA.search(text):
        return "Kana"
    counts: dict[str | None, int] = {}
    for match in _LETTER.finditer(text):
        counts[match.lastgroup] = counts.get(match.lastgroup, 0) + 1
    return max(counts, key=counts.__getitem__, default=None) or LATIN
