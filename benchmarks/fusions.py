"""How would well-known fusions rank, over all chunks of an index and without a floor?

The references that the product's own scores are compared with. BM25 is that of the product's text
half, cosines are computed here from the stored vectors. The text score of a hit would not do: it is
a share of what a query can reach, cut at 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory.evaluation.asking import section_title

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memory.calibration import Reference
    from memory.evaluation.asking import Asked
    from memory.evaluation.question import Document, Question
    from memory.index import MemoryIndex

MAX_CHUNKS_PER_FILE = 3
"""As in every answer of the product."""
RANK_CONSTANT = 60
EVIDENCE = 0.1
NUM_EVIDENCE = 3
FEEDBACK = 0.3
NUM_FEEDBACK = 3

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What is known of every chunk for one question; arrays have shape (n,) if nothing is said."""

    bm25: Scores
    """At least 0; 0 without a word of the question."""
    coverage: Scores
    """How much of the question is held, in [0, 1], see ``memory.text_query``."""
    cosines: Scores
    query: NDArray[np.float32]
    """Shape (dim,), unit norm."""
    vectors: NDArray[np.float32]
    """Shape (n, dim), unit norm."""
    noise: Scores
    """Cosine with texts that have nothing to do with the chunk, in [base, 1)."""
    base: float
    """The same in a language that the model knows."""
    files: NDArray[np.intp]
    """Number of the file."""


def max_normalised(sides: Sides) -> Scores:
    """Each side divided by its maximum."""
    return (_by_maximum(sides.bm25) + _by_maximum(sides.cosines)) / 2


def reciprocal_rank_fusion(sides: Sides) -> Scores:
    """Sum of 1 / (60 + rank), scaled to at most 1; words rank only the chunks that have one.

    Source:
        Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual
        rank learning methods, 2009.
    """
    text = np.where(sides.bm25 > 0, _reciprocal_ranks(sides.bm25), 0)
    return (text + _reciprocal_ranks(sides.cosines)) * (RANK_CONSTANT + 1) / 2


def min_max_normalised(sides: Sides) -> Scores:
    """Each side from its minimum to its maximum."""
    return (_from_minimum(sides.bm25) + _from_minimum(sides.cosines)) / 2


def absolute_sum(sides: Sides) -> Scores:
    """How much of the query is held, and cosine above noise, whatever the best hit has."""
    relevance = np.maximum((sides.cosines - sides.noise) / (1 - sides.base), 0)
    return (sides.coverage + relevance) / 2


def file_evidence(sides: Sides) -> Scores:
    """Max-normalised, plus a tenth of each of the next three chunks of the same file."""
    scores = max_normalised(sides)
    order = np.lexsort((-scores, sides.files))
    files = sides.files[order]
    places = np.arange(len(files)) - np.searchsorted(files, files)
    following = (places >= 1) & (places <= NUM_EVIDENCE)
    evidence = np.bincount(
        files[following], scores[order][following], minlength=int(files.max()) + 1
    )
    return scores + EVIDENCE * evidence[sides.files]


def noise_off_each_row(sides: Sides) -> Scores:
    """Max-normalised, after what the noise of a row exceeds the base is taken off its cosine.

    Source:
        Chowdhury et al., Nearest neighbor normalization improves multimodal retrieval, 2024.
    """
    return (_by_maximum(sides.bm25) + _by_maximum(sides.cosines - sides.noise + sides.base)) / 2


def pseudo_relevance_feedback(sides: Sides) -> Scores:
    """Max-normalised, with a query moved towards the three best chunks that it found before.

    Source:
        Rocchio, Relevance feedback in information retrieval, 1971, without what is not relevant.
    """
    best = np.argsort(-max_normalised(sides), kind="stable")[:NUM_FEEDBACK]
    moved = (1 - FEEDBACK) * sides.query + FEEDBACK * sides.vectors[best].mean(axis=0)
    cosines = sides.vectors @ (moved / np.linalg.norm(moved))
    return (_by_maximum(sides.bm25) + _by_maximum(cosines)) / 2


FUSIONS: Mapping[str, Callable[[Sides], Scores]] = {
    "max-normalised": max_normalised,
    "reciprocal rank fusion": reciprocal_rank_fusion,
    "min-max normalised": min_max_normalised,
    "absolute sum": absolute_sum,
    "file evidence": file_evidence,
    "noise off each row": noise_off_each_row,
    "pseudo-relevance feedback": pseudo_relevance_feedback,
}


class Rankings:
    """What every fusion answers.

    Args:
        index: Built file by file in the order of their paths, so that its rows are numbered as its
            entries come.
        reference: Measures the noise of its rows.
    """

    def __init__(self, index: MemoryIndex, reference: Reference) -> None:
        self._text = index.text
        entries = list(index.entries())
        self._paths = [path for path, _chunk, _vector in entries]
        self._titles = [section_title(chunk.headlines) for _path, chunk, _vector in entries]
        self._vectors = np.stack([vector for _path, _chunk, vector in entries])
        self._files = np.unique(self._paths, return_inverse=True)[1]
        self._noise = reference.noise_of(self._vectors).astype(np.float64)
        self._base = reference.base

    def of(self, asked: Asked) -> dict[str, list[Document]]:
        """Returns the documents by fusion, best first, each once."""
        sides = self._sides(asked)
        return {name: self._cut(fusion(sides), asked.question) for name, fusion in FUSIONS.items()}

    def _sides(self, asked: Asked) -> Sides:
        assert asked.vector is not None
        found = self._text.search(asked.question.text, limit=len(self._paths))
        bm25, coverage = np.zeros(len(self._paths)), np.zeros(len(self._paths))
        bm25[found.rows], coverage[found.rows] = found.scores, found.coverage
        # They know no parts: a long question has the mean of their vectors.
        query = np.atleast_2d(asked.vector).mean(axis=0)
        query /= np.linalg.norm(query)
        return Sides(
            bm25=bm25,
            coverage=coverage,
            cosines=(self._vectors @ query).astype(np.float64),
            query=query,
            vectors=self._vectors,
            noise=self._noise,
            base=self._base,
            files=self._files,
        )

    def _cut(self, scores: Scores, question: Question) -> list[Document]:
        found: dict[Document, None] = {}
        taken: Counter[str] = Counter()
        for number in np.argsort(-scores.round(6), kind="stable").tolist():
            path = self._paths[number]
            taken[path] += 1
            if taken[path] <= MAX_CHUNKS_PER_FILE and path not in question.exclude:
                found[path, self._titles[number] if question.by_section else ""] = None
        return list(found)


def _by_maximum(values: Scores) -> Scores:
    above_zero = np.maximum(values, 0)
    return above_zero / (above_zero.max() or 1)


def _from_minimum(values: Scores) -> Scores:
    above_least: Scores = values - values.min()
    return above_least / (above_least.max() or 1)


def _reciprocal_ranks(values: Scores) -> Scores:
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return 1 / (RANK_CONSTANT + ranks)
