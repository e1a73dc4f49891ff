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
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.fusion import FusedHits
    from memory.index_state import IndexState
    from memory.messages import Query
    from memory.orama_ranking import OramaRanking
    from memory.text_query import TextHits

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
    orama: OramaRanking | None = None
    """Takes the place of the other rules."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A chunk that answers."""

    rank: tuple[float, str, int]
    """Score below zero, path, position in the file."""
    text_score: float
    vector_score: float


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
        return tuple(_hit(state, each, (), analyzer) for each in _by_file(exact, query.limit))
    if rules.orama is not None:
        ranked = _as_orama(state, rules.orama, query, vector)
        terms = analyzer.query_terms(query.text)
        return tuple(_hit(state, each, terms, analyzer) for each in _by_file(ranked, query.limit))
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
        ranked, terms, cut = self._ranked(query.text, unit, limit)
        kept = _by_file(ranked, query.limit)
        wanted = min(query.limit, self._state.table.num_files)
        if cut and len({each.rank[1] for each in kept}) < wanted:
            ranked, terms, _cut = self._ranked(query.text, unit, _WIDENING * limit)
            kept = _by_file(ranked, query.limit)
        return tuple(_hit(self._state, each, terms, self._analyzer) for each in kept)

    def _ranked(
        self, text: str, unit: NDArray[np.float32] | None, limit: int
    ) -> tuple[Iterator[_Found], Collection[str], bool]:
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
        cut = len(texts.rows) >= limit or (vectors is not None and len(vectors.rows) >= limit)
        return self._best_first(fused), texts.terms, cut

    def _best_first(self, fused: FusedHits) -> Iterator[_Found]:
        below_zero = (-np.round(fused.scores, _SCORE_DIGITS)).tolist()
        owners = map(self._state.table.owner, fused.rows.tolist())
        ranks = [
            (score, *owner, number)
            for number, (score, owner) in enumerate(zip(below_zero, owners, strict=True))
        ]
        # As plain tuples: this runs for hundreds of candidates, of which a few are shown.
        for *rank, number in sorted(ranks):
            yield _Found(
                (rank[0], rank[1], rank[2]),
                float(fused.text_scores[number]),
                float(fused.vector_scores[number]),
            )

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


def _as_orama(
    state: IndexState, orama: OramaRanking, query: Query, vector: NDArray[np.float32] | None
) -> Iterator[_Found]:
    hits = orama.search(state, query.text, _unit(vector) if vector is not None else None)
    # As plain numbers, see ``_best_first``.
    for row, score, *sides in zip(*(array.tolist() for array in hits), strict=True):
        yield _Found((-score, *state.table.owner(row)), *sides)


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
    owners = sorted(
        state.table.owner(row)
        for name in hashes
        for row in state.table.rows_with(bytes.fromhex(name))
    )
    return [_Found((-1.0, *owner), 1.0, 0.0) for owner in owners]


def _by_file(ranked: Iterable[_Found], limit: int) -> list[_Found]:
    """Returns the first hits of each of the first ``limit`` files, in the given order."""
    kept: list[_Found] = []
    per_file: Counter[str] = Counter()
    for each in ranked:
        path = each.rank[1]
        if per_file[path] < MAX_HITS_PER_FILE and (path in per_file or len(per_file) < limit):
            per_file[path] += 1
            kept.append(each)
            if len(kept) == MAX_HITS_PER_FILE * limit:
                break
    return kept


def _hit(state: IndexState, found: _Found, terms: Collection[str], analyzer: Analyzer) -> Hit:
    below_zero, path, position = found.rank
    packed = state.table[path].packed
    chunk, summary = packed.chunk(position), packed.summary
    return Hit(
        path=path,
        headlines=chunk.headlines,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        score=-below_zero,
        text_score=found.text_score,
        vector_score=found.vector_score,
        snippet=snippet(chunk.content, terms, analyzer, limit=MAX_SNIPPET_CHARS),
        mtime_ns=summary.mtime_ns,
        size=summary.size,
    )
