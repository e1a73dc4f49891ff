"""What does an agent find in its ``# Memories`` table, and what does the floor cost?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory.context_section import section_for
from memory.messages import Query

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from memory.config import Settings
    from memory.evaluation.asking import Asked
    from memory.index import MemoryIndex
    from memory.messages import FileSummary, SearchResult


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The table of one question."""

    num_rows: int
    recall: float
    """Share of the relevant files that have a row, in [0, 1]."""
    recall_unfiltered: float
    """The same of the first files that a search finds, as many as may have a row."""
    precision: float | None
    """Share of the rows whose file is relevant, in [0, 1]; None without rows."""


class MemoriesTable:
    """The tables that an index and a configuration make of prompts.

    Args:
        index: Searched, never changed.
        settings: Floor and length of the table.
    """

    def __init__(self, index: MemoryIndex, settings: Settings) -> None:
        self._index = index
        self._settings = settings
        self._limit = settings.memory.max_system_prompt_memory_results
        self._files: Mapping[str, FileSummary] = {file.path: file for file in index.files()}

    def figures(self, asked: Asked) -> TableFigures:
        """Returns how good the table of a question is; files judge, also where sections do."""
        exclude, relevant = asked.question.exclude, asked.question.relevant_paths
        shown = self.rows(asked)
        found = (hit.path for hit in self._search(asked, distinct=False).hits)
        unfiltered = [path for path in dict.fromkeys(found) if path not in exclude][: self._limit]
        num_right = len(relevant.intersection(shown))
        return TableFigures(
            num_rows=len(shown),
            recall=num_right / len(relevant),
            recall_unfiltered=len(relevant.intersection(unfiltered)) / len(relevant),
            precision=num_right / len(shown) if shown else None,
        )

    def rows(self, asked: Asked) -> tuple[str, ...]:
        """Returns the paths in the table of a question, best first."""
        result = self._search(asked, distinct=True)
        exclude = asked.question.exclude
        hits = tuple(hit for hit in result.hits if hit.path not in exclude)
        return self._rows(replace(result, hits=hits))

    def has_rows(
        self, prompt: str, vector: NDArray[np.float32] | None, parts: tuple[str, ...] = ()
    ) -> bool:
        """Tells whether any file is mentioned for a prompt; see ``Asked`` for vector and parts."""
        query = Query(
            prompt, self._limit, wants_snippets=False, wants_distinct_files=True, parts=parts
        )
        return bool(self._rows(self._index.search(query, vector)))

    def _search(self, asked: Asked, *, distinct: bool) -> SearchResult:
        limit = self._limit + len(asked.question.exclude)
        return self._index.search(asked.query(limit, distinct=distinct), asked.vector)

    def _rows(self, result: SearchResult) -> tuple[str, ...]:
        """Returns the paths in the table of an answer."""
        paths = dict.fromkeys(hit.path for hit in result.hits)
        # The files that were found are enough to make it of, and are few.
        section = section_for(result, [self._files[path] for path in paths], self._settings)
        return tuple(row.path for row in section.rows)
