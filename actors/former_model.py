"""Which vector has a question while the index of another model answers?

That of the model the index was made with, if it can still be reached: it is opened beside the pool
when such an index answers, is asked for questions alone, and goes when the new index has taken
over. What it costs counts for no budget.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from actors.loops import call
from memory.embedding_config import access_to_model, model_of_index
from memory.errors import (
    BadEmbedding,
    ConfigError,
    EmbeddingError,
    ProviderAwaited,
    ProviderRejected,
    ProviderUnavailable,
)
from memory.identity import Identity, differences
from memory.provider_gate import ProviderGate
from memory.providers.factory import open_embedder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.config import InferenceSettings
    from memory.provider_gate import Ticket
    from memory.providers.base import Embedder

    Open: TypeAlias = Callable[[Identity, InferenceSettings], Embedder]

logger = logging.getLogger(__name__)

POLL_S = 2.0
STATUS_DEADLINE_S = 60.0
MAX_ASKED_AT_ONCE = 8


def open_model_of(identity: Identity, inference: InferenceSettings) -> Embedder:
    """Loads the model that made the vectors of an index; makes no request.

    Raises:
        ConfigError: it is not known, would make other vectors by now, or is not reachable: see
            ``access_to_model``, which sends a key to the configured address only.
        ProviderRejected: its package is missing or damaged.
    """
    model = model_of_index(identity)
    if changed := differences(identity, Identity.of(model)):
        raise ConfigError(f"the model of the index makes other vectors by now: {changed}")
    model = replace(model, dim=identity.dim)
    return open_embedder(model, access_to_model(model, inference))


class FormerModel:
    """The model of the index that answers, if it is not the configured one; one event loop.

    Args:
        inference: Keys and addresses, as they are configured now.
        keeper: Knows which index answers.
        clock: Time for pauses.
        open_model: Loads a model.
    """

    def __init__(
        self,
        inference: InferenceSettings,
        keeper: ActorProxy[IndexKeeper],
        clock: Clock,
        open_model: Open = open_model_of,
    ) -> None:
        self._inference = inference
        self._keeper = keeper
        self._clock = clock
        self._open = open_model
        self._embedder: Embedder | None = None
        self._gate = _new_gate()
        self._why_closed = ""
        self._num_asked = 0
        self.identity: Identity | None = None
        """Of the index that answers; None if that is the index of the configured model."""

    @property
    def trouble(self) -> str:
        """Why questions have no vector now; empty if they have, or need none of this model."""
        return self._why_closed or self._gate.reason

    async def step(self) -> None:
        """Looks once which index answers, and opens or drops its model.

        Raises:
            TimeoutError: the keeper did not answer.
        """
        identity = await call(
            self._keeper.former_identity.remote, clock=self._clock, deadline_s=STATUS_DEADLINE_S
        )
        if identity != self.identity:
            self.forget()
            if identity is not None:
                await self._load(identity)
        await self._clock.sleep(POLL_S)

    def forget(self) -> None:
        """Drops the model: its index does not answer any more."""
        self.identity, self._embedder = None, None
        self._gate, self._why_closed = _new_gate(), ""

    async def vectors(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        """Returns the unit vectors of questions, shape (len(texts), dim), float32.

        Raises:
            EmbeddingError: there are none now.
        """
        name = self.identity.provider if self.identity else ""
        if self._embedder is None:
            raise ProviderRejected(name, self._why_closed or "it is not loaded yet")
        ticket = None
        if self._num_asked < MAX_ASKED_AT_ONCE:
            ticket = self._gate.begin(self._clock.monotonic())
        if ticket is None:
            raise ProviderAwaited(name, self._gate.reason or "it is busy")
        asking = asyncio.get_running_loop().create_task(
            self._ask(self._embedder, self._gate, ticket, texts)
        )
        asking.add_done_callback(_seen)
        # Who asked may leave early; the gate needs the outcome all the same.
        return await asyncio.shield(asking)

    async def _load(self, identity: Identity) -> None:
        self.identity, self._why_closed = identity, "it is not loaded yet"
        try:
            embedder = await asyncio.to_thread(self._open, identity, self._inference)
            if self.identity == identity:  # it may have been forgotten meanwhile
                self._embedder, self._why_closed = embedder, ""
        except (ConfigError, EmbeddingError) as error:
            self._why_closed = str(error)
            logger.warning("questions have no vectors until the new index is complete: %s", error)

    async def _ask(
        self, embedder: Embedder, gate: ProviderGate, ticket: Ticket, texts: tuple[str, ...]
    ) -> NDArray[np.float32]:
        self._num_asked += 1
        try:
            vectors = await asyncio.to_thread(embedder.embed_queries, texts)
        except ProviderRejected as error:
            gate.rejected(ticket, self._clock.monotonic(), error.reason)
            raise
        except (ProviderUnavailable, BadEmbedding) as error:
            wait_s = error.retry_after_s if isinstance(error, ProviderUnavailable) else None
            gate.failed(ticket, self._clock.monotonic(), error.reason, wait_s)
            raise
        except BaseException:
            gate.abandoned(ticket)
            raise
        finally:
            self._num_asked -= 1
        gate.answered(ticket)
        return vectors


def _new_gate() -> ProviderGate:
    return ProviderGate(random.Random())  # noqa: S311 - jitter, not a secret


def _seen(task: asyncio.Task[NDArray[np.float32]]) -> None:
    if not task.cancelled():
        task.exception()  # perhaps nobody waits any more
