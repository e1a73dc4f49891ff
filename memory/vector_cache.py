"""Which vectors were in use a moment ago, and may come back?"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

DEFAULT_MAX_BYTES = 64 * 1024 * 1024


class VectorCache:
    """Vectors of removed chunks by content hash, so that an undo costs no embedding (SPEC D3).

    Bounded by the bytes of its vectors; the one unused for longest goes first.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()

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
            _hash, oldest = self._vectors.popitem(last=False)
            self._num_bytes -= oldest.nbytes

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
        if vector is not None:
            self._num_bytes -= vector.nbytes
