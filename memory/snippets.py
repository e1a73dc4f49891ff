"""Which piece of a text shows best why it was found?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from memory.graphemes import boundary_before

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from memory.analysis import Analyzer

_LONGEST_WORD = 30
"""Characters given up to end on a word; longer words are cut."""


def snippet(content: str, terms: Collection[str], analyzer: Analyzer, limit: int = 300) -> str:
    """Returns the piece of a text that holds the most different terms, on one line.

    The beginning of the text if it holds none. Borders lie between words where there are spaces,
    never inside a grapheme cluster.

    Args:
        content: Any text; white space is collapsed.
        terms: Terms of the query, as ``TextHits`` names them.
        analyzer: The one that made the terms.
        limit: Most characters, at least 1.
    """
    text = " ".join(content.split())
    if len(text) <= limit:
        return text
    start, end = _densest(_matches(text, frozenset(terms), analyzer), limit)
    # What is left around the words is shared out evenly, and shifted where the text ends.
    start = min(max(0, start - (limit - (end - start)) // 2), len(text) - limit)
    return _on_borders(text, start, start + limit)


def _matches(
    text: str, terms: frozenset[str], analyzer: Analyzer
) -> list[tuple[int, int, frozenset[str]]]:
    spans = ((start, end, terms.intersection(found)) for start, end, found in analyzer.spans(text))
    return [(start, end, found) for start, end, found in spans if found]


def _densest(matches: Sequence[tuple[int, int, frozenset[str]]], limit: int) -> tuple[int, int]:
    """Returns (start, end) of the first run of matches with the most terms within the limit."""
    best, best_count = (0, 0), 0
    inside: Counter[str] = Counter()
    first = 0
    for start, end, found in matches:
        inside.update(found)
        while matches[first][0] < start and end - matches[first][0] > limit:
            inside.subtract(matches[first][2])
            first += 1
        count = sum(1 for occurrences in inside.values() if occurrences > 0)
        if count > best_count:
            best, best_count = (matches[first][0], min(end, matches[first][0] + limit)), count
    return best


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
