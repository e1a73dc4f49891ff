"""Which rows hold a text?

Most rows are found in sorted arrays, 12 bytes a row; those that came later in a dictionary, which
takes 200, until there are as many of them. What the arrays name is compared with what the row holds
now, so they need no change when a row is freed or reused.
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

    from numpy.typing import NDArray

_KEY_BYTES = 8
_MAX_LATER = 4_096


class RowHashes:
    """Rows by the content hash of their chunk.

    Args:
        hash_of: Returns the hash of the chunk that a known row holds now, None if it is free.
    """

    def __init__(self, hash_of: Callable[[int], bytes | None]) -> None:
        self._hash_of = hash_of
        self._keys = array("Q")
        self._rows = array("I")
        self._later: dict[bytes, int | set[int]] = {}
        self._changed = False

    def load(self, hashes: bytes, rows: Sequence[int]) -> None:
        """Learns the rows of an index that had none.

        Args:
            hashes: Of each row, one after another.
            rows: Distinct.
        """
        self._sort(_keys_of(hashes), np.asarray(rows, np.uint32))

    def rows(self, content_hash: bytes) -> set[int]:
        """Returns the rows that hold a text; empty if none does. Not to be changed."""
        later = self._later.get(content_hash, _NO_ROWS)
        rows = {later} if isinstance(later, int) else later
        loaded = {row for row in self._named(content_hash) if self._hash_of(row) == content_hash}
        return rows | loaded if loaded else rows

    def add(self, content_hash: bytes, row: int) -> None:
        """Learns that a row holds a text, which ``hash_of`` says already."""
        # Nearly every text stands in one row only, and a set takes 200 bytes.
        others = self._later.get(content_hash)
        known = {others} if isinstance(others, int) else others
        self._later[content_hash] = row if known is None else known | {row}
        if len(self._later) > max(_MAX_LATER, len(self._keys)):
            self._fold()

    def remove(self, content_hash: bytes, row: int) -> None:
        """Forgets a row that holds a text no more."""
        self._changed = True
        rows = self._later.get(content_hash)
        if isinstance(rows, set):
            left = rows - {row}
            self._later[content_hash] = left if len(left) > 1 else left.pop()
        elif rows == row:
            del self._later[content_hash]

    def _fold(self) -> None:
        """Moves everything into the arrays; costs 20 ms for 100,000 rows, once they doubled."""
        pairs = [
            (name, row)
            for name, held in self._later.items()
            for row in ((held,) if isinstance(held, int) else held)
        ]
        keys = _keys_of(b"".join(name for name, _ in pairs))
        rows = np.array([row for _, row in pairs], np.uint32)
        before_keys, before_rows = np.array(self._keys), np.array(self._rows)
        if self._changed:
            now = (self._hash_of(row) for row in self._rows)
            current = np.array([_key_of(name) if name else 0 for name in now], np.uint64)
            is_true = current == before_keys
            before_keys, before_rows = before_keys[is_true], before_rows[is_true]
        self._sort(np.concatenate((before_keys, keys)), np.concatenate((before_rows, rows)))
        self._later, self._changed = {}, False

    def _sort(self, keys: NDArray[np.uint64], rows: NDArray[np.uint32]) -> None:
        order = np.lexsort((rows, keys))
        keys, rows = keys[order], rows[order]
        is_new = np.ones(len(keys), np.bool_)
        is_new[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
        self._keys = array("Q", keys[is_new].tobytes())
        self._rows = array("I", rows[is_new].tobytes())

    def _named(self, content_hash: bytes) -> Iterator[int]:
        """Yields the rows that held a text with these first bytes when they were sorted."""
        key = _key_of(content_hash)
        place = bisect_left(self._keys, key)
        while place < len(self._keys) and self._keys[place] == key:
            yield self._rows[place]
            place += 1


def _key_of(content_hash: bytes) -> int:
    """Returns the first bytes of a hash as the number they are in memory."""
    return int.from_bytes(content_hash[:_KEY_BYTES], sys.byteorder)


def _keys_of(hashes: bytes) -> NDArray[np.uint64]:
    """Returns ``_key_of`` of each of some hashes, which stand one after another."""
    keys: NDArray[np.uint64] = np.frombuffer(hashes, np.uint64)[:: HASH_BYTES // _KEY_BYTES]
    return keys


_NO_ROWS: set[int] = set()
