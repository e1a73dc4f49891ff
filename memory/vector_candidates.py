"""Which rows are candidates for the answer to a query vector, and how similar are they?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memory.top_documents import best_first, promising

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory.vector_store import VectorStore

    Found = tuple[NDArray[np.int64], NDArray[np.float32]]

# Similarities of equal vectors may differ in the last bit.
_TIE = 1e-6
_MAX_TIE_FACTOR = 8
_FEW_ROWS = 32_768
"""Rows up to which to keep all cosines takes less time than to keep the greatest and to look
further ones up: 0.26 ms instead of 0.43 for 10,000 of 384 dimensions, as much for 40,000."""


def candidates(
    store: VectorStore,
    query: NDArray[np.float32],
    *,
    limit: int,
    mask: NDArray[np.bool_] | None = None,
    also: NDArray[np.int64] | None = None,
) -> Found:
    """Returns (rows, cosines), see ``VectorIndex.search``.

    Args:
        store: At least one row.
        query: Shape (dim,), unit norm, own memory, C-contiguous.
        limit: At least 1.
        mask: Shape (len(store),); only rows where it is true are looked at, if they are enough.
        also: Distinct rows that are wanted in any case, first.
    """
    if also is None:
        return _most_similar(store, query, limit, mask)
    if mask is None and len(store) <= _FEW_ROWS:
        products = store.all_products(query)
        of_also, (rows, cosines) = products[also], _best_of(products, limit)
    else:
        rows, cosines = _most_similar(store, query, limit, mask)
        of_also = store.products(query, also)
    is_also = np.zeros(len(store), np.bool_)
    is_also[also] = True
    others = ~is_also[rows]
    return np.concatenate((also, rows[others])), np.concatenate((of_also, cosines[others]))


def _most_similar(
    store: VectorStore, query: NDArray[np.float32], limit: int, mask: NDArray[np.bool_] | None
) -> Found:
    rows, cosines = _scanned(store, query, limit, mask)
    if mask is not None and len(rows) < limit:
        return _scanned(store, query, limit, None)
    return rows, cosines


def _scanned(
    store: VectorStore, query: NDArray[np.float32], limit: int, mask: NDArray[np.bool_] | None
) -> Found:
    size, wanted = len(store), limit + 1
    while True:
        count = min(size, wanted)
        cosines, rows = store.scan(query, count, mask)
        least = max(float(cosines[min(limit, count) - 1]) - _TIE, 0.0)
        if count == size or cosines[-1] <= least or count > _MAX_TIE_FACTOR * limit:
            break
        wanted *= 2
    # Freed rows have cosine 0.
    found = cosines > least
    return rows[found], cosines[found]


def _best_of(cosines: NDArray[np.float32], limit: int) -> Found:
    """Returns what ``_scanned`` does, from the cosines of all rows."""
    rows = promising(cosines, limit, tie=2 * _TIE)
    best, least = cosines[rows], 0.0
    if len(best) >= limit:
        place = len(best) - limit
        least = max(float(np.partition(best, place)[place]) - _TIE, 0.0)
    found = best > least
    rows, best = rows[found], best[found]
    order = best_first(rows, best, _MAX_TIE_FACTOR * limit)
    return rows[order], best[order]
