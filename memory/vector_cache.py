"""Which vectors are known although no row holds them?"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

DEFAULT_MAX_BYTES = 64 * 1024 * 1024


class VectorCache:
    """Vectors by content hash that no row holds.

    Those of removed chunks, so that an undo costs no embedding (SPEC D3), and those of files that
    are not embedded to their end, which are kept. Bounded by the bytes of both; the one unused for
    longest goes first.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._kept: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._vectors)

    def __contains__(self, content_hash: bytes) -> bool:
        return content_hash in self._vectors

    def __iter__(self) -> Iterator[tuple[bytes, NDArray[np.float32]]]:
        """Yields hash and vector, unused for longest first."""
        yield from self._vectors.items()

    def put(self, content_hash: bytes, vector: NDArray[np.float32]) -> None:
        """Keeps a copy of a vector, shape (dim,), as the most recently used."""
        self.discard(content_hash)
        copy = np.array(vector, np.float32)
        self._vectors[content_hash] = copy
        self._num_bytes += copy.nbytes
        while self._num_bytes > self._max_bytes:
            self.discard(next(iter(self._vectors)))

    def keep(self, content_hash: bytes, vector: NDArray[np.float32]) -> None:
        """Keeps a copy of a vector that somebody is still waiting to use."""
        self.put(content_hash, vector)
        if content_hash in self._vectors:
            self._kept.add(content_hash)

    def get(self, content_hash: bytes) -> NDArray[np.float32]:
        """Returns a vector, which is the most recently used from now on.

        Raises:
            KeyError: it is not here.
        """
        self._vectors.move_to_end(content_hash)
        return self._vectors[content_hash]

    def discard(self, content_hash: bytes) -> None:
        """Forgets a vector, if it is here."""
        vector = self._vectors.pop(content_hash, None)
        self._kept.discard(content_hash)
        if vector is not None:
            self._num_bytes -= vector.nbytes

    def kept(self) -> list[tuple[bytes, NDArray[np.float32]]]:
        """Returns hash and vector of those that are kept, unused for longest first."""
        return [(name, vector) for name, vector in self._vectors.items() if name in self._kept]

    def removed(self, max_bytes: int) -> list[tuple[bytes, NDArray[np.float32]]]:
        """Returns hash and vector of the newest removed ones, unused for longest first.

        Args:
            max_bytes: Of their vectors together.
        """
        found: list[tuple[bytes, NDArray[np.float32]]] = []
        for name, vector in reversed(self._vectors.items()):
            if name not in self._kept:
                max_bytes -= vector.nbytes
                if max_bytes < 0:
                    break
                found.append((name, vector))
        return found[::-1]
