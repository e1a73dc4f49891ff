"""Where are the words of a text, and of which parts do they consist?

Words end as Unicode's UAX 29 says, with these differences, made for notes and code: ``- _ @ &``
join parts, which are found both alone and together; capitals inside a word begin a part; scripts
that are written without spaces, and Hangul, whose words carry their particles, are runs that the
analysis cuts into pairs of characters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import is_normalized

import regex

from memory.folding import INVISIBLE, folded_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

# The single letters are marks shared by the kana, which Unicode assigns to no script. Digits of
# these scripts are numbers like any other.
_SPACELESS = (
    r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Javanese}\p{Balinese}"
    "\u30fc\uff70\uff9e\uff9f]--\\p{Decimal_Number}]"
)
# A comma joins thousands, a quotation mark the last letters of a Hebrew acronym.
_ASCII_JOINER = r"[-.'@&]|_+|(?<=[0-9]),(?=[0-9]{3}(?![0-9]))"
_JOINER = (
    "[-.'@&\u00b7\u02bc\u05f3\u05f4\u2019\u2010\u2011]|_+|(?<=[0-9]),(?=[0-9]{3}(?![0-9]))"
    '|(?<=[\u05d0-\u05ea])"(?=[\u05d0-\u05ea])'
)
_MAX_PARTS = 32
# More joined parts than this start another word, so that no hostile run is one endless word.
_MORE_PARTS = "{0,15}"

ASCII_WORD = re.compile(rf"[A-Za-z0-9]+(?:(?:{_ASCII_JOINER})[A-Za-z0-9]+){_MORE_PARTS}")
"""The words of ASCII text, several times faster than ``WORD``."""

_LETTER = rf"[[\w\p{{M}}\p{{No}}{INVISIBLE}]--[_\u02bc]--{_SPACELESS}]"
# Signs such as © and ™ are pictographs too, but decorate words. Up to eight make one picture.
_PICTOGRAPH = r"[\p{Extended_Pictographic}--[\u0000-\u218f]][\ufe0f\U0001f3fb-\U0001f3ff]*"
WORD = regex.compile(
    rf"(?V1)(?P<spaceless>{_SPACELESS}[[{_SPACELESS}\p{{M}}{INVISIBLE}]--\p{{Decimal_Number}}]*)"
    rf"|(?P<emoji>\p{{Regional_Indicator}}{{2}}|{_PICTOGRAPH}(?:\u200d{_PICTOGRAPH}){{0,7}})"
    rf"|{_LETTER}+(?:(?:{_JOINER}){_LETTER}+){_MORE_PARTS}"
)
"""A word, or in group ``spaceless`` a run without spaces, or in group ``emoji`` one emoji."""

_PAIR = regex.compile(rf"(?V1){_SPACELESS}.+", regex.DOTALL)

_SPLIT_JOINERS = re.compile(f"({_JOINER})")
_CAMEL_BORDER = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})")
_NUMBERED = re.compile(r"([^\W\d_]{2,})\d+")
_VERSION = re.compile(r"[vV](?=\d+\.)")
_PLAIN_RUN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\uac00-\ud7a3]+")
_CLUSTER = regex.compile(r"\X")
_CACHED_CLUSTERS = 1 << 14
_folded_cluster = lru_cache(_CACHED_CLUSTERS)(folded_cluster)


def is_pair(term: str) -> bool:
    """Tells whether a term is a pair of characters of a run without spaces."""
    return not term.isascii() and _PAIR.match(term) is not None


def num_runs(text: str) -> int:
    """Returns the number of runs without spaces that have a pair of characters."""
    runs = (match["spaceless"] for match in WORD.finditer(text))
    return sum(run is not None and len(characters(run)[1]) > 1 for run in runs)


def joined(word: str) -> str:
    """Returns a compound as one word: ``e-mail`` as ``email``, but ``3.14`` as it is."""
    whole, *rest = _SPLIT_JOINERS.split(word)
    for joiner, part in zip(rest[::2], rest[1::2], strict=True):
        between_digits = whole[-1].isdigit() and part[0].isdigit() and joiner != ","
        whole += joiner + part if between_digits else part
    return whole


def parts(word: str) -> list[str]:
    """Returns the parts of a compound but single letters; none if it is a plain word.

    ``v2.60.1`` has its number as a part, ``Code2`` in ``getCode2`` its word.
    """
    pieces = _SPLIT_JOINERS.split(word)[::2]
    found = [part for piece in pieces for part in _CAMEL_BORDER.split(piece)]
    if len(found) == 1:
        return []
    found = [part for part in found[:_MAX_PARTS] if len(part) > 1 or part.isdigit()]
    numbered = [match[1] for part in found if (match := _NUMBERED.fullmatch(part))]
    version = [joined(word[1:])] if _VERSION.match(word) else []
    return version + found + numbered


def characters(run: str) -> tuple[Sequence[int], Sequence[str]]:
    """Returns the user-perceived characters of a run without spaces.

    Returns:
        The n + 1 borders between them, as offsets in the run, and the n characters, folded. What
        is folded to nothing, as a soft hyphen, belongs to the character before it.
    """
    if _PLAIN_RUN.fullmatch(run) and is_normalized("NFKC", run):
        # Each code point is a character by itself: nearly all Chinese, Japanese and Korean text.
        return range(len(run) + 1), run
    borders, folded = [0], list[str]()
    for match in _CLUSTER.finditer(run):
        cluster = _folded_cluster(match[0])
        if not folded or (cluster and folded[-1]):
            borders.append(match.end())
            folded.append(cluster)
        else:
            borders[-1] = match.end()
            folded[-1] += cluster
    return borders, folded
