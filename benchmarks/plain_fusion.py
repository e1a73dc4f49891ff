"""How would plain fusion rank: each side divided by its maximum, weighted, summed, no floor?

The reference that the product's own scores are compared with. BM25 is that of the product's text
half, cosines are computed here from the stored vectors. The text score of a hit would not do: it is
a share of what a query can reach, cut at 1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from memory.evaluation.asking import section_title

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory.evaluation.question import Document, Question
    from memory.index import MemoryIndex

MAX_CHUNKS_PER_FILE = 3
"""As in every answer of the product."""


class PlainFusion:
    """Weighted sum of both sides over all chunks of an index.

    Args:
        index: Built file by file in the order of their paths, so that its rows are numbered as its
            entries come.
        weight: Share of the text side.
    """

    def __init__(self, index: MemoryIndex, *, weight: float = 0.5) -> None:
        self._text = index.text
        self._weight = weight
        entries = list(index.entries())
        self._paths = [path for path, _chunk, _vector in entries]
        self._titles = [section_title(chunk.headlines) for _path, chunk, _vector in entries]
        self._vectors = np.stack([vector for _path, _chunk, vector in entries])

    def ranking(self, question: Question, vector: NDArray[np.float32]) -> list[Document]:
        """Returns the documents, best first, each once."""
        unit = vector / np.linalg.norm(vector)
        cosines = np.maximum(self._vectors @ unit, 0)
        texts = self._bm25(question.text)
        share = self._weight / (texts.max() or 1), (1 - self._weight) / (cosines.max() or 1)
        scores = (texts * share[0] + cosines * share[1]).round(6)
        found: dict[Document, None] = {}
        taken: Counter[str] = Counter()
        for number in np.lexsort((np.arange(len(scores)), -scores)).tolist():
            path = self._paths[number]
            taken[path] += 1
            if taken[path] <= MAX_CHUNKS_PER_FILE and path not in question.exclude:
                found[path, self._titles[number] if question.by_section else ""] = None
        return list(found)

    def _bm25(self, text: str) -> NDArray[np.float64]:
        found = self._text.search(text, limit=len(self._paths))
        scores = np.zeros(len(self._paths))
        scores[found.rows] = found.scores
        return scores
