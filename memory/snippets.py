"""Which piece of a text shows best why it was found?"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from memory.graphemes import boundary_before

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from memory.analysis import Analyzer

_LONGEST_WORD = 30
"""Characters given up to end on a word; longer words are cut."""
_JOINERS = b"-.'@&_,"
"""What may stand inside a word of ASCII text, and is not in its terms."""
_JOINED = re.compile(rb"[^ ][-.'@&_,](?=[0-9a-z])")
_ASCII_SPACES = "\n\t\r\v\f\x1c\x1d\x1e\x1f"
_FEW = 64
"""Characters that may not be ASCII if a text is to be searched like one that is."""
_SMALL = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_INSIDE_WORDS = _SMALL.union(b"0123456789")

_Match = tuple[int, int, frozenset[str]]
"""Start and end of a word, and what it stands for of the terms that are looked for."""


class Snippets:
    """Makes the snippets of the hits of one query.

    Args:
        terms: Terms of the query, as ``TextHits`` names them.
        analyzer: The one that made the terms.
        limit: Most characters, at least 1.
    """

    def __init__(self, terms: Collection[str], analyzer: Analyzer, limit: int = 300) -> None:
        self._analyzer = analyzer
        self._limit = limit
        self._terms = frozenset(terms)
        self._beginnings = _beginnings(self._terms, analyzer)
        self._known: dict[str, list[_Match]] = {}

    def of(self, content: str) -> str:
        """Returns the piece of a text that holds the most different terms, on one line.

        The beginning of the text if it holds none. Borders lie between words where there are
        spaces, never inside a grapheme cluster.

        Args:
            content: Any text; white space is collapsed.
        """
        text, limit = _on_one_line(content), self._limit
        if len(text) <= limit:
            return text
        start, end = _densest(self._matches(text), limit)
        # What is left around the words is shared out evenly, and shifted where the text ends.
        start = min(max(0, start - (limit - (end - start)) // 2), len(text) - limit)
        return _on_borders(text, start, start + limit)

    def _matches(self, text: str) -> list[_Match]:
        """Returns the words that stand for a term, in order; no word holds white space."""
        encoded = text.encode("ascii", "replace")
        if self._beginnings is not None and encoded.count(b"?") <= _FEW:
            pieces: Iterable[tuple[int, str]] = _pieces_with(self._beginnings, text, encoded)
        else:
            pieces = self._telling_pieces(text)
        return [
            (at + start, at + end, found)
            for at, piece in pieces
            for start, end, found in self._matches_of(piece)
        ]

    def _telling_pieces(self, text: str) -> Iterator[tuple[int, str]]:
        """Yields (offset, piece) of what stands between spaces and holds a term."""
        pieces = text.split(" ")
        at = passed = 0
        for number, terms in enumerate(self._analyzer.terms_of_pieces(pieces)):
            if not self._terms.isdisjoint(terms):
                at += sum(map(len, pieces[passed:number])) + number - passed
                passed = number
                yield at, pieces[number]

    def _matches_of(self, piece: str) -> list[_Match]:
        """Returns the words of a piece that stand for a term."""
        known = self._known.get(piece)
        if known is None:
            known = self._known[piece] = self._found_in(piece)
        return known

    def _found_in(self, piece: str) -> list[_Match]:
        """Looks the terms of a piece up, which is much faster than to find its words."""
        found = self._terms.intersection(*self._analyzer.terms_of_pieces((piece,)))
        if not found or (piece.isascii() and piece.isalnum()):
            return [(0, len(piece), found)] if found else []
        words = self._analyzer.spans(piece)
        common = ((start, end, self._terms.intersection(terms)) for start, end, terms in words)
        return [match for match in common if match[2]]


def _beginnings(terms: frozenset[str], analyzer: Analyzer) -> tuple[bytes, ...] | None:
    """Returns what to look for in ASCII text; None if that cannot be told."""
    found = [analyzer.beginnings(term) for term in terms if term.isascii()]
    if None in found:
        return None
    return tuple({each.encode() for each in chain.from_iterable(filter(None, found))})


def _pieces_with(beginnings: Sequence[bytes], text: str, encoded: bytes) -> list[tuple[int, str]]:
    """Returns (offset, piece) of what stands between spaces and may hold a term, in order.

    Args:
        beginnings: One begins each word that has a term, or a part of it, without the joiners, if
            the word is ASCII.
        text: Any.
        encoded: The text with ``?`` for each character that is not ASCII.
    """
    lower = encoded.lower()
    bare = lower.translate(None, _JOINERS)
    bounds: dict[int, int] = {}
    broken = False
    for beginning in beginnings:
        if beginning.isalnum():
            if beginning not in bare:
                continue
            # More of them without the joiners: these may stand in the middle of one, ``e-mail``.
            broken = broken or bare.count(beginning) > lower.count(beginning)
        else:
            broken = True
        _add_pieces(bounds, beginning, encoded, lower)
    if broken:
        for match in _JOINED.finditer(lower):
            _add_piece(bounds, lower, match.start())
    if not text.isascii():
        at = lower.find(b"?")
        while at >= 0:
            at = lower.find(b"?", _add_piece(bounds, lower, at))
    return [(start, text[start:end]) for start, end in sorted(bounds.items())]


def _add_pieces(bounds: dict[int, int], beginning: bytes, text: bytes, lower: bytes) -> None:
    """Adds start and end of each piece in which a word, or a part of one, begins so."""
    at = lower.find(beginning)
    while at >= 0:
        # Parts of a word begin with a capital or a digit, or behind a joiner.
        if at and text[at] in _SMALL and lower[at - 1] in _INSIDE_WORDS:
            at = lower.find(beginning, at + 1)
        else:
            at = lower.find(beginning, _add_piece(bounds, lower, at))


def _add_piece(bounds: dict[int, int], text: bytes, at: int) -> int:
    """Adds start and end of the piece at a place; returns the end."""
    start, end = text.rfind(b" ", 0, at) + 1, text.find(b" ", at)
    end = bounds[start] = end if end >= 0 else len(text)
    return end


def _on_one_line(content: str) -> str:
    """Returns a text with one space in the place of all white space, none at its ends."""
    # To split takes several times as long.
    text = content
    for space in _ASCII_SPACES:
        if space in text:
            text = text.replace(space, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    # What can be printed has no other white space.
    return text.strip(" ") if text.isascii() or text.isprintable() else " ".join(text.split())


def _densest(matches: Sequence[_Match], limit: int) -> tuple[int, int]:
    """Returns (start, end) of the first run of matches with the most terms within the limit."""
    best, best_count = (0, 0), 0
    inside: dict[str, int] = {}
    first = 0
    for start, end, found in matches:
        for term in found:
            inside[term] = inside.get(term, 0) + 1
        while matches[first][0] < start and end - matches[first][0] > limit:
            _leave(inside, matches[first][2])
            first += 1
        if len(inside) > best_count:
            begin = matches[first][0]
            best, best_count = (begin, min(end, begin + limit)), len(inside)
    return best


def _leave(inside: dict[str, int], found: frozenset[str]) -> None:
    """Takes an occurrence of each term out of the counts, which are all above zero."""
    for term in found:
        if inside[term] > 1:
            inside[term] -= 1
        else:
            del inside[term]


def _on_borders(text: str, start: int, end: int) -> str:
    """Returns the text between two positions without the words that stick out."""
    if start and (space := text.find(" ", start - 1, start + _LONGEST_WORD)) >= 0:
        start = space + 1
    else:
        shift = start - boundary_before(text, start)
        start, end = start - shift, end - shift
    if end < len(text) and (space := text.rfind(" ", max(0, end - _LONGEST_WORD), end + 1)) > start:
        end = space
    return text[start : boundary_before(text, end)].strip()
