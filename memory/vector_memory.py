"""Who holds the vectors at their present number, and who may still read an earlier state?

The size alone decides how they are held: below ``FLOAT16_FROM`` as they came, from there on as
float16, once and for good, as rows never become fewer.

To read the state of one moment while rows change, whoever changes some first hands over what they
held. The reader takes a piece at a time and puts that back over it, so that neither waits for more
than one piece and nothing is copied as a whole.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.vector_store import Float16Store, Float32Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from memory.vector_store import StoredBlock, VectorStore

FLOAT16_FROM = 3_000_000
"""Values (rows times dimension) from which they are held as float16.

Median CPU ms of a scan for ten rows, float32 / float16, one thread: 0.4 / 0.2 for 10k x 384, 2.1 /
0.7 for 25k, 4.6 / 2.2 for 50k, 8.7 / 3.8 for 100k, 16.5 / 8.4 for 200k, 28 / 16 for 100k x 1536.
Below the border, vectors that come back bit by bit are worth more than the 2 ms and 40 MB. All
figures are in ARCHITECTURE.md, "Vector borders".
"""

_ROWS_A_PIECE = 16_384


def pieces(size: int) -> Iterator[slice]:
    """Yields slices that cover so many rows in order, for work that needs temporary memory."""
    for first in range(0, size, _ROWS_A_PIECE):
        yield slice(first, min(first + _ROWS_A_PIECE, size))


class FrozenVectors:
    """The rows of one moment; from ``VectorMemory.frozen``, usable in another thread."""

    def __init__(self, store: VectorStore, live: NDArray[np.int64], lock: threading.Lock) -> None:
        """Starts; the caller holds the lock."""
        self.live = live
        """Rows in use, ascending."""
        self.dtype = store.dtype
        self.changed: set[int] = set()
        """Rows that were written since."""
        self._store, self._lock = store, lock
        self._size = len(store)
        self._dim: int = store.block().shape[1]
        self._before: dict[int, NDArray[Any]] = {}
        self._open = True

    def __len__(self) -> int:
        return self._size

    def blocks(self, num_rows: int) -> Iterator[StoredBlock]:
        """Yields copies of all rows in order as they are held; free rows are zeros.

        Args:
            num_rows: Rows of a block; the last may have fewer.
        Raises:
            ValueError: the state is not kept any more.
        """
        for first in range(0, self._size, num_rows):
            yield self._piece(np.arange(first, min(first + num_rows, self._size)))

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns copies of rows, shape (n, dim).

        Raises:
            ValueError: the state is not kept any more.
        """
        vectors = np.empty((len(rows), self._dim), np.float32)
        for piece in pieces(len(rows)):
            vectors[piece] = self._piece(rows[piece])
        return vectors

    def remember(self, store: VectorStore, rows: Sequence[int]) -> None:
        """Keeps what rows hold that are about to be written; the caller holds the lock.

        Args:
            store: Where they are written. If it is not the one of the beginning, that one has been
                given up and changes no more.
            rows: In range of the store.
        """
        self.changed.update(rows)
        if store is not self._store:
            return
        block = store.block()
        for row in rows:
            if row < self._size and row not in self._before:
                self._before[row] = block[row].copy()

    def close(self) -> None:
        """Lets go of what was kept; the caller holds the lock."""
        self._open = False
        self._before.clear()

    def _piece(self, rows: NDArray[np.int64]) -> StoredBlock:
        with self._lock:
            if not self._open:
                raise ValueError("the vectors are not frozen any more")
            # Anew each time: the memory may have moved.
            piece = self._store.block()[rows]
            for place, row in enumerate(rows.tolist() if self._before else ()):
                if row in self._before:
                    piece[place] = self._before[row]
        return piece


class VectorMemory:
    """Rows that grow and are overwritten, in the store that fits their number."""

    def __init__(self, dim: int) -> None:
        """Makes memory without rows."""
        self._dim = dim
        self._frozen: list[FrozenVectors] = []
        self.store: VectorStore = Float32Store(dim)
        """To be read by the thread that changes it; written only inside ``changing``."""
        self.lock = threading.Lock()
        """Held while rows change, and while another thread reads some."""

    def resize(self, size: int) -> None:
        """Adds rows of zeros up to a size; may replace the store."""
        if size <= len(self.store):
            return
        with self.lock:
            if self.store.dtype == np.float32 and size * self._dim >= FLOAT16_FROM:
                self.store = self._as_float16(size)
            else:
                self.store.grow(size - len(self.store))

    @contextmanager
    def changing(self, rows: Sequence[int]) -> Iterator[VectorStore]:
        """Gives the store to write rows in range, after they were kept for who reads them yet."""
        with self.lock:
            for frozen in self._frozen:
                frozen.remember(self.store, rows)
            yield self.store

    @contextmanager
    def frozen(self, live: set[int]) -> Iterator[FrozenVectors]:
        """Keeps the state of this moment readable until the end.

        Args:
            live: Rows in use; changed only inside ``changing``.
        """
        with self.lock:
            frozen = FrozenVectors(self.store, np.array(sorted(live), np.int64), self.lock)
            self._frozen.append(frozen)
        try:
            yield frozen
        finally:
            with self.lock:
                self._frozen.remove(frozen)
                frozen.close()

    def _as_float16(self, size: int) -> VectorStore:
        """Returns a store of so many rows that begins with those of the present one."""
        after, block = Float16Store(self._dim), self.store.block()
        after.grow(size)
        for piece in pieces(len(block)):
            after.write(piece, block[piece])
        return after
