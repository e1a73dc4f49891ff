"""How does the memory rank its chunks with ``scoring: orama``?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memory.fusion import Weights
from memory.orama_scoring import OramaHits, OramaIndex, OramaRow
from memory.orama_tokens import OramaTokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from memory.index_state import IndexState

# Cosines of equal vectors may differ by the rounding of float32, but must tie.
_COSINE_DIGITS = 6


class OramaRanking:
    """Ranks every chunk of an index state; not to be shared between threads.

    Its own copy of the text half is built by the first search of each revision.

    Args:
        language: One of ``memory.analysis.LANGUAGES``.
        weights: Only their ratio matters; as in Orama, a weight of zero makes them even.
        floor: Least cosine of a vector hit.
    """

    def __init__(self, language: str, weights: Weights, *, floor: float) -> None:
        self._tokenizer = OramaTokenizer(language)
        weights = weights.scaled()
        total = weights.text + weights.vector
        self._weights = Weights(weights.text / total, weights.vector / total)
        self._floor = floor
        self._built: tuple[int, OramaIndex] | None = None

    def search(self, state: IndexState, text: str, unit: NDArray[np.float32] | None) -> OramaHits:
        """Returns all hits best first; all but the cosines are in [0, 1].

        Orama's BM25 has no upper bound: here the best of the query counts as 1, for a search
        without vectors too.

        Args:
            state: Always of the same index.
            text: Not blank.
            unit: Embedding of the text, norm 1; None searches text alone.
        """
        index = self._index_over(state)
        similarities = None
        if unit is not None and len(index.rows):
            cosines = state.vectors.similarities(index.rows, unit).astype(np.float64)
            similarities = (index.rows, np.round(cosines, _COSINE_DIGITS))
        hits = index.search(
            text,
            similarities=similarities,
            weights=self._weights,
            floor=self._floor,
            limit=len(index.rows),
        )
        shares = hits.text_scores / (hits.text_scores.max(initial=0) or 1)
        scores = hits.scores if similarities is not None else shares
        return hits._replace(scores=scores, text_scores=shares)

    def _index_over(self, state: IndexState) -> OramaIndex:
        if self._built is None or self._built[0] != state.revision:
            self._built = (state.revision, OramaIndex(_rows_of(state), self._tokenizer))
        return self._built[1]


def _rows_of(state: IndexState) -> Iterator[OramaRow]:
    """Yields the rows by path and position."""
    for file in state.table.files():
        for row, chunk in zip(file.rows, file.packed.all_chunks(), strict=True):
            yield OramaRow(
                row=row,
                path=file.path,
                headlines=chunk.headlines,
                context=chunk.context,
                content=chunk.content,
                content_hash=chunk.content_hash,
            )
