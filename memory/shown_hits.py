"""What is shown of a chunk that answers a query?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memory.messages import Hit
from memory.snippets import Snippets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memory.analysis import Analyzer
    from memory.index_state import IndexState
    from memory.messages import Query

MAX_SNIPPET_CHARS = 300


class Found(NamedTuple):
    """A chunk to be shown."""

    path: str
    position: int
    """In the file."""
    score: float
    text_score: float
    vector_score: float
    noise: float = 0.0
    number: int = 0
    """Of the text that it answers, among those of the query."""


def hits_of(
    state: IndexState,
    found: Iterable[Found],
    query: Query,
    terms: Sequence[Collection[str]],
    analyzer: Analyzer,
) -> tuple[Hit, ...]:
    """Returns what is shown of chunks, with snippets around the terms if the query wants them.

    Args:
        state: Where the chunks are.
        found: The chunks.
        query: What was asked.
        terms: Of each text of the query.
        analyzer: The one that made the terms.
    """
    found = list(found)
    snippets: Mapping[int, Snippets] = {}
    if query.wants_snippets:
        snippets = {
            number: Snippets(terms[number], analyzer, MAX_SNIPPET_CHARS)
            for number in {each.number for each in found}
        }
    parts = query.parts or ("",)
    return tuple(
        [_hit(state, each, parts[each.number], snippets.get(each.number)) for each in found]
    )


def _hit(state: IndexState, found: Found, part: str, snippets: Snippets | None) -> Hit:
    path, position, score, text_score, vector_score, noise, _number = found
    packed = state.table[path].packed
    headlines, content, start_line, end_line = packed.section(position)
    snippet = snippets.of(content) if snippets is not None else ""
    summary = packed.summary
    # By position: names take a third longer.
    return Hit(
        path,
        headlines,
        start_line,
        end_line,
        score,
        text_score,
        vector_score,
        snippet,
        summary.mtime_ns,
        summary.size,
        noise,
        part,
    )
