"""How do rows of vectors lie in memory, and how are they scanned?

FAISS serves as a block of memory with a fast exact scan. Rows are overwritten in place through a
view of that memory, because FAISS's own ``remove_ids`` moves the whole block, whatever the number
of rows. FAISS never sees an array that came from outside: it would write through the read-only
flag of shared memory, and ``python -O`` removes its own checks of shape.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    Rows = NDArray[np.int64] | slice
    StoredBlock = NDArray[np.float32] | NDArray[np.float16]

_LEAST_FLOAT32 = float(np.finfo(np.float32).min)
_MAX_VALUE = float(np.finfo(np.float16).max)
_FLOAT16_INFINITY = 0x7C00
_ROWS_A_SCAN = 512


def one_threaded_faiss() -> Any:
    """Returns the module, limited to one thread for the calling thread.

    The workers of OpenMP spin and starve a busy machine. The limit belongs to the thread that sets
    it, so it is set for each use (0.2 µs).
    """
    import faiss  # noqa: PLC0415 - takes 0.14 s, and only a search needs it

    faiss.omp_set_num_threads(1)
    return faiss


def check_values(vectors: StoredBlock) -> None:
    """Refuses what no store can hold.

    Raises:
        ValueError: a value is not finite, or beyond float16.
    """
    if vectors.dtype == np.float16:
        # As integers they compare ten times as fast; infinity is the least that is not finite.
        good = (vectors.view(np.uint16) & 0x7FFF).max(initial=0) < _FLOAT16_INFINITY
    else:
        # Also false for NaN.
        good = np.abs(vectors).max(initial=0) <= _MAX_VALUE
    if not good:
        raise ValueError("vectors hold a value that is not finite, or too great for float16")


class VectorStore(Protocol):
    """Rows of one dimension and type that grow, are overwritten and are scanned."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values as they are held."""

    def __len__(self) -> int:
        """Number of rows."""

    def grow(self, count: int) -> None:
        """Adds rows of zeros at the end; may move the memory of all."""

    def write(self, rows: Rows, vectors: StoredBlock) -> None:
        """Overwrites rows.

        Args:
            rows: Shape (n,), distinct, in range; or a slice.
            vectors: Shape (n, dim), passed by ``check_values``; copied.
        """

    def zero(self, rows: Rows) -> None:
        """Overwrites rows with zeros."""

    def read(self, rows: Rows) -> NDArray[np.float32]:
        """Returns copies of rows, shape (n, dim)."""

    def products(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the inner products of a query with rows, as ``scan`` computes them.

        Args:
            query: Shape (dim,), own memory, C-contiguous.
            rows: Shape (n,), in range.
        """

    def all_products(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the inner products of a query with all rows, shape (len(self),).

        Args:
            query: Shape (dim,), own memory, C-contiguous.
        """

    def block(self) -> StoredBlock:
        """Returns all rows as they are held, shape (len(self), dim), read-only, without a copy.

        Valid until the next change and as long as the store lives.
        """

    def scan(
        self, query: NDArray[np.float32], count: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns the rows with the greatest inner products with a query, greatest first.

        Args:
            query: Shape (dim,), own memory, C-contiguous.
            count: From 1 to len(self).
            mask: Shape (len(self),); only rows where it is true are looked at.
        Returns:
            Inner products and rows, both of shape (count,); where the mask leaves fewer rows, the
            end is filled with the least float32 and row -1.
        """


class _FlatCodes:
    """Rows in the code buffer of a FAISS index whose codes are plain numbers."""

    def __init__(self, index: Any, dim: int, dtype: DTypeLike) -> None:
        self._index = index
        self._empty = one_threaded_faiss().clone_index(index)
        self._dim = dim
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def grow(self, count: int) -> None:
        """See ``VectorStore``."""
        size = len(self) + count
        # Not ``add``, which wants the new rows as float32.
        self._index.codes.resize(size * self._dim * self.dtype.itemsize)
        self._index.ntotal = size

    def write(self, rows: Rows, vectors: StoredBlock) -> None:
        """See ``VectorStore``."""
        self._memory()[rows] = vectors

    def zero(self, rows: Rows) -> None:
        """See ``VectorStore``."""
        self._memory()[rows] = 0

    def read(self, rows: Rows) -> NDArray[np.float32]:
        """See ``VectorStore``."""
        return np.array(self._memory()[rows], np.float32)

    def products(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """See ``VectorStore``; a scan of copied rows takes a quarter of the time to decode them."""
        found, (part, room) = np.empty(len(rows), np.float32), self._part
        for begin in range(0, len(rows), _ROWS_A_SCAN):
            chosen = rows[begin : begin + _ROWS_A_SCAN]
            room[: len(chosen)] = self._memory()[chosen]
            part._index.ntotal = len(chosen)  # noqa: SLF001 - of this class
            products, places = part.scan(query, len(chosen))
            found[begin + places] = products
        return found

    def block(self) -> StoredBlock:
        """See ``VectorStore``."""
        block = self._memory()
        block.flags.writeable = False
        return block

    def scan(
        self, query: NDArray[np.float32], count: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """See ``VectorStore``."""
        faiss, params = one_threaded_faiss(), None
        if mask is not None:
            # The selector points into these bits.
            bits = np.packbits(mask, bitorder="little")
            params = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bits))
        products, rows = self._index.search(query[None], count, params=params)
        return products[0], rows[0]

    @cached_property
    def _part(self) -> tuple[_FlatCodes, StoredBlock]:
        """Scans some rows at a time, which are copied into the memory beside it."""
        part = _FlatCodes(self._empty, self._dim, self.dtype)
        part.grow(_ROWS_A_SCAN)
        return part, part._memory()

    def _memory(self) -> StoredBlock:
        """Returns the memory of FAISS, shape (rows, dim); invalid once it has grown."""
        shape = (len(self), self._dim)
        if not all(shape):
            return np.empty(shape, self.dtype)
        codes = self._index.codes
        flat = one_threaded_faiss().rev_swig_ptr(codes.data(), codes.size())
        return flat.view(self.dtype).reshape(shape)  # type: ignore[no-any-return] # no types


class Float32Store(_FlatCodes):
    """Exact: returns the vectors that were written, bit by bit."""

    def __init__(self, dim: int) -> None:
        """Makes a store without rows."""
        super().__init__(one_threaded_faiss().IndexFlatIP(dim), dim, np.float32)

    def all_products(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """See ``VectorStore``."""
        faiss, rows, products = (
            one_threaded_faiss(),
            self._memory(),
            np.empty(len(self), np.float32),
        )
        faiss.fvec_inner_products_ny(*map(faiss.swig_ptr, (products, query, rows)), *rows.T.shape)
        return products


class Float16Store(_FlatCodes):
    """Half the memory and half the time; components of unit vectors are off by at most 2.5e-4."""

    def __init__(self, dim: int) -> None:
        """Makes a store without rows."""
        faiss = one_threaded_faiss()
        kind, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        super().__init__(faiss.IndexScalarQuantizer(dim, kind, metric), dim, np.float16)

    def read(self, rows: Rows) -> NDArray[np.float32]:
        """See ``VectorStore``; FAISS converts in half the time that numpy takes."""
        codes = np.ascontiguousarray(self._memory()[rows])
        if not codes.size:
            return np.empty(codes.shape, np.float32)
        vectors: NDArray[np.float32] = self._index.sa_decode(codes.view(np.uint8))
        return vectors

    def all_products(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """See ``VectorStore``; all rows are in range of the least float32."""
        faiss, size = one_threaded_faiss(), len(self)
        found = faiss.RangeSearchResult(1)
        # One buffer, no larger than needed: memory fresh from the system takes as long as a fifth
        # of the scan. One more, because a full buffer is followed by another.
        found.buffer_size = size + 1
        part = faiss.RangeSearchPartialResult(found)
        self._scanner.set_query(faiss.swig_ptr(query))
        self._scanner.scan_codes_range(
            size, self._index.codes.data(), None, _LEAST_FLOAT32, part.new_result(0)
        )
        rows, products = np.empty(size, np.int64), np.empty(size, np.float32)
        # From the buffer; to finalize the result copies it twice.
        part.copy_range(0, size, *map(faiss.swig_ptr, (rows, products)))
        return products

    @cached_property
    def _scanner(self) -> Any:
        """Goes through codes as ``scan`` does, but can also keep what it finds in their order."""
        metric = self._index.metric_type
        scanner = self._index.sq.select_InvertedListScanner(metric, None, True, None)  # noqa: FBT003
        scanner.set_list(0, 0.0)
        return scanner
