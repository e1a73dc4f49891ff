"""Which spellings of a word count as the same?

Case, width and compatibility forms, accents, vowel points, digits of other scripts, and the marks
that people leave out. Marks that make another letter (й, が, Devanagari vowels) are kept.
"""

from __future__ import annotations

import unicodedata

import regex

INVISIBLE = "\u00ad\u200c\u200d\u2060"
"""Soft hyphen, zero-width (non-)joiner and word joiner stand inside words and mean nothing."""

# Also: vowel points of Arabic and Hebrew, the Arabic stretching letter, variation selectors (also
# those of ideographs and of Mongolian), and the box of a keycap emoji.
_IGNORED = regex.compile(
    rf"[{INVISIBLE}\u0640\u064b-\u0652\u0670\u0591-\u05c7\u180b-\u180d\u20e3\ufe00-\ufe0f"
    "\U000e0100-\U000e01ef]"
)
_EMOJI_MODIFIER = regex.compile("[\U0001f3fb-\U0001f3ff]")
_FOREIGN_DIGIT = regex.compile(r"(?V1)[\p{Decimal_Number}--[0-9]]")
# The breve of Cyrillic й and ў and the dots of ї make letters of their own, not accents. Hamza and
# madda are often left out on the alef, the nukta on any letter of Hindi.
_ACCENTS = regex.compile(
    r"(?V1)(?<=[\p{Latin}\p{Greek}])\p{Mn}+"
    r"|(?<=\p{Cyrillic})(?:[\p{Mn}--[\u0306\u0308]]|(?<!\u0456)\u0308)"
    r"|(?<=\u0627)[\u0653-\u0655]|(?<=[\u0915-\u0939])\u093c"
)
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ŧ": "t", "\u0131": "i", "ð": "d"}
    | {"æ": "ae", "œ": "oe", "þ": "th"}
    # Letters of Persian and Arabic keyboards that look the same, and the two nasal signs of Hindi.
    | {"\u06cc": "\u064a", "\u0649": "\u064a", "\u06a9": "\u0643", "\u0901": "\u0902"}
)
_TURKISH_CAPITALS = str.maketrans({"I": "\u0131", "İ": "i"})


def lower_case(word: str, *, turkish: bool = False) -> str:
    """Returns a word in lower case and NFKC, without marks that nobody types, accents kept."""
    if turkish:
        word = word.translate(_TURKISH_CAPITALS)
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold()
    shown = unicodedata.normalize("NFKC", _IGNORED.sub("", folded))
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0], digit[0])), shown)


def without_accents(word: str) -> str:
    """Returns a lower-case word as those type it who leave accents out."""
    if word.isascii():
        return word
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).translate(_UNDECOMPOSED)


def folded_cluster(cluster: str) -> str:
    """Returns a user-perceived character of a script without case: width and variants folded."""
    return unicodedata.normalize("NFKC", _IGNORED.sub("", cluster))


def folded_emoji(emoji: str) -> str:
    """Returns an emoji without skin tone, and whether or not it was asked to be colourful."""
    return _EMOJI_MODIFIER.sub("", _IGNORED.sub("", emoji))
