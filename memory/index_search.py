"""Which chunks answer a query, in which order, and how many of each file?"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory.fusion import TextSide, VectorSide, Weights, fuse
from memory.messages import Hit
from memory.snippets import snippet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.index_state import IndexedFile, IndexState
    from memory.messages import Chunk, Query
    from memory.text_index import TextHits

MAX_HITS_PER_FILE = 3
MAX_SNIPPET_CHARS = 300
_MIN_CANDIDATES = 200
_CANDIDATES_PER_FILE = 30
_WIDENING = 8
# Scores that differ by less differ only by the rounding of float32.
_SCORE_DIGITS = 6
_CONTENT_HASH = re.compile(r"(?<!\w)[0-9a-f]{64}(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchRules:
    """How the sides become one score, see ``fusion.fuse``."""

    weights: Weights
    floor: float
    noise: float


@dataclass(frozen=True, slots=True)
class _Found:
    """A chunk with its scores."""

    file: IndexedFile
    position: int
    score: float
    text_score: float
    vector_score: float

    @property
    def chunk(self) -> Chunk:
        return self.file.parsed.chunks[self.position]

    @property
    def order(self) -> tuple[float, str, int]:
        return (-round(self.score, _SCORE_DIGITS), self.file.parsed.path, self.position)


def find_hits(
    state: IndexState,
    analyzer: Analyzer,
    rules: SearchRules,
    query: Query,
    vector: NDArray[np.float32] | None,
) -> tuple[Hit, ...]:
    """Returns hits by descending score, ties by path and position; see MemoryIndex.search.

    A content hash in the query asks for exactly the chunks that have it.
    """
    if not query.text.strip():
        return ()
    exact = _with_hash(state, query.text)
    if exact:
        return tuple(_hit(found, (), analyzer) for found in _by_file(exact, query.limit))
    return _Ranker(state, analyzer, rules).hits(query, vector)


class _Ranker:
    """The steps of one search over one state."""

    def __init__(self, state: IndexState, analyzer: Analyzer, rules: SearchRules) -> None:
        self._state = state
        self._analyzer = analyzer
        self._rules = rules

    def hits(self, query: Query, vector: NDArray[np.float32] | None) -> tuple[Hit, ...]:
        """Ranks the candidates, and more of them if few files hold them all (SPEC S7)."""
        unit = _unit(vector) if vector is not None and self._rules.weights.vector else None
        limit = max(_MIN_CANDIDATES, _CANDIDATES_PER_FILE * query.limit)
        found, terms, cut = self._ranked(query.text, unit, limit)
        kept = _by_file(found, query.limit)
        wanted = min(query.limit, self._state.table.num_files)
        if cut and len({id(each.file) for each in kept}) < wanted:
            found, terms, _cut = self._ranked(query.text, unit, _WIDENING * limit)
            kept = _by_file(found, query.limit)
        return tuple(_hit(each, terms, self._analyzer) for each in kept)

    def _ranked(
        self, text: str, unit: NDArray[np.float32] | None, limit: int
    ) -> tuple[list[_Found], Collection[str], bool]:
        """Returns the candidates best first, the terms of the query, and whether some were cut."""
        texts = self._state.text.search(text, limit=limit)
        vectors, rules = self._vector_side(texts.rows, unit, limit), self._rules
        fused = fuse(
            _text_side(texts),
            vectors,
            weights=rules.weights,
            floor=rules.floor,
            noise=rules.noise,
        )
        found = [
            _Found(*self._state.table.owner(row), *scores)
            for row, *scores in zip(
                fused.rows.tolist(),
                fused.scores.tolist(),
                fused.text_scores.tolist(),
                fused.vector_scores.tolist(),
                strict=True,
            )
        ]
        cut = len(texts.rows) >= limit or (vectors is not None and len(vectors.rows) >= limit)
        return sorted(found, key=lambda each: each.order), texts.terms, cut

    def _vector_side(
        self, text_rows: NDArray[np.int64], unit: NDArray[np.float32] | None, limit: int
    ) -> VectorSide | None:
        """Returns the most similar rows, and the cosines of what the text side found."""
        if unit is None:
            return None
        vectors = self._state.vectors
        rows, similarities = vectors.search(unit, limit=limit)
        if self._rules.weights.text:
            others = np.setdiff1d(text_rows, rows)
            rows = np.concatenate((rows, others))
            similarities = np.concatenate((similarities, vectors.similarities(others, unit)))
        return VectorSide(rows, similarities)


def _text_side(texts: TextHits) -> TextSide:
    # A query without a known term has no best possible score, and no hits either.
    return TextSide(texts.rows, texts.scores, texts.best_possible or 1.0)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns an own copy of norm 1."""
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(norm) or norm == 0:
        raise ValueError("the query vector is zero or not finite")
    return (vector / norm).astype(np.float32)


def _with_hash(state: IndexState, text: str) -> list[_Found]:
    hashes = {match[0].lower() for match in _CONTENT_HASH.finditer(text)}
    rows = (row for name in hashes for row in state.table.rows_with(name))
    found = [_Found(*state.table.owner(row), 1.0, 1.0, 0.0) for row in rows]
    return sorted(found, key=lambda each: each.order)


def _by_file(found: Iterable[_Found], limit: int) -> list[_Found]:
    """Returns the first hits of each of the first ``limit`` files, in the given order."""
    kept: list[_Found] = []
    per_file: Counter[str] = Counter()
    for each in found:
        path = each.file.parsed.path
        if per_file[path] < MAX_HITS_PER_FILE and (path in per_file or len(per_file) < limit):
            per_file[path] += 1
            kept.append(each)
    return kept


def _hit(found: _Found, terms: Collection[str], analyzer: Analyzer) -> Hit:
    parsed, chunk = found.file.parsed, found.chunk
    return Hit(
        path=parsed.path,
        headlines=chunk.headlines,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        score=found.score,
        text_score=found.text_score,
        vector_score=found.vector_score,
        snippet=snippet(chunk.content, terms, analyzer, limit=MAX_SNIPPET_CHARS),
        mtime_ns=parsed.mtime_ns,
        size=parsed.size,
    )
