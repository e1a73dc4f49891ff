"""Which texts say nearly the same?

Copies, backups and old versions: a few words changed, a paragraph more, lines in another order,
other case and white space. Texts are compared by their shingles, runs of three words, where each
character of a script without spaces is a word (Broder 1997, "On the resemblance and containment of
documents"). Short texts are the same only if they are equal: lists of the same few fields share
most of their shingles whatever the values are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from memory.folding import lower_case
from memory.segmentation import WORD, characters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

LEAST_RESEMBLANCE = 0.5
"""Share of common shingles among those of both from which two texts are nearly the same.

Of 2.8e8 pairs of sections of different files (cheat sheets, proposals, notes, encyclopedia) 195 are
called the same, most of which quote one another; of 5,900 pairs of lists of the same fields two.
With a twentieth of the words changed a text keeps 0.75 in the median.
"""
LEAST_CONTAINMENT = 0.8
"""Share of the shingles of the shorter text from which the longer one is it and a bit more."""
MOST_GROWTH = 2
"""So many times the shingles of the shorter text the longer one may have, or it says more."""
MIN_SHINGLES = 20
"""A text with fewer distinct ones is short."""
MAX_REFUSED = 128
"""Texts of one answer that are taken apart in vain; each takes 0.03 to 0.1 ms."""
_SHINGLE_WORDS = 3
_WORD = re.compile(r"\w+")

_Shingles = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text says, in which words."""

    plain: str
    """A short text in lower case, with one space in the place of all white space; else empty."""
    trail: frozenset[str]
    """Words of the headings of a short text; else empty."""
    shingles: _Shingles

    @property
    def is_short(self) -> bool:
        """Whether only an equal text is the same."""
        return len(self.shingles) < MIN_SHINGLES


def wording(headlines: str, content: str) -> Wording:
    """Returns what there is to compare of a section."""
    lower = lower_case(content)
    words = _words(lower)
    shingles = frozenset(zip(*(words[n:] for n in range(_SHINGLE_WORDS)), strict=False))
    if len(shingles) >= MIN_SHINGLES:
        return Wording("", frozenset(), shingles)
    return Wording(" ".join(lower.split()), frozenset(_words(lower_case(headlines))), shingles)


def nearly_same(one: Wording, other: Wording) -> bool:
    """Tells whether two texts say nearly the same; symmetric, but not transitive.

    Short ones do if they are equal and one stands under no other words than the other: ``TODO``
    below ``# Alice`` is not ``TODO`` below ``# Bob``, but below ``# Alice (1)`` it is.
    """
    if one.is_short != other.is_short:
        return False
    if one.is_short:
        return one.plain == other.plain and (one.trail <= other.trail or other.trail <= one.trail)
    return _overlap(one.shingles, other.shingles)


class DistinctTexts:
    """Texts of which no two say nearly the same, in the order they come.

    Bounded: once ``MAX_REFUSED`` texts were refused no other is admitted. Those that repeat an
    earlier one to the letter do not count.
    """

    def __init__(self) -> None:
        """Begins without a text."""
        self._kept: list[Wording] = []
        self._seen: set[str] = set()
        self._num_refused = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether no other text will be admitted."""
        return self._num_refused == MAX_REFUSED

    def admits(self, headlines: str, content: str) -> bool:
        """Takes a text unless one that was taken before says nearly the same.

        Args:
            headlines: Trail of its headings.
            content: What stands below them.
        """
        # Equal long texts are the same wherever they stand, and many copies are looked at.
        if content in self._seen or self.is_exhausted:
            return False
        text = wording(headlines, content)
        if not text.is_short:
            self._seen.add(content)
        if any(nearly_same(text, kept) for kept in self._kept):
            self._num_refused += 1
            return False
        self._kept.append(text)
        return True


def _words(lower: str) -> list[str]:
    words = _WORD.findall(lower)
    if lower.isascii():
        return words
    return list(chain.from_iterable((word,) if word.isascii() else _parts(word) for word in words))


def _parts(word: str) -> Iterator[str]:
    """Yields the characters of what is written without spaces, all else in one piece."""
    for match in WORD.finditer(word):
        yield from characters(match[0])[1] if match.lastgroup == "spaceless" else (match[0],)


def _overlap(one: AbstractSet[object], other: AbstractSet[object]) -> bool:
    """Tells whether two sets that are not empty have enough in common."""
    fewer, more = sorted((len(one), len(other)))
    common = len(one & other)
    if common >= LEAST_RESEMBLANCE * (fewer + more - common):
        return True
    return common >= LEAST_CONTAINMENT * fewer and more <= MOST_GROWTH * fewer
