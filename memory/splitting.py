"""Where is a section cut that is too long for the embedding model (SPEC C7)?

A section is first taken apart into small pieces, at paragraphs where that suffices, else at lines,
sentences, words, at last between any two characters. The tokens of each piece are counted once.
Pieces are then put together to parts; a part ends at the strongest border in its second half, and
the next one repeats the last few words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory import graphemes
from memory.embedding_input import NUM_SPECIAL_TOKENS, join

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memory.embedding_input import TokenLimits
    from memory.providers.base import TokenCounter

_BORDERS = (
    re.compile(r"\n(?:[ \t]*+\n)+"),  # paragraph
    re.compile(r"\n"),  # line
    re.compile(r"""(?<=[.!?…؟।])["'”’)]?\s+|(?<=[。！？｡])"""),  # noqa: RUF001 - sentence
    re.compile(r"\s+"),  # word
)
_ANYWHERE = len(_BORDERS)
_PIECES_A_PART = 8
_OVERLAP = 10
"""The next part repeats at most this fraction of a part: a tenth."""
_CHARACTERS_A_TOKEN = 16
"""Blanks may cost no token at all; a piece counts as one token for this many characters."""
_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)+")


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    border: int
    """What the piece ends at: an index of ``_BORDERS``, 0 being the strongest."""
    num_tokens: int


def split(content: str, frame: str, limits: TokenLimits) -> list[tuple[int, int]]:
    """Returns the parts of a section as (start, end) offsets, in order, overlapping a little.

    Every part fits together with the frame. Together the parts hold everything that is not blank.

    Args:
        content: The section body, blank lines at both ends trimmed.
        frame: What stands before the content in every embedding input.
        limits: Room of the model.
    """
    enormous = len(content) > limits.max_tokens * _CHARACTERS_A_TOKEN
    if not enormous and limits.fits(join(frame, content)):
        return [(0, len(content))]
    budget = limits.max_tokens - NUM_SPECIAL_TOKENS - limits.count(frame)
    while True:
        parts = _parts(content, budget, limits.count)
        # Token counts are not quite additive, so the sums are only a good guess.
        if budget <= 1 or all(limits.fits(join(frame, content[a:b])) for a, b in parts):
            return parts
        budget = budget * 3 // 4


def _parts(content: str, budget: int, count: TokenCounter) -> list[tuple[int, int]]:
    pieces = list(_pieces(content, budget, count))
    parts = []
    first = 0
    while first < len(pieces):
        last = _last_piece(pieces, first, budget)
        start, end = _trimmed(content, pieces[first].start, pieces[last - 1].end)
        if start < end:
            parts.append((start, end))
        first = last if last == len(pieces) else _overlap_start(pieces, first, last, budget)
    return parts


def _pieces(content: str, budget: int, count: TokenCounter) -> Iterator[_Piece]:
    size = max(1, budget // _PIECES_A_PART * 3)
    start = 0
    for end, border in _cuts(content, 0, len(content), size):
        yield from _counted(content, _Piece(start, end, border, 0), budget, count)
        start = end


def _cuts(text: str, start: int, end: int, size: int, level: int = 0) -> Iterator[tuple[int, int]]:
    """Yields (end, border) of consecutive pieces of at most ``size`` characters."""
    if level == _ANYWHERE:
        while end - start > size:
            cut = graphemes.boundary_before(text, start + size)
            start = cut if cut > start else start + size
            yield start, _ANYWHERE
        yield end, _ANYWHERE
        return
    run = previous = start
    for border in _borders(text, start, end, level):
        if border - run > size and previous > run:
            yield previous, level
            run = previous
        if border - run > size:
            *inner, _last = _cuts(text, run, border, size, level + 1)
            yield from inner
            yield border, level
            run = border
        previous = border
    if run < end:
        yield end, level


def _borders(text: str, start: int, end: int, level: int) -> Iterator[int]:
    last = start
    for match in _BORDERS[level].finditer(text, start, end):
        if match.end() > last:
            last = match.end()
            yield last
    if last < end:
        yield end


def _counted(content: str, piece: _Piece, budget: int, count: TokenCounter) -> Iterator[_Piece]:
    length = piece.end - piece.start
    tokens = max(count(content[piece.start : piece.end]), length // _CHARACTERS_A_TOKEN)
    if tokens <= max(1, budget // 4) or length == 1:
        yield _Piece(piece.start, piece.end, piece.border, tokens)
        return
    half = piece.start + length // 2
    middle = graphemes.boundary_before(content, half)
    middle = middle if middle > piece.start else half
    yield from _counted(content, _Piece(piece.start, middle, _ANYWHERE, 0), budget, count)
    yield from _counted(content, _Piece(middle, piece.end, piece.border, 0), budget, count)


def _last_piece(pieces: Sequence[_Piece], first: int, budget: int) -> int:
    """Returns the index after the last piece of the part that begins with ``first``."""
    total, last, best = 0, first, 0
    while last < len(pieces) and (last == first or total + pieces[last].num_tokens <= budget):
        total += pieces[last].num_tokens
        last += 1
        in_second_half = total * 2 > budget
        if in_second_half and (not best or pieces[last - 1].border <= pieces[best - 1].border):
            best = last
    return last if last == len(pieces) else best or last


def _overlap_start(pieces: Sequence[_Piece], first: int, last: int, budget: int) -> int:
    """Returns the piece with which the next part begins: some words before ``last``."""
    room = budget // _OVERLAP
    start = last
    while start - 1 > first and pieces[start - 1].num_tokens <= room:
        start -= 1
        room -= pieces[start].num_tokens
    while start < last and pieces[start - 1].border == _ANYWHERE:
        start += 1
    return start


def _trimmed(content: str, start: int, end: int) -> tuple[int, int]:
    blank = _LEADING_BLANK_LINES.match(content, start, end)
    start = blank.end() if blank else start
    return start, start + len(content[start:end].rstrip())
