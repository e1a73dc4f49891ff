"""Which rows can be found by their words, and how do rows come and go?

The writing half of the lexical index: Whoosh's segments in memory, BM25F over five fields. What a
query does with them is ``text_query``'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memory import text_query
from memory.inversion import AnalysedRow, InvertedSegment, invert, merge
from memory.merging import to_merge_at_once, to_merge_when_idle
from memory.postings import Collection
from memory.segments import StoredSegment, open_index, store_index, write_segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from memory.analysis import Analyzer
    from memory.posting_lists import Segment
    from memory.text_query import TextHits

MAX_SEGMENT_ROWS = 16_384
_KEPT_INVERTED = 4_096
"""Documents from which on a segment is read as it is stored, which takes less memory."""


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
class _Held:
    """A segment and what is still true of it."""

    segment: Segment
    live: NDArray[np.bool_]
    sorted_rows: NDArray[np.int64]
    by_row: NDArray[np.intp]
    """Document number of each of ``sorted_rows``."""

    @classmethod
    def of(cls, segment: Segment, live: NDArray[np.bool_] | None = None) -> _Held:
        order = np.argsort(segment.rows, kind="stable")
        if live is None:
            live = np.ones(len(segment.rows), np.bool_)
        return cls(segment, live, segment.rows[order], order)

    @property
    def num_live(self) -> int:
        return int(np.count_nonzero(self.live))

    def without(self, rows: NDArray[np.int64]) -> _Held:
        """Marks rows as deleted."""
        places = np.searchsorted(self.sorted_rows, rows)
        places[places == len(self.sorted_rows)] = 0
        docnums = self.by_row[places[self.sorted_rows[places] == rows]]
        if not self.live[docnums].any():
            return self
        live = self.live.copy()
        live[docnums] = False
        return replace(self, live=live)


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """Segments to be rewritten as one; may run beside searches and changes."""

    parts: tuple[tuple[Segment, NDArray[np.bool_]], ...]

    def run(self) -> Segment | None:
        """Returns the live documents of all parts as one segment; None if there are none."""
        if not any(live.any() for _, live in self.parts):
            return None
        merged = merge(self.parts)
        return write_segment(merged) if len(merged.rows) >= _KEPT_INVERTED else merged


@dataclass(frozen=True, slots=True, eq=False)
class FrozenText:
    """The segments of one moment; later changes do not touch them."""

    parts: tuple[tuple[Segment, NDArray[np.bool_]], ...]

    def files(self) -> dict[str, Buffer]:
        """Returns the content of the index, file name to bytes; empty if it holds no row.

        Segments that were not stored yet are written now, about 0.1 ms a row.
        """
        if not self.parts:
            return {}
        return store_index(
            (_stored(segment), np.flatnonzero(~live)) for segment, live in self.parts
        )


class TextIndex:
    """BM25F over the rows of the index, kept in memory.

    One thread writes. A search works on the segments it found at its start.

    Args:
        analyzer: Analyses rows and queries.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._held: tuple[_Held, ...] = ()
        self._collection = Collection([])

    @classmethod
    def from_files(cls, analyzer: Analyzer, files: Mapping[str, Buffer]) -> TextIndex:
        """Returns the index that ``files`` of the same language and analysis version describe.

        What is not such files raises whatever a reader stumbles on, see ``segments.open_index``.

        Args:
            analyzer: Of the language the files were written with.
            files: Name to content.
        """
        index = cls(analyzer)
        held = []
        for stored, deleted in open_index(files) if files else ():
            live = np.ones(len(stored.rows), np.bool_)
            live[deleted] = False
            held.append(_Held.of(stored, live))
        index._hold(held)
        return index

    @property
    def num_rows(self) -> int:
        """Rows that a search can find."""
        return self._collection.num_rows

    def rows(self) -> NDArray[np.int64]:
        """Returns the rows that a search can find, ascending; twice what stands in two places."""
        held = [each.segment.rows[each.live] for each in self._held]
        return np.sort(np.concatenate(held)) if held else np.empty(0, np.int64)

    @property
    def num_segments(self) -> int:
        """Parts the index consists of; each costs every query a little."""
        return len(self._held)

    def apply(self, *, add: Sequence[TextRow], remove: Sequence[int]) -> None:
        """Removes rows, then adds rows, in one step: an error changes nothing.

        Ids that are not there are not an error. Costs about 0.3 ms a row of 1,000 characters, and
        the merge of small segments with it.

        Args:
            add: Rows whose ids are not in the index, or are in ``remove``.
            remove: Row ids.
        """
        analysed = analysed_rows(self._analyzer, add)
        self.add_segments(
            [
                invert(analysed[start : start + MAX_SEGMENT_ROWS])
                for start in range(0, len(analysed), MAX_SEGMENT_ROWS)
            ],
            remove=remove,
        )

    def add_segments(self, segments: Sequence[Segment], *, remove: Sequence[int]) -> None:
        """Removes rows, then adds whole segments, in one step.

        Args:
            segments: Of rows that are not in the index, or are in ``remove``.
            remove: Row ids.
        """
        held = _without(self._held, remove)
        if segments:
            sizes = [each.num_live for each in held]
            chosen = to_merge_at_once(sizes, sum(len(segment.rows) for segment in segments))
            if chosen:
                parts = [(held[place].segment, held[place].live) for place in chosen]
                parts += [(each, np.ones(len(each.rows), np.bool_)) for each in segments]
                segments = [merge(parts)]
                held = [each for place, each in enumerate(held) if place not in chosen]
        self._hold([*held, *map(_Held.of, segments)])

    def search(self, text: str, *, limit: int) -> TextHits:
        """Returns the rows that hold words of a text, best first; see ``text_query.search``."""
        return text_query.search(self._collection, self._analyzer, text, limit=limit)

    def warm_up(self, max_terms: int) -> None:
        """Computes the impacts of the most frequent terms, so that no query waits for them."""
        self._collection.warm_up(max_terms, text_query.ALL_FIELDS)

    def frozen(self) -> FrozenText:
        """Returns what the index holds now."""
        return FrozenText(tuple((each.segment, each.live) for each in self._held))

    def files(self) -> dict[str, Buffer]:
        """Returns the content of the index, see ``FrozenText.files``."""
        return self.frozen().files()

    def next_merge(self) -> Merge | None:
        """Returns what is worth being merged in a quiet moment; None if all is well."""
        sizes = [(each.num_live, len(each.segment.rows)) for each in self._held]
        chosen = to_merge_when_idle(sizes)
        if not chosen:
            return None
        return Merge(tuple((self._held[place].segment, self._held[place].live) for place in chosen))

    def adopt(self, done: Merge, merged: Segment | None) -> bool:
        """Puts a merged segment in the place of its parts, whatever was deleted meanwhile.

        Args:
            done: From ``next_merge``.
            merged: What its ``run`` returned.

        Returns:
            False if the parts are not all here any more; nothing changes then.
        """
        sources = {id(segment) for segment, _ in done.parts}
        parts = [each for each in self._held if id(each.segment) in sources]
        if len(parts) < len(sources):
            return False
        rest = [each for each in self._held if id(each.segment) not in sources]
        if merged is not None:
            rows = np.concatenate([each.segment.rows[each.live] for each in parts])
            live = np.isin(merged.rows, rows)
            if live.any():
                rest.append(_Held.of(merged, live))
        self._hold(rest)
        return True

    def compact(self) -> bool:
        """Merges all that is worth it, now; returns whether there was anything to do."""
        merged = False
        while (found := self.next_merge()) is not None:
            merged = self.adopt(found, found.run())
        return merged

    def _hold(self, held: Iterable[_Held]) -> None:
        self._held = tuple(held)
        pairs = [(each.segment, each.live) for each in self._held]
        self._collection = Collection(pairs, before=self._collection)


def analysed_rows(analyzer: Analyzer, rows: Iterable[TextRow]) -> list[AnalysedRow]:
    """Returns the terms of rows."""
    # Rows of a file share these texts.
    shared: dict[tuple[str, str], list[str]] = {}
    analysed = []
    for row in rows:
        for field, text in (("context", row.context), ("meta", row.meta), ("path", row.path)):
            if (field, text) not in shared:
                tokens = analyzer.path_tokens if field == "path" else analyzer.tokens
                shared[field, text] = tokens(text)
        terms = {
            "content": analyzer.tokens(row.content),
            "context": shared["context", row.context],
            "headlines": analyzer.tokens(row.headlines),
            "meta": shared["meta", row.meta],
            "path": shared["path", row.path],
        }
        analysed.append(AnalysedRow(row.row, terms))
    return analysed


def _stored(segment: Segment) -> StoredSegment:
    """Returns a segment as Whoosh stores it; what was written before is not written again."""
    if isinstance(segment, StoredSegment):
        return segment
    assert isinstance(segment, InvertedSegment)  # noqa: S101 - there are no others
    if segment.stored is None:
        segment.stored = write_segment(segment)
    return segment.stored


def _without(held: Iterable[_Held], remove: Sequence[int]) -> list[_Held]:
    """Returns the segments with some rows marked as deleted, empty segments left out."""
    if not remove:
        return list(held)
    removed = np.array(remove, np.int64)
    marked = (each.without(removed) for each in held)
    return [each for each in marked if each.live.any()]
