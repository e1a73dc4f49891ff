"""Which rows hold the words of a query?

The lexical half of the index: Whoosh's segments in memory, BM25F over five fields. It is not useful
for exact look-ups by hash or path, nor for phrases.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from memory.postings import K1, Collection, SegmentPostings
from memory.segments import (
    FIELDS,
    AnalysedRow,
    MemoryStorage,
    SegmentData,
    drop_segment,
    open_index,
    store_index,
    write_segment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from memory.analysis import Analyzer

FIELD_BOOSTS = {"path": 1.0, "headlines": 1.0, "context": 0.25, "content": 1.0, "meta": 1.0}
"""What a match in each field counts, relative to one in the content.

The context stands beside every chunk of its file and so tells little about any of them.
"""

MAX_QUERY_TERMS = 64
"""More terms are cut to the rarest ones."""
MAX_QUERY_CHARS = 16_384
"""Longer queries are cut in the middle: prompts begin or end with what they ask."""

_MAX_CANDIDATE_WORDS = 512
_MIN_PREFIX_CHARS = 3
_MAX_PREFIX_TERMS = 16
_PREFIX_BOOST = 0.5

_MERGED_SEGMENTS = 24
_TIER = 16
_MAX_DELETED_SHARE = 0.25
_MAX_SEGMENT_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class TextRow:
    """What is indexed of one chunk."""

    row: int
    """Id given by the owner of the index, at least 0, unique among the live rows."""
    path: str
    headlines: str
    context: str
    content: str
    meta: str
    """Words of the front matter."""


@dataclass(frozen=True, slots=True, eq=False)
class TextHits:
    """Rows that hold words of a query."""

    rows: NDArray[np.int64]
    """Row ids, best first, ties by id."""
    scores: NDArray[np.float32]
    """BM25F of each row, positive."""
    best_possible: float
    """What a row would reach if each word of the query filled its best field; above 0 if there is
    a word. A row that holds a word in several fields may exceed it."""
    terms: tuple[str, ...]
    """The distinct terms that were looked for."""


class TextIndex:
    """BM25F over the rows of the index, kept in memory.

    One thread writes. A search works on the segments it found at its start.

    Args:
        analyzer: Analyses rows and queries.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._storage = MemoryStorage()
        self._collection = Collection([])

    @classmethod
    def from_files(cls, analyzer: Analyzer, files: Mapping[str, bytes]) -> TextIndex:
        """Returns the index that ``files`` of the same language and analysis version describe.

        Whoosh unpickles parts of the files: check that they are the ones you stored.

        Args:
            analyzer: Of the language the files were written with.
            files: Name to content.
        """
        index = cls(analyzer)
        index._storage.files.update(files)
        segments = []
        for stored, deleted in open_index(index._storage) if files else ():
            live = np.ones(stored.num_docs, np.bool_)
            live[deleted] = False
            segments.append((SegmentPostings(stored), live))
        index._collection = Collection(segments)
        return index

    @property
    def num_rows(self) -> int:
        """Rows that a search can find."""
        return self._collection.num_rows

    @property
    def num_segments(self) -> int:
        """Parts the index consists of; each costs every query a little."""
        return len(self._collection.segments)

    def files(self) -> dict[str, bytes]:
        """Returns the content of the index, file name to bytes; empty before the first row."""
        if not self._collection.segments:
            return {}
        store_index(
            self._storage,
            (
                (segment.stored, np.flatnonzero(~live))
                for segment, live in self._collection.segments
            ),
        )
        return dict(self._storage.files)

    def apply(self, *, add: Sequence[TextRow], remove: Sequence[int]) -> None:
        """Removes rows, then adds rows, in one step: an error changes nothing.

        Ids that are not there are not an error. Costs about 0.8 ms a row of 1,000 characters, plus
        the merge of small segments every few calls; ``compact`` merges the larger ones.

        Args:
            add: Rows whose ids are not in the index, or are in ``remove``.
            remove: Row ids.
        """
        segments = _without(self._collection.segments, remove)
        merged = _to_merge([int(live.sum()) for _, live in segments]) if add else []
        self._replace(segments, merged, add)

    def compact(self, *, max_rows: int = 1024) -> bool:
        """Merges small segments, and drops what is deleted in them; for idle moments.

        Args:
            max_rows: Most rows to rewrite, the smallest segments first; 1 ms each.
        Returns:
            Whether there was anything to do.
        """
        segments = self._collection.segments
        sizes = [int(live.sum()) for _, live in segments]
        smallest = sorted(range(len(sizes)), key=sizes.__getitem__)
        totals = accumulate(sizes[number] for number in smallest)
        merged = [
            number for number, total in zip(smallest, totals, strict=True) if total <= max_rows
        ]
        if len(merged) < 2 and not any(  # noqa: PLR2004 - one segment is not merged with itself
            segments[number][1].mean() < 1 - _MAX_DELETED_SHARE for number in merged
        ):
            return False
        self._replace(segments, merged, ())
        return True

    def search(self, text: str, *, limit: int) -> TextHits:
        """Returns the rows that hold words of a text, best first; the text is not a query language.

        Args:
            text: Anything; bounded here (``MAX_QUERY_CHARS``, ``MAX_QUERY_TERMS``).
            limit: Most rows, at least 1.
        """
        if len(text) > MAX_QUERY_CHARS:
            text = f"{text[: MAX_QUERY_CHARS // 2]}\n{text[-MAX_QUERY_CHARS // 2 :]}"
        collection = self._collection
        scores = collection.zeros()
        words = self._telling_words(collection, text)
        terms = tuple(dict.fromkeys(term for word in words for term in word))
        idfs = {term: collection.add_term(scores, term, FIELD_BOOSTS) for term in terms}
        best_possible = sum(_best_possible(word, idfs) or collection.idf(0) for word in words)
        best_possible *= (K1 + 1) * max(FIELD_BOOSTS.values())
        self._add_path_prefix(collection, scores, text, terms)
        rows, row_scores = collection.best(scores, limit)
        return TextHits(rows, row_scores, best_possible, terms)

    def _telling_words(self, collection: Collection, text: str) -> list[tuple[str, ...]]:
        """Returns the words of a query, at most ``MAX_QUERY_TERMS`` terms of the rarest of them."""
        words = self._analyzer.query_words(text)
        if sum(map(len, words)) <= MAX_QUERY_TERMS:
            return words
        # The longest words are the most telling ones that can be told without a look-up.
        longest = sorted(words, key=lambda word: -len(word[0]))[:_MAX_CANDIDATE_WORDS]
        frequencies = {word: max(map(collection.doc_frequency, word)) for word in longest}
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

    def _add_path_prefix(
        self,
        collection: Collection,
        scores: NDArray[np.float32],
        text: str,
        terms: Sequence[str],
    ) -> None:
        """Lets the last word find paths that it begins: ``ali`` finds ``people/alice.md``."""
        prefix = self._analyzer.last_word(text)
        if len(prefix) < _MIN_PREFIX_CHARS:
            return
        for term in collection.terms_with_prefix("path", prefix, _MAX_PREFIX_TERMS):
            if term not in terms:
                collection.add_term(scores, term, {"path": _PREFIX_BOOST})

    def _replace(
        self,
        segments: Sequence[tuple[SegmentPostings, NDArray[np.bool_]]],
        merged: Sequence[int],
        add: Sequence[TextRow],
    ) -> None:
        """Swaps in the segments, the ``merged`` ones rewritten as one together with new rows."""
        kept = [segment for number, segment in enumerate(segments) if number not in merged]
        data = SegmentData()
        for number in merged:
            data.add_segment(segments[number][0].stored, segments[number][1])
        for row in add:
            data.add_row(self._analysed(row))
            if len(data.rows) >= _MAX_SEGMENT_ROWS:
                kept.append(self._written(data))
                data = SegmentData()
        if data.rows:
            kept.append(self._written(data))
        before = {segment.stored for segment, _ in self._collection.segments}
        self._collection = Collection(kept)
        for stored in before - {segment.stored for segment, _ in kept}:
            drop_segment(self._storage, stored)

    def _analysed(self, row: TextRow) -> AnalysedRow:
        terms = {field: self._analyzer.tokens(getattr(row, field)) for field in FIELDS}
        return AnalysedRow(row.row, terms | {"path": self._analyzer.path_tokens(row.path)})

    def _written(self, data: SegmentData) -> tuple[SegmentPostings, NDArray[np.bool_]]:
        stored = write_segment(self._storage, data)
        return SegmentPostings(stored), np.ones(stored.num_docs, np.bool_)


def _best_possible(word: Sequence[str], idfs: Mapping[str, float]) -> float:
    """Returns what a word is worth, in units of idf.

    A compound counts whole or in parts, whichever is more, as prose may write it either way.
    """
    whole, *parts = (idfs[term] for term in word)
    return max(whole, sum(parts))


def _without(
    segments: Iterable[tuple[SegmentPostings, NDArray[np.bool_]]], remove: Sequence[int]
) -> list[tuple[SegmentPostings, NDArray[np.bool_]]]:
    """Returns the segments with some rows marked as deleted, empty segments left out."""
    if not remove:
        return list(segments)
    removed = np.array(remove, np.int64)
    marked = (
        (segment, live & ~np.isin(segment.stored.rows, removed)) for segment, live in segments
    )
    return [(segment, live) for segment, live in marked if live.any()]


def _to_merge(sizes: Sequence[int]) -> list[int]:
    """Returns the numbers of the segments to be merged with the next new rows.

    These are segments of similar size, once many have come together: a merge costs as much as many
    edits, and the count of segments grows with the logarithm of the rows only.
    """
    tiers: dict[int, list[int]] = defaultdict(list)
    for number, size in enumerate(sizes):
        tiers[int(math.log(size, _TIER))].append(number)
    full = [tier for tier in tiers if len(tiers[tier]) >= _MERGED_SEGMENTS]
    return tiers[min(full)] if full else []
