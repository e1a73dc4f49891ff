"""Which rows hold a text?

Rows of a loaded index are found in sorted arrays, 12 bytes a row; those that came later in a
dictionary, which takes 200. What the arrays name is compared with what the row holds now, so they
need no change when a row is freed or reused.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from memory.records import HASH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_KEY_BYTES = 8


class RowHashes:
    """Rows by the content hash of their chunk.

    Args:
        hash_of: Returns the hash of the chunk that a row of ``load`` holds now, None if it is free.
    """

    def __init__(self, hash_of: Callable[[int], bytes | None]) -> None:
        self._hash_of = hash_of
        self._keys = array("Q")
        self._rows = array("I")
        self._later: dict[bytes, int | set[int]] = {}

    def load(self, hashes: bytes, rows: Sequence[int]) -> None:
        """Learns the rows of an index that had none.

        Args:
            hashes: Of each row, one after another.
            rows: Distinct.
        """
        keys = np.frombuffer(hashes, np.uint64)[:: HASH_BYTES // _KEY_BYTES]
        order = np.argsort(keys, kind="stable")
        self._keys = array("Q", keys[order].tobytes())
        self._rows = array("I", np.asarray(rows, np.uintc)[order].tobytes())

    def rows(self, content_hash: bytes) -> set[int]:
        """Returns the rows that hold a text; empty if none does. Not to be changed."""
        later = self._later.get(content_hash, _NO_ROWS)
        rows = {later} if isinstance(later, int) else later
        loaded = {row for row in self._named(content_hash) if self._hash_of(row) == content_hash}
        return rows | loaded if loaded else rows

    def add(self, content_hash: bytes, row: int) -> None:
        """Learns that a row holds a text from now on."""
        # Nearly every text stands in one row only, and a set takes 200 bytes.
        others = self._later.get(content_hash)
        if others is None:
            self._later[content_hash] = row
        else:
            self._later[content_hash] = {row} | ({others} if isinstance(others, int) else others)

    def remove(self, content_hash: bytes, row: int) -> None:
        """Forgets a row that holds a text no more."""
        rows = self._later.get(content_hash)
        if isinstance(rows, set):
            left = rows - {row}
            self._later[content_hash] = left if len(left) > 1 else left.pop()
        elif rows == row:
            del self._later[content_hash]

    def _named(self, content_hash: bytes) -> Iterator[int]:
        """Yields the rows that held a text with these first bytes when they were loaded."""
        key = int.from_bytes(content_hash[:_KEY_BYTES], sys.byteorder)
        place = bisect_left(self._keys, key)
        while place < len(self._keys) and self._keys[place] == key:
            yield self._rows[place]
            place += 1


_NO_ROWS: set[int] = set()
