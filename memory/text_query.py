"""Which rows hold the words of a text, and how well?

The reading half of the lexical index: user text becomes terms, at most so many, and never a query
language. It is not useful for exact look-ups by hash or path, nor for phrases.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from memory.segmentation import is_pair, num_runs
from memory.term_impacts import FULL_IMPACT, Boosts
from memory.top_documents import QueryTerm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.postings import Collection

FIELD_BOOSTS = {"path": 1.0, "headlines": 1.0, "context": 0.25, "content": 1.0, "meta": 1.0}
"""What a match in each field counts, relative to one in the content.

The context stands beside every chunk of its file and so tells little about any of them.
"""

MAX_QUERY_TERMS = 64
"""More terms are cut to the rarest ones."""
MAX_QUERY_CHARS = 16_384
"""Longer queries are cut in the middle: prompts begin or end with what they ask."""

ALL_FIELDS = Boosts(tuple(sorted(FIELD_BOOSTS.items())))
"""Where a word is looked for."""
_PATH_BEGINNINGS = Boosts((("path", 0.5),))
_MAX_CANDIDATE_WORDS = 512
_STEEPNESS = 1.25
_RARE_WORDS = 2.0
"""By so many e-folds the rarest word alone tells a row from all others."""
_MIN_PREFIX_CHARS = 3
_MAX_PREFIX_TERMS = 16


@dataclass(frozen=True, slots=True, eq=False)
class TextHits:
    """Rows that hold words of a query."""

    rows: NDArray[np.int64]
    """Row ids, best first, ties by id."""
    scores: NDArray[np.float32]
    """BM25F of each row, positive."""
    coverage: NDArray[np.float32]
    """How much of the query a row holds, in [0, 1], see ``_coverage``."""
    terms: tuple[str, ...]
    """The distinct terms that were looked for."""


def search(collection: Collection, analyzer: Analyzer, text: str, *, limit: int) -> TextHits:
    """Returns the rows that hold words of a text, best first.

    Args:
        collection: Where to look.
        analyzer: The one that made its terms.
        text: Anything; bounded here (``MAX_QUERY_CHARS``, ``MAX_QUERY_TERMS``).
        limit: Most rows, at least 1.
    """
    text = _bounded(text)
    words = _telling_words(collection, analyzer, text)
    terms = dict.fromkeys(chain.from_iterable(words))
    continued = {} if text.isascii() else _continued(collection, analyzer, text, terms)
    idfs: dict[str, float] = {}
    wanted: list[QueryTerm] = []
    for term in terms:
        if term in continued:
            idfs[term], found = _look_up(collection, (term, *continued[term]))
            wanted += found
        else:
            idfs[term], single = collection.look_up(term, ALL_FIELDS)
            if single is not None:
                wanted.append(single)
    worths = [_best_possible(word, idfs) or collection.idf(0) for word in words]
    worth = sum(worths)
    if not text.isascii():
        worth -= _counted_twice(words, worths, num_runs(text))
    wanted += _path_beginnings(collection, analyzer.last_word(text), idfs)
    rows, scores, bounded = collection.best(wanted, limit)
    coverage = _coverage(bounded / FULL_IMPACT, worth, collection.idf(1))
    return TextHits(rows, scores, coverage, (*terms, *chain.from_iterable(continued.values())))


def _coverage(held: NDArray[np.float32], worth: float, rarest: float) -> NDArray[np.float32]:
    """Returns how much of a query rows hold, in [0, 1], shape (n,).

    Their share of the query, by idf, and less if that is a small part of it or nothing rare: half
    of a query of two words is found in any workspace, as is its only word if it is a frequent one.

    Args:
        held: Sum of the idf of the words that each row holds, shape (n,).
        worth: Sum of the idf of the words of the query; 0 only if there are no rows.
        rarest: Inverse document frequency of a word of one row.
    """
    coverage: NDArray[np.float32] = np.minimum(held / (worth or 1.0), 1) ** _STEEPNESS
    coverage *= 1 - np.exp(held * (-_RARE_WORDS / rarest))
    return coverage


def _look_up(
    collection: Collection, spellings: tuple[str, ...]
) -> tuple[float, Sequence[QueryTerm]]:
    """Returns the inverse document frequency of a word, and what its spellings add.

    It is that of the most frequent one, for all of them: a rare one tells no more than the others.
    """
    looked_up = [collection.look_up(spelling, ALL_FIELDS) for spelling in spellings]
    found = [(idf, term) for idf, term in looked_up if term is not None]
    if len(found) < 2:  # noqa: PLR2004 - nothing to be made equal
        return (found[0][0], [found[0][1]]) if found else (0.0, ())
    least = min(idf for idf, _ in found)
    return least, [QueryTerm(least, term.ranges) for _, term in found]


def _continued(
    collection: Collection, analyzer: Analyzer, text: str, terms: Mapping[str, None]
) -> dict[str, list[str]]:
    """Returns the terms that lone characters of a query stand for besides themselves.

    A text in a script without spaces is indexed as pairs of characters. The most frequent pairs
    are taken, ``MAX_QUERY_TERMS`` in all.
    """
    lone = [each for each in analyzer.prefix_words(text) if each in terms]
    found: dict[str, list[str]] = {}
    most_pairs = _MAX_CANDIDATE_WORDS // max(len(lone), 1)
    for character in lone:
        pairs = {
            pair
            for field, _ in ALL_FIELDS.by_field
            for pair in collection.terms_with_prefix(field, character, most_pairs)
        }
        frequencies = {
            pair: collection.doc_frequency(pair, ALL_FIELDS) for pair in pairs.difference(terms)
        }
        by_frequency = sorted(sorted(frequencies), key=frequencies.__getitem__, reverse=True)
        found[character] = by_frequency[: MAX_QUERY_TERMS // len(lone)]
    return found


def terms_of(analyzer: Analyzer, text: str) -> list[str]:
    """Returns the first terms of a query, as bounded as in ``search``, without a look-up."""
    return analyzer.query_terms(_bounded(text), MAX_QUERY_TERMS)


def _bounded(text: str) -> str:
    if len(text) <= MAX_QUERY_CHARS:
        return text
    return f"{text[: MAX_QUERY_CHARS // 2]}\n{text[-MAX_QUERY_CHARS // 2 :]}"


def _telling_words(
    collection: Collection, analyzer: Analyzer, text: str
) -> Sequence[tuple[str, ...]]:
    """Returns the words of a query, at most ``MAX_QUERY_TERMS`` terms of the rarest of them."""
    words = analyzer.query_words(text)
    if sum(map(len, words)) <= MAX_QUERY_TERMS:
        return words
    # The longest words are the most telling ones that can be told without a look-up.
    longest = sorted(words, key=lambda word: -len(word[0]))[:_MAX_CANDIDATE_WORDS]
    frequencies = {
        word: max(collection.doc_frequency(term, ALL_FIELDS) for term in word) for word in longest
    }
    # Words that occur nowhere find nothing, however rare they are.
    rarest = sorted(longest, key=lambda word: frequencies[word] or collection.num_docs + 1)
    kept: list[tuple[str, ...]] = []
    num_terms = 0
    for word in rarest:
        num_terms += len(word)
        if num_terms > MAX_QUERY_TERMS:
            break
        kept.append(word)
    return kept


def _path_beginnings(
    collection: Collection, prefix: str, known: Mapping[str, float]
) -> list[QueryTerm]:
    """Lets the last word find paths that it begins: ``ali`` finds ``people/alice.md``."""
    if len(prefix) < _MIN_PREFIX_CHARS:
        return []
    terms = collection.terms_with_prefix("path", prefix, _MAX_PREFIX_TERMS)
    found = [collection.look_up(term, _PATH_BEGINNINGS) for term in terms if term not in known]
    return [term for _, term in found if term is not None]


def _counted_twice(
    words: Sequence[tuple[str, ...]], worths: Sequence[float], num_runs: int
) -> float:
    """Returns what pairs of characters are worth beyond what covers their runs.

    Pairs overlap: half as many as there are characters cover all of them, and many of the others
    span two words that stand together in no other text.
    """
    pairs = [worth for word, worth in zip(words, worths, strict=True) if is_pair(word[0])]
    if not pairs:
        return 0.0
    return sum(pairs) * max(0.0, 1 - (len(pairs) + num_runs) / (2 * len(pairs)))


def _best_possible(word: Sequence[str], idfs: Mapping[str, float]) -> float:
    """Returns what a word is worth, in units of idf.

    A compound counts whole or in parts, whichever is more, as prose may write it either way.
    """
    if len(word) == 1:
        return idfs[word[0]]
    whole, *parts = (idfs[term] for term in word)
    return max(whole, sum(parts))
