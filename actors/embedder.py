"""The Embedder actor: one embedding model in one process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

import ray

from memory.providers.factory import open_embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.access import ProviderAccess
    from memory.providers.base import Embedder, ModelInfo


@final
class EmbedderWorker:
    """Embeds what the pool hands it.

    Owns: one model, loaded at the first call, so that a missing package is an answer and not a dead
    actor.
    Survives a crash: nothing; the pool repeats the request.
    Ordering: batches one after the other; questions run beside them in the group ``query``.
    Called by: EmbedderPool.
    """

    def __init__(self, info: ModelInfo, number: int, access: ProviderAccess | None = None) -> None:
        self._info = info
        self._access = access
        self._number = number
        self._loaded: Embedder | None = None

    def __repr__(self) -> str:
        return f"Embedder-{self._number}"

    @ray.method
    def embed(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        """Returns one unit vector per text, shape (len(texts), dim), float32.

        Raises:
            EmbeddingError: the model cannot be loaded or gave no usable answer.
        """
        return self._model().embed_documents(texts)

    @ray.method(concurrency_group="query")
    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the unit vector of a question, shape (dim,), float32.

        Raises:
            EmbeddingError: as for ``embed``.
        """
        return self._model().embed_query(text)

    @ray.method(concurrency_group="control")
    def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    def _model(self) -> Embedder:
        if self._loaded is None:
            self._loaded = open_embedder(self._info, self._access)
        return self._loaded
