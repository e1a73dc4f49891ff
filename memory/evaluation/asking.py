"""How good are the answers of an index, question by question?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory.evaluation.measures import measures
from memory.messages import Query
from memory.prompt_parts import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from memory.evaluation.question import Document, Question
    from memory.index import MemoryIndex
    from memory.messages import Hit

_DEPTH = 50
"""Files a search is asked for; as in every answer, at most three hits of a file count."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question and its vector."""

    question: Question
    vector: NDArray[np.float32] | None
    """Shape (dim,), or of each part, shape (n, dim); None if the model had none for it."""
    parts: tuple[str, ...] = ()
    """Of a long question, see ``prompt_parts``."""

    def query(self, limit: int, *, distinct: bool = False) -> Query:
        """Returns the question to an index, for so many files."""
        return Query(
            self.question.text,
            limit,
            wants_snippets=False,
            wants_distinct_files=distinct,
            parts=self.parts,
        )


def ask(
    question: Question,
    vector_of: Callable[[str], NDArray[np.float32] | None],
    scoring: str = "absolute",
) -> Asked:
    """Returns a question as a prompt is asked, in parts if it is long.

    Args:
        question: Any.
        vector_of: Returns the vector of a text, shape (dim,), or None if the model has none.
        scoring: ``memory.scoring``.
    """
    parts = in_parts(Query(question.text, 1), scoring).parts
    vectors = [vector_of(text) for text in parts or (question.text,)]
    known = [vector for vector in vectors if vector is not None]
    if len(known) < len(vectors):
        return Asked(question, None, parts)
    return Asked(question, np.stack(known) if parts else known[0], parts)


def answer_measures(index: MemoryIndex, asked: Asked) -> dict[str, float]:
    """Returns the measures of what an index answers to a question, see ``measures``."""
    question = asked.question
    limit = _DEPTH + len(question.exclude)
    result = index.search(asked.query(limit), asked.vector)
    return measures(ranking(result.hits, question), question.grades)


def ranking(hits: Iterable[Hit], question: Question) -> list[Document]:
    """Returns the documents that hits stand for, in their order, each once.

    A question that judges sections ranks sections, any other one ranks files.
    """
    documents = (
        (hit.path, section_title(hit.headlines) if question.by_section else "")
        for hit in hits
        if hit.path not in question.exclude
    )
    return list(dict.fromkeys(documents))


def section_title(headlines: str) -> str:
    """Returns the last title of a trail of headings: ``Meetings`` of ``# Adam > ## Meetings``."""
    return headlines.rpartition(" > ")[2].lstrip("#").strip()
