"""The Embedder actor: one embedding model in one process."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import ray

from memory.providers.factory import open_embedder
from memory.providers.request_slots import RequestSlots

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.access import ProviderAccess
    from memory.providers.base import Embedder, ModelInfo


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Answer to one request."""

    rows: NDArray[np.float32]
    """Unit vectors, shape (n, dim)."""
    num_tokens: int = 0
    """Tokens the provider charged for; 0 if it does not tell."""


@final
class EmbedderWorker:
    """Embeds what the pool hands it.

    Owns: one model, loaded at the first call, so that a missing package is an answer and not a dead
    actor.
    Survives a crash: nothing; the pool repeats the request. It keeps for the pool what that has
    spent, for the case that the pool dies.
    Ordering: as many batches side by side as the composition root gives it threads, one for a
    model that runs here; of those to a provider one waits, so that the next request goes out while
    an answer is on its way to the pool. Questions run beside them in the group ``query``.
    Called by: EmbedderPool.
    """

    def __init__(
        self,
        info: ModelInfo,
        number: int,
        access: ProviderAccess | None = None,
        max_at_once: int = 1,
    ) -> None:
        self._info = info
        self._access = access
        self._number = number
        self._slots = RequestSlots(info.provider, max_at_once)
        self._loading = threading.Lock()
        self._loaded: Embedder | None = None
        self._num_spent = 0

    def __repr__(self) -> str:
        return f"Embedder-{self._number}"

    @ray.method
    def embed(self, texts: tuple[str, ...]) -> Vectors:
        """Returns one unit vector per text, of one request.

        Raises:
            EmbeddingError: the model cannot be loaded or gave no usable answer.
        """
        model = self._model()
        return Vectors(model.embed_documents(texts), model.take_num_tokens())

    @ray.method(concurrency_group="query")
    def embed_queries(self, texts: tuple[str, ...]) -> Vectors:
        """Returns one unit vector per question, of one request.

        Raises:
            EmbeddingError: as for ``embed``.
        """
        model = self._model()
        return Vectors(model.embed_queries(texts), model.take_num_tokens())

    @ray.method(concurrency_group="control")
    def keep_spent(self, num_tokens: int) -> int:
        """Returns the most tokens that a pool has told it to have spent, this time included."""
        self._num_spent = max(self._num_spent, num_tokens)
        return self._num_spent

    @ray.method(concurrency_group="control")
    def hold_back(self) -> None:
        """Sends nothing that waits for its turn: those requests raise ``RequestHeldBack``."""
        self._slots.hold_back()

    @ray.method(concurrency_group="control")
    def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    def _model(self) -> Embedder:
        with self._loading:  # a batch and a question may both be the first call
            if self._loaded is None:
                self._loaded = open_embedder(self._info, self._access, self._slots)
            return self._loaded
