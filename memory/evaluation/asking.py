"""How good are the answers of an index, question by question?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.evaluation.measures import measures
from memory.messages import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
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
    """Shape (dim,); None if the model had none for it."""


def answer_measures(index: MemoryIndex, asked: Asked) -> dict[str, float]:
    """Returns the measures of what an index answers to a question, see ``measures``."""
    question = asked.question
    limit = _DEPTH + len(question.exclude)
    result = index.search(Query(question.text, limit, wants_snippets=False), asked.vector)
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
