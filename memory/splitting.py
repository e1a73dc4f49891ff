"""Where is a section cut that is too long for the embedding model (SPEC C7)?

A section is first taken apart into small pieces whose tokens are counted once. Pieces are then put
together to parts. A part ends at the strongest border in its second half: a paragraph, else a line,
a sentence, a word, at last any place between two characters. The next part repeats the last tenth.
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

_SENTENCE = r"""(?:[.!?…؟।]["'”’)]?\s|[。！？｡])"""  # noqa: RUF001 - meant as they are
_LAST_BORDERS = tuple(
    re.compile(rf".*{border}", re.DOTALL) for border in (r"\n\n", r"\n", _SENTENCE, r"\s")
)
"""Match up to the last border of a kind, strongest kind first."""
_ANYWHERE = len(_LAST_BORDERS)
_FIRST_BORDERS = (re.compile(_SENTENCE), re.compile(r"\s"))
_OVERLAP = 10
"""The next part repeats at most this fraction of a part: a tenth."""
_CHARACTERS_A_TOKEN = 16
"""Blanks may cost no token at all; a piece counts as one token for this many characters."""
_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)+")


@dataclass(frozen=True, slots=True)
class _Piece:
    end: int
    """Offset of the end; a piece begins where the one before ends."""
    border: int
    """What it ends at: an index of ``_LAST_BORDERS``, or ``_ANYWHERE``."""
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
        parts = list(_parts(content, budget, limits.count))
        # Token counts are not quite additive, so the sums are only a good guess.
        if budget <= 1 or all(limits.fits(join(frame, content[a:b])) for a, b in parts):
            return parts
        budget = budget * 3 // 4


def _parts(content: str, budget: int, count: TokenCounter) -> Iterator[tuple[int, int]]:
    pieces = list(_pieces(content, budget, count))
    start = num_repeated = index = last_end = 0
    while index < len(pieces):
        index = _part_end(pieces, index, budget - num_repeated)
        end = pieces[index - 1].end
        trimmed = _trimmed(content, start, end)
        # A part of blanks behind what it repeats would say nothing new.
        if trimmed[1] > max(trimmed[0], last_end):
            yield trimmed
            last_end = trimmed[1]
        start = _overlap_start(content, start, end)
        num_repeated = count(content[start:end])
        if num_repeated > budget // 4:
            start, num_repeated = end, 0


def _pieces(content: str, budget: int, count: TokenCounter) -> Iterator[_Piece]:
    """Yields pieces of a quarter of the budget at most, unless one character takes more."""
    room = max(1, budget // 4)
    start, size = 0, budget // 2
    while start < len(content):
        end, border = _piece_end(content, start, max(1, size))
        tokens = count(content[start:end])
        while tokens > room and end - start > 1:
            end, border = _piece_end(content, start, (end - start) // 2)
            tokens = count(content[start:end])
        yield _Piece(end, border, max(tokens, (end - start) // _CHARACTERS_A_TOKEN))
        # The next piece will cost about as many tokens a character as this one.
        size = min(budget // 2, room * (end - start) // max(1, tokens))
        start = end


def _piece_end(content: str, start: int, size: int) -> tuple[int, int]:
    limit = start + size
    if limit >= len(content):
        return len(content), 0
    for border, pattern in enumerate(_LAST_BORDERS):
        if match := pattern.match(content, start, limit):
            return match.end(), border
    end = graphemes.boundary_before(content, limit)
    return (end if end > start else limit), _ANYWHERE


def _part_end(pieces: Sequence[_Piece], first: int, budget: int) -> int:
    """Returns the index after the last piece of the part to which ``first`` is the next piece."""
    total, last, best = 0, first, 0
    while last < len(pieces) and (last == first or total + pieces[last].num_tokens <= budget):
        total += pieces[last].num_tokens
        last += 1
        in_second_half = total * 2 > budget
        if in_second_half and (not best or pieces[last - 1].border <= pieces[best - 1].border):
            best = last
    return last if last == len(pieces) else best or last


def _overlap_start(content: str, start: int, end: int) -> int:
    """Returns where the next part begins: with the first sentence, else word, of the last tenth."""
    earliest = end - (end - start) // _OVERLAP
    for pattern in _FIRST_BORDERS:
        match = pattern.search(content, earliest, end)
        if match and match.end() < end:
            return match.end()
    return graphemes.boundary_before(content, earliest)


def _trimmed(content: str, start: int, end: int) -> tuple[int, int]:
    blank = _LEADING_BLANK_LINES.match(content, start, end)
    start = blank.end() if blank else start
    return start, start + len(content[start:end].rstrip())
