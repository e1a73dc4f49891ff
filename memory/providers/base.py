"""What does every embedding provider offer?

A provider module holds one class that satisfies ``Embedder``. It raises only classes of
``memory.errors`` and leaves the checks of an answer to ``checked_vectors``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from memory.errors import BadEmbedding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How much a provider takes at once."""

    max_inputs: int
    """Most texts in one request."""
    max_tokens: int
    """Most tokens of all texts of one request together."""
    max_concurrent: int
    """Requests that may be in flight, over all workers; 0 for one per worker."""

    def of_worker(self, number: int, num_workers: int) -> int:
        """Returns how many of them one of the workers makes, counted from 0."""
        if not self.max_concurrent:
            return 1
        return self.max_concurrent // num_workers + (number < self.max_concurrent % num_workers)


LOCAL_LIMITS = RequestLimits(max_inputs=8, max_tokens=1_000_000, max_concurrent=0)
"""Few enough texts that a lost call costs about a second."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known about an embedding model without loading it."""

    provider: str
    """``local`` or the id of an entry under ``inference``."""
    model: str
    dim: int
    """Dimension of the vectors; 0 if only a call can tell."""
    max_tokens: int
    """Longest input in the model's own tokens, special tokens included."""
    noise: float
    """Mean cosine of two unrelated texts, in [0, 1)."""
    similarity_floor: float
    """Least cosine at which a hit that only the vector side found means anything, in [0, 1]."""
    base_url: str = ""
    limits: RequestLimits = LOCAL_LIMITS
    document_prefix: str = ""
    """What the embedder puts before a document, part of the identity of an index."""
    query_prefix: str = ""
    """What the embedder puts before a question."""


class TokenCounter(Protocol):
    """Counts the tokens of a text; never fewer than the model would see."""

    def __call__(self, text: str) -> int:
        """Returns the number of tokens, special tokens not included."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors; an instance belongs to one process."""

    info: ModelInfo

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector per text, shape (len(texts), dim), float32."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the unit vector of a question, shape (dim,), float32.

        May run in another thread while ``embed_documents`` is busy, and must not wait for the
        whole of that call.
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector per question, shape (len(texts), dim), float32; as above."""
        ...

    def take_num_tokens(self) -> int:
        """Returns the tokens that the provider charged for since this was last asked.

        0 where nobody counts. Calls that ran at the same time share the sum in any way.
        """
        ...


def well_formed(text: str) -> str:
    """Returns the text as any tokenizer takes it: lone surrogates and NUL become U+FFFD."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd")


def checked_vectors(
    provider: str, answer: ArrayLike, *, count: int, dim: int
) -> NDArray[np.float32]:
    """Returns the answer of a model as unit vectors, or refuses it whole (SPEC E4).

    Args:
        provider: Name for the error.
        answer: Anything numpy can read as a matrix of shape (count, dim).
        count: Number of texts that were sent.
        dim: Expected dimension; 0 takes the dimension of the answer.

    Returns:
        Shape (count, dim), float32, unit norm.

    Raises:
        BadEmbedding: wrong count or dimension, ragged, not finite, or a zero vector.
    """
    try:
        with np.errstate(over="ignore"):  # becomes an infinity, which is refused below
            vectors = np.array(answer, dtype=np.float32)
    except (OverflowError, TypeError, ValueError):
        raise BadEmbedding(provider, "the answer is not a matrix of numbers") from None
    if count == 0:
        return np.empty((0, dim), np.float32)
    expected = (count, dim or (vectors.shape[1] if vectors.ndim > 1 else 0))
    if vectors.shape != expected or not vectors.shape[1]:
        raise BadEmbedding(provider, f"expected shape {expected}, got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise BadEmbedding(provider, "a value is not finite")
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not (norms > 0).all():
        raise BadEmbedding(provider, "a vector is zero")
    unit: NDArray[np.float32] = (vectors / norms).astype(np.float32)
    return unit
