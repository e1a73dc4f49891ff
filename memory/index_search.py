"""Which chunks answer a query, in which order, and how many of each file?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory.calibration import NEUTRAL, threshold_of_parts
from memory.fusion import VectorSide, Weights, best_of, fuse
from memory.grouping import DistinctFiles, Grouping, best_of_files
from memory.shown_hits import Found, hits_of
from memory.text_query import terms_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.fusion import FusedHits
    from memory.index_state import IndexState
    from memory.messages import Hit, Query
    from memory.orama_ranking import OramaRanking
    from memory.text_query import TextHits

_MIN_CANDIDATES = 200
_CANDIDATES_PER_FILE = 30
_WIDENING = 8
_CONTENT_HASH = re.compile(r"(?<!\w)[0-9a-f]{64}(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchRules:
    """How the sides become one score, see ``fusion.fuse``."""

    weights: Weights
    floor: float
    orama: OramaRanking | None = None
    """Takes the place of the other rules."""


class _Answer(NamedTuple):
    """Candidates for the hits of a query."""

    fused: FusedHits
    numbers: NDArray[np.int64] | None
    """Of the text that each answers, shape (n,); None if there is one."""
    terms: Sequence[Collection[str]]
    """Of each text."""
    is_cut: bool
    """Whether there are more of them."""
    threshold: float


def find_hits(
    state: IndexState,
    analyzer: Analyzer,
    rules: SearchRules,
    query: Query,
    vector: NDArray[np.float32] | None,
) -> tuple[tuple[Hit, ...], float]:
    """Returns hits by descending score, ties by path and position; see MemoryIndex.search.

    A content hash in the query asks for exactly the chunks that have it.

    Returns:
        The hits, and the level from which on they score more than 0.55.
    """
    usual = state.threshold_of(rules.weights) or NEUTRAL
    if not query.text.strip():
        return (), usual
    exact = _with_hash(state, query)
    if exact:
        return hits_of(state, exact, query, ((),), analyzer), usual
    if rules.orama is None:
        return _Ranker(state, analyzer, rules).hits(query, vector)
    found = _as_orama(state, rules.orama, query, vector)
    terms = terms_of(analyzer, query.text)
    return hits_of(state, found, query, (terms,), analyzer), usual


def best_level(
    state: IndexState,
    analyzer: Analyzer,
    rules: SearchRules,
    text: str,
    vector: NDArray[np.float32] | None,
) -> float:
    """Returns the level of the best answer to a text, see ``fusion``, before it is calibrated."""
    return _Ranker(state, analyzer, rules).level(text, vector)


class _Ranker:
    """The steps of one search over one state."""

    def __init__(self, state: IndexState, analyzer: Analyzer, rules: SearchRules) -> None:
        self._state = state
        self._analyzer = analyzer
        self._rules = rules

    def hits(
        self, query: Query, vector: NDArray[np.float32] | None
    ) -> tuple[tuple[Hit, ...], float]:
        """Ranks the candidates, and more of them if few files hold them all (SPEC S7)."""
        units = self._units(query, vector)
        limit = max(_MIN_CANDIDATES, _CANDIDATES_PER_FILE * query.limit)
        answer = self._answer(query, units, limit)
        kept = self._grouped(answer.fused, query)
        wanted = min(query.limit, self._state.table.num_files)
        if answer.is_cut and kept.num_files < wanted and not kept.is_exhausted:
            # Copies may be many more than the sections of one file.
            widening = _WIDENING**2 if query.wants_distinct_files else _WIDENING
            answer = self._answer(query, units, widening * limit)
            kept = self._grouped(answer.fused, query)
        found = self._found(answer, kept)
        return hits_of(self._state, found, query, answer.terms, self._analyzer), answer.threshold

    def level(self, text: str, vector: NDArray[np.float32] | None) -> float:
        """Returns the level of the best candidate."""
        unit = _unit(vector) if vector is not None and self._rules.weights.vector else None
        return self._fused(text, unit, _MIN_CANDIDATES)[0].level

    def _units(
        self, query: Query, vector: NDArray[np.float32] | None
    ) -> Sequence[NDArray[np.float32] | None]:
        """Returns the vector of each text of a query."""
        if vector is None or not self._rules.weights.vector:
            return [None] * len(query.texts)
        vectors = [vector] if vector.ndim == 1 else list(vector)
        if len(vectors) != len(query.texts):
            raise ValueError(f"{len(vectors)} vectors for {len(query.texts)} parts of a query")
        return list(map(_unit, vectors))

    def _answer(
        self, query: Query, units: Sequence[NDArray[np.float32] | None], limit: int
    ) -> _Answer:
        """Returns the candidates of all texts, each row once."""
        threshold = self._state.threshold_of(self._rules.weights) or NEUTRAL
        every = [self._fused(*each, limit) for each in zip(query.texts, units, strict=True)]
        answers, terms, cuts = zip(*every, strict=True)
        if len(answers) == 1:
            return _Answer(answers[0], None, terms, cuts[0], threshold)
        threshold = threshold_of_parts(threshold, [each.level for each in answers])
        fused, numbers = best_of([each.at(threshold) for each in answers])
        return _Answer(fused, numbers, terms, any(cuts), threshold)

    def _found(self, answer: _Answer, kept: Grouping) -> Iterator[Found]:
        """Yields the chunks that are shown."""
        fused, numbers = answer.fused, answer.numbers
        texts, vectors = fused.text_scores, fused.vector_scores
        noise = self._state.noise.take(fused.rows[[ranked[-1] for ranked in kept.kept]]).tolist()
        for (below_zero, path, position, hit), each in zip(kept.kept, noise, strict=True):
            number = int(numbers[hit]) if numbers is not None else 0
            sides = float(texts[hit]), float(vectors[hit])
            yield Found(path, position, -below_zero, *sides, each, number)

    def _grouped(self, fused: FusedHits, query: Query) -> Grouping:
        grouping = _grouping(self._state, query)
        best_of_files(self._state.table, fused, grouping)
        return grouping

    def _fused(
        self, text: str, unit: NDArray[np.float32] | None, limit: int
    ) -> tuple[FusedHits, Collection[str], bool]:
        """Returns the candidates, the terms of the query, and whether some were cut."""
        rules = self._rules
        texts = self._state.text.search(text, limit=limit) if rules.weights.text else None
        vectors = self._vector_side(texts, unit, limit)
        fused = fuse(
            texts,
            vectors,
            weights=rules.weights,
            floor=rules.floor,
            noise=self._state.noise.base,
            threshold=self._state.threshold_of(rules.weights) or NEUTRAL,
        )
        cut = any(side is not None and len(side.rows) >= limit for side in (texts, vectors))
        return fused, texts.terms if texts else terms_of(self._analyzer, text), cut

    def _vector_side(
        self, texts: TextHits | None, unit: NDArray[np.float32] | None, limit: int
    ) -> VectorSide | None:
        """Returns the most similar rows, and the cosines of what the text side found."""
        if unit is None:
            return None
        also = texts.rows if texts is not None else None
        rows, similarities = self._state.vectors.search(unit, limit=limit, also=also)
        return VectorSide(rows, similarities, self._state.noise.take(rows))


def _grouping(state: IndexState, query: Query) -> Grouping:
    distinct = DistinctFiles(state.table) if query.wants_distinct_files else None
    return Grouping(query.limit, distinct)


def _as_orama(
    state: IndexState, orama: OramaRanking, query: Query, vector: NDArray[np.float32] | None
) -> list[Found]:
    if query.parts:
        raise ValueError("Orama asks every text as it is")
    hits = orama.search(state, query.text, _unit(vector) if vector is not None else None)
    grouping = _grouping(state, query)
    owners = map(state.table.owner, hits.rows.tolist())
    # In their order. As plain numbers: this runs for every chunk, of which a few are shown.
    grouping.extend(
        (-score, *owner, number)
        for number, (score, owner) in enumerate(zip(hits.scores.tolist(), owners, strict=True))
    )
    return [
        Found(
            path,
            position,
            -below_zero,
            float(hits.text_scores[number]),
            float(hits.vector_scores[number]),
        )
        for below_zero, path, position, number in grouping.kept
    ]


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns an own copy of norm 1."""
    exact = vector.astype(np.float64)
    norm = math.sqrt(exact @ exact)
    if not math.isfinite(norm) or norm == 0:
        raise ValueError("the query vector is zero or not finite")
    return (vector / norm).astype(np.float32, copy=False)


def _with_hash(state: IndexState, query: Query) -> list[Found]:
    hashes = {match[0].lower() for match in _CONTENT_HASH.finditer(query.text)}
    if not hashes:
        return []
    owners = sorted(
        state.table.owner(row)
        for name in hashes
        for row in state.table.rows_with(bytes.fromhex(name))
    )
    grouping = _grouping(state, query)
    grouping.extend((-1.0, *owner, 0) for owner in owners)
    return [Found(path, position, 1.0, 1.0, 0.0) for _, path, position, _ in grouping.kept]
