"""Which rows answer a query, with which scores, as Orama 3.1.18 has it?

The compatibility mode ``scoring: orama`` (SPEC S5). Scores, ties and faults are Orama's with its
defaults (no tolerance, threshold 1, no boost):

- Text: BM25 summed over five fields and every word that begins with a token of the query. Orama
  counts a word once a field and row, whatever it occurs.
- Hybrid: each side divided by its maximum, weighted and summed.
- A word of JavaScript's own objects: ``constructor`` counts as found nowhere, ``__proto__`` is
  never found.
- Equal hybrid scores keep the order of the text side. There, equal scores keep the order in which
  the walk over Orama's prefix tree met the rows first, which ``_walk`` repeats.

One answer is not Orama's: its hybrid search scores an empty text as NaN, here the text side is
empty then. Of giant queries the first ``MAX_QUERY_CHARS`` characters and ``MAX_QUERY_TOKENS``
tokens count.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from memory.fusion import Weights
    from memory.orama_tokens import OramaTokenizer

MAX_QUERY_CHARS = 16_384
MAX_QUERY_TOKENS = 64

_K, _B, _D = 1.2, 0.75, 0.5
_EVEN = 0.5
_FIELDS = ("path", "headlines", "context", "content", "content_hash")
_COUNTED_NOWHERE = "constructor"
_NEVER_FOUND = "__proto__"
_AFTER_ALL = "\U0010ffff"
# Keys of a JavaScript object that are numbers up to this come before all others, ascending.
_MAX_ARRAY_INDEX = 2**32 - 2
_MAX_ARRAY_INDEX_DIGITS = len(str(_MAX_ARRAY_INDEX))


@dataclass(frozen=True, slots=True)
class OramaRow:
    """A chunk as Orama's schema has it."""

    row: int
    path: str
    headlines: str
    context: str
    content: str
    content_hash: str


class OramaHits(NamedTuple):
    """Rows best first; all arrays have shape (n,)."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    """What Orama calls the score: at most the sum of the weights in hybrid mode, BM25 without
    vectors, a cosine without text."""
    text_scores: NDArray[np.float64]
    """BM25, unbounded; 0 where the text side found nothing."""
    vector_scores: NDArray[np.float64]
    """Cosine; 0 where it is below the floor or not known."""


class OramaIndex:
    """What Orama answers over a set of rows that does not change; not to be shared by threads.

    Args:
        rows: Distinct rows in the order of their insertion.
        tokenizer: Splits the texts now and the queries later.
    """

    def __init__(self, rows: Iterable[OramaRow], tokenizer: OramaTokenizer) -> None:
        self._tokenizer = tokenizer
        listed = list(rows)
        self.rows: NDArray[np.int64] = np.array([row.row for row in listed], np.int64)
        """Its rows in the order of their insertion, shape (n,)."""
        self._fields = [
            _Field([self._tokenizer.tokens(getattr(row, field)) for row in listed])
            for field in _FIELDS
        ]

    def search(
        self,
        text: str | None,
        *,
        similarities: tuple[NDArray[np.int64], NDArray[np.floating]] | None,
        weights: Weights,
        floor: float,
        limit: int,
    ) -> OramaHits:
        """Returns the best rows, in Orama's mode ``hybrid``, ``fulltext`` or ``vector``.

        Args:
            text: None searches vectors alone.
            similarities: Rows of this index and their cosines, each of shape (n,); None searches
                text alone. Without either there are no hits.
            weights: Taken as they are, not by their ratio; if one is zero, both are 0.5.
            floor: Least cosine of a vector hit.
            limit: Most rows.
        Raises:
            ValueError: a row of the similarities is not in the index.
        """
        found, bm25 = self._text_side(text or "")
        similar, cosines = self._vector_side(similarities, floor)
        if text is None:
            order, scores = similar, cosines
        elif similarities is None:
            order, scores = np.sort(found) if text else np.arange(len(bm25)), bm25
        else:
            order = np.concatenate((found, np.setdiff1d(similar, found)))
            shares = (weights.text, weights.vector)
            by_text, by_vector = shares if all(shares) else (_EVEN, _EVEN)
            scores = by_text * _by_maximum(bm25, found) + by_vector * _by_maximum(cosines, similar)
        best = order[np.argsort(-scores[order], kind="stable")][:limit]
        return OramaHits(self.rows[best], scores[best], bm25[best], cosines[best])

    def _text_side(self, text: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Returns the numbers of the rows found, best first, and the BM25 of every row."""
        tokens = self._tokenizer.tokens(text[:MAX_QUERY_CHARS])[:MAX_QUERY_TOKENS]
        parts = [field.find(token) for field in self._fields for token in tokens]
        met = np.concatenate([_NOTHING[0], *(rows for rows, _scores in parts)])
        each = np.concatenate([_NOTHING[1], *(scores for _rows, scores in parts)])
        bm25 = np.asarray(np.bincount(met, each, minlength=len(self.rows)), np.float64)
        found, first_met = np.unique(met, return_index=True)
        found = found[np.argsort(first_met)]
        return found[np.argsort(-bm25[found], kind="stable")], bm25

    def _vector_side(
        self, similarities: tuple[NDArray[np.int64], NDArray[np.floating]] | None, floor: float
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Returns the numbers of the rows that reach the floor, ascending, and their cosines."""
        cosines = np.zeros(len(self.rows))
        if similarities is None:
            return _NOTHING[0], cosines
        numbers = self._numbers_of(similarities[0])
        kept = similarities[1] >= floor
        cosines[numbers[kept]] = similarities[1][kept]
        return np.sort(numbers[kept]), cosines

    def _numbers_of(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """Returns the place of each row in the order of insertion."""
        if np.array_equal(rows, self.rows):
            return np.arange(len(rows))
        if not np.isin(rows, self.rows).all():
            raise ValueError("similarities of rows that are not in the index")
        sorter = np.argsort(self.rows)
        numbers: NDArray[np.intp] = sorter[np.searchsorted(self.rows, rows, sorter=sorter)]
        return numbers


_NOTHING = (np.empty(0, np.intp), np.empty(0, np.float64))


class _Field:
    """Which rows hold a word in one field, and what it adds to their score.

    Args:
        tokens: Distinct tokens of each row, by number of the row.
    """

    def __init__(self, tokens: Sequence[Sequence[str]]) -> None:
        inserted = list(dict.fromkeys(chain.from_iterable(tokens)))
        self._words = sorted(inserted)
        places = {word: place for place, word in enumerate(self._words)}
        self._ranks = np.empty(len(inserted), np.int64)
        for rank, word in enumerate(_walk(inserted)):
            self._ranks[places[word]] = rank if (number := _array_index(word)) is None else number
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        words = np.fromiter(map(places.__getitem__, chain.from_iterable(tokens)), np.intp)
        order = np.argsort(words, kind="stable")
        self._rows = np.repeat(np.arange(len(tokens)), lengths)[order]
        self._counts = np.bincount(words, minlength=len(places))
        self._ends = np.cumsum(self._counts)
        counted = self._counts.copy()
        counted[places.get(_COUNTED_NOWHERE, [])] = 0
        self._scores = _bm25(counted[words[order]], lengths[self._rows], lengths)
        self._counts[places.get(_NEVER_FOUND, [])] = 0

    def find(self, token: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Returns a row and its gain for each row of each word with this beginning.

        In the order in which Orama adds them up.
        """
        first = bisect_left(self._words, token)
        end = bisect_left(self._words, f"{token}{_AFTER_ALL}", first)
        words = first + np.argsort(self._ranks[first:end])
        counts = self._counts[words]
        starts = self._ends[words] - np.cumsum(counts)
        at = np.repeat(starts, counts) + np.arange(counts.sum())
        return self._rows[at], self._scores[at]


def _bm25(
    num_rows: NDArray[np.int64], length: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Returns the score of each posting.

    Args:
        num_rows: Rows that hold its word.
        length: Distinct tokens of its field.
        lengths: Those of every row, empty fields included.
    """
    idf = np.log(1 + (len(lengths) - num_rows + 0.5) / (num_rows + 0.5))
    frequency = 1 / length
    average = lengths.sum() / max(len(lengths), 1)
    norm = 1 - _B + _B * length / average
    scores: NDArray[np.float64] = idf * (_D + frequency * (_K + 1)) / (frequency + _K * norm)
    return scores


def _by_maximum(values: NDArray[np.float64], found: NDArray[np.intp]) -> NDArray[np.float64]:
    """Returns the values divided by the greatest of those found."""
    greatest = values[found].max() if len(found) else 0.0
    return values / (greatest or 1.0)


def _walk(inserted: Sequence[str]) -> Iterator[str]:
    """Yields distinct words in the order in which Orama's walk over its prefix tree meets them.

    A word comes before those that it begins. The walk takes the branch added last first, and a
    branch is as old as its first word; a part of the tree is walked as the whole is.
    """
    stack = [(0, list(inserted))]
    while stack:
        depth, words = stack.pop()
        branches: dict[str, list[str]] = {}
        for word in words:
            if len(word) == depth or len(words) == 1:
                yield word
            else:
                branches.setdefault(word[depth], []).append(word)
        stack.extend((depth + 1, branch) for branch in branches.values())


def _array_index(word: str) -> int | None:
    """Returns the rank of a word that JavaScript takes for an array index: below 0, ascending."""
    if not word.isdecimal() or not word.isascii() or len(word) > _MAX_ARRAY_INDEX_DIGITS:
        return None
    number = int(word)
    canonical = str(number) == word and number <= _MAX_ARRAY_INDEX
    return number - _MAX_ARRAY_INDEX - 1 if canonical else None
