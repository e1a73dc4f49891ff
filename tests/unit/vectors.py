"""Vectors for tests, and how alike two scans of them are."""

from __future__ import annotations

import numpy as np

from memory.vector_index import VectorIndex


def normalised(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def unit_rows(count: int, dim: int = 8, seed: int = 0) -> np.ndarray:
    return normalised(np.random.default_rng(seed).standard_normal((count, dim), np.float32))


def clustered_rows(
    count: int, dim: int, *, num_clusters: int, cosine: float, share_random: float, seed: int = 0
) -> np.ndarray:
    """Unit vectors about ``cosine`` from one of some centres, a share of them from none."""
    random = np.random.default_rng(seed)
    centres = unit_rows(num_clusters, dim, seed + 1)[random.integers(0, num_clusters, count)]
    away = unit_rows(count, dim, seed + 2)
    rows = normalised(cosine * centres + (1 - cosine**2) ** 0.5 * away)
    alone = random.random(count) < share_random
    rows[alone] = away[alone]
    return rows


def recall(queries: np.ndarray, exact, other) -> float:
    """Share of the ten best rows of one ``scan`` that another returns among its ten best."""
    found = [
        len(set(exact(query, 10)[1].tolist()) & set(other(query, 10)[1].tolist()))
        for query in queries
    ]
    return sum(found) / (10 * len(queries))


def filled(vectors: np.ndarray) -> VectorIndex:
    """Returns an index that holds each vector in the row of its number."""
    index = VectorIndex(vectors.shape[1])
    index.put(index.allocate(len(vectors)), vectors)
    return index
