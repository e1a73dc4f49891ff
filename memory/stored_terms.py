"""Which terms does a stored segment hold, and which documents hold them?

Reads Whoosh's term and postings files as a whole. Its own reader looks terms up one by one in a
table on disk, 10 microseconds for one that is not there and ten times that for one that is; a query
asks for each term in each field of each segment.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

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
_FREQUENCY_AT = 5
_OFFSET_AT = 23
_POSITION_TYPES = {"B": ">u1", "H": ">u2", "i": ">i4", "I": ">u4", "q": ">i8"}
_POSTINGS_HEAD = 4


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
        values = np.append(starts[1:], index.endofdata)[: len(starts)] - _VALUE
        self._frequencies = _numbers(term_file, values + _FREQUENCY_AT, ">u4")
        self._offsets = _numbers(term_file, values + _OFFSET_AT, ">i8")
        self._keys = [
            term_file[start:end]
            for start, end in zip((starts + _RECORD_HEAD).tolist(), values.tolist(), strict=True)
        ]
        self._places = {key: place for place, key in enumerate(self._keys)}

    def doc_frequency(self, field: str, term: str) -> int:
        """Returns how many documents hold a term, deleted ones included."""
        place = self._place(field, term)
        return 0 if place is None else self._frequencies[place]

    def postings(
        self, field: str, term: str
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Returns (document numbers, occurrences) of a term, None if it is not there."""
        place = self._place(field, term)
        return None if place is None else self._decoded(place)

    def most_frequent(self, field: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that most documents hold."""
        places = self._places_with_prefix(self._prefixes[field])
        most = sorted(places, key=lambda place: -self._frequencies[place])[:limit]
        return [self._keys[place][2:].decode() for place in most]

    def field_postings(self, field: str) -> FieldPostings:
        """Returns every term of a field."""
        places = self._places_with_prefix(self._prefixes[field])
        offsets = np.array(self._offsets[places.start : places.stop], np.int64) + _POSTINGS_HEAD
        sizes, docnums, counts = self._all_decoded(places, offsets)
        return FieldPostings(
            terms=[self._keys[place][2:].decode() for place in places],
            starts=np.append(0, np.cumsum(sizes)),
            docnums=docnums.astype(np.int32),
            counts=counts.astype(np.uint16),
        )

    def with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        places = self._places_with_prefix(self._prefixes[field] + prefix.encode())
        return [self._keys[place][2:].decode() for place in places[:limit]]

    def _place(self, field: str, term: str) -> int | None:
        return self._places.get(self._prefixes[field] + term.encode())

    def _places_with_prefix(self, prefix: bytes) -> range:
        first = bisect_left(self._keys, prefix)
        # No byte of UTF-8 is 0xff.
        return range(first, bisect_left(self._keys, prefix + b"\xff", lo=first))

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
        start = self._offsets[place] + _POSTINGS_HEAD
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


def _numbers(data: bytes, places: NDArray[np.int64], dtype: str) -> list[int]:
    """Returns the numbers at some places of a file."""
    width = np.dtype(dtype).itemsize
    gathered = np.frombuffer(data, np.uint8)[places[:, None] + np.arange(width)]
    numbers: list[int] = gathered.view(dtype).ravel().tolist()
    return numbers
