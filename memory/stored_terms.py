"""Which terms does a stored segment hold, and which documents hold them?

Reads Whoosh's term and postings files as a whole. Its own reader looks terms up one by one in a
table on disk, 10 microseconds for one that is not there and ten times that for one that is; a query
asks for each term in each field of each segment.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memory.posting_lists import FieldPostings
from memory.posting_reading import read_block, read_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from typing_extensions import Buffer

_RECORD_HEAD = 8
"""Bytes before the key of a record: the lengths of key and value."""
_VALUE = 35
"""Bytes of a value: W3TermInfo and the place of the postings."""
_POSITION_TYPES = {"B": ">u1", "H": ">u2", "i": ">i4", "I": ">u4", "q": ">i8"}
_POSTINGS_HEAD = 4
_FIELD_BYTES = 2
"""Of a key: the number of the field."""
_LONE_LOOK_UPS = 256
"""After so many a table of all terms is made, which costs more than these did."""


class _Number(NamedTuple):
    """A number in the value of a record."""

    start: int
    size: int


_FREQUENCY = _Number(5, 4)
_OFFSET = _Number(23, 8)


class StoredTerms:
    """The terms of one segment and their postings.

    Args:
        index: Whoosh's ``OrderedHashReader`` of the term file.
        term_file: Content of the term file.
        postings_file: Content of the postings file.
    """

    def __init__(self, index: Any, term_file: bytes, postings_file: Buffer) -> None:
        self._postings_file = memoryview(postings_file)
        fields: Mapping[str, int] = index.extras["fieldmap"]
        self._prefixes = {field: number.to_bytes(2) for field, number in fields.items()}
        starts = np.frombuffer(
            term_file,
            _POSITION_TYPES[index.extras["indextype"]],
            index.extras["indexlen"],
            index.indexbase,
        ).astype(np.int64)
        self._term_file = term_file
        self._starts = starts + _RECORD_HEAD
        self._ends = np.append(starts[1:], index.endofdata)[: len(starts)] - _VALUE
        self._num_look_ups = 0

    def doc_frequency(self, field: str, term: str) -> int:
        """Returns how many documents hold a term, deleted ones included."""
        place = self._place(field, term)
        return 0 if place is None else self._number(place, _FREQUENCY)

    def postings(
        self, field: str, term: str
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Returns (document numbers, occurrences) of a term, None if it is not there."""
        place = self._place(field, term)
        return None if place is None else self._decoded(place)

    def most_frequent(self, field: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that most documents hold."""
        places = self._places_with_prefix(self._prefixes[field])
        frequencies = self._numbers(places, _FREQUENCY).tolist()
        most = sorted(places, key=lambda place: -frequencies[place - places.start])[:limit]
        return [self._term(place) for place in most]

    def field_postings(self, field: str) -> FieldPostings:
        """Returns every term of a field."""
        places = self._places_with_prefix(self._prefixes[field])
        offsets = self._numbers(places, _OFFSET) + _POSTINGS_HEAD
        sizes, docnums, counts = self._all_decoded(places, offsets)
        return FieldPostings(
            terms=[self._term(place) for place in places],
            starts=np.append(0, np.cumsum(sizes)),
            docnums=docnums.astype(np.int32),
            counts=counts.astype(np.uint16),
        )

    def with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        places = self._places_with_prefix(self._prefixes[field] + prefix.encode())
        return [self._term(place) for place in places[:limit]]

    @cached_property
    def _keys(self) -> list[bytes]:
        """The number of a field and a term in it, ascending."""
        bounds = zip(self._starts.tolist(), self._ends.tolist(), strict=True)
        return [self._term_file[start:end] for start, end in bounds]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {key: place for place, key in enumerate(self._keys)}

    def _place(self, field: str, term: str) -> int | None:
        key = self._prefixes[field] + term.encode()
        if self._has_table():
            return self._places.get(key)
        place = bisect_left(range(len(self._starts)), key, key=self._key)
        found = place < len(self._starts) and self._key(place) == key
        return place if found else None

    def _places_with_prefix(self, prefix: bytes) -> range:
        # No byte of UTF-8 is 0xff.
        bounds = (prefix, prefix + b"\xff")
        if self._has_table():
            return range(*(bisect_left(self._keys, bound) for bound in bounds))
        places = range(len(self._starts))
        return range(*(bisect_left(places, bound, key=self._key) for bound in bounds))

    def _has_table(self) -> bool:
        """Counts a look-up; a process that answers one query has no use for a table of all."""
        self._num_look_ups += 1
        return self._num_look_ups > _LONE_LOOK_UPS

    def _key(self, place: int) -> bytes:
        return self._term_file[self._starts[place] : self._ends[place]]

    def _term(self, place: int) -> str:
        return self._key(place)[_FIELD_BYTES:].decode()

    def _number(self, place: int, which: _Number) -> int:
        start = int(self._ends[place]) + which.start
        return int.from_bytes(self._term_file[start : start + which.size])

    def _numbers(self, places: range, which: _Number) -> NDArray[np.int64]:
        starts = self._ends[places.start : places.stop] + which.start
        gathered = np.frombuffer(self._term_file, np.uint8)[starts[:, None] + np.arange(which.size)]
        numbers: NDArray[Any] = gathered.view(f">i{which.size}").ravel()
        return numbers.astype(np.int64)

    def _all_decoded(
        self, places: range, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
        """Returns (numbers of postings, document numbers, occurrences) of neighbouring terms."""
        if not places:
            return np.empty(0, np.int64), np.empty(0), np.empty(0)
        if (read := read_blocks(self._postings_file, offsets)) is not None:
            return read
        docnums, counts = zip(*map(self._decoded, places), strict=True)
        sizes = np.fromiter(map(len, docnums), np.int64, len(docnums))
        return sizes, np.concatenate(docnums), np.concatenate(counts)

    def _decoded(self, place: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Decodes the blocks of a term."""
        start = self._number(place, _OFFSET) + _POSTINGS_HEAD
        blocks = []
        is_last = False
        while not is_last:
            length = int.from_bytes(self._postings_file[start : start + 4], signed=True)
            is_last, end = length < 0, start + 4 + abs(length)
            blocks.append(read_block(self._postings_file[start:end]))
            start = end
        if len(blocks) == 1:
            return blocks[0]
        docnums, weights = zip(*blocks, strict=True)
        return np.concatenate(docnums), np.concatenate(weights)
