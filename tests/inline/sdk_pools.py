"""An embedder pool that asks a server on the loopback interface through a real SDK."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from actors.embedder import EmbedderWorker
from actors.embedder_pool import EmbedderPool, PoolOptions
from memory.providers.access import GOOGLE, MISTRAL, OPENAI
from memory.providers.factory import model_info
from tests.doubles import FakeClock
from tests.inline.handles import InlineHandle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.messages import Embedded
    from memory.providers.base import ModelInfo, RequestLimits
    from tests.embedding_server import EmbeddingServer

MODELS = {
    OPENAI: "text-embedding-3-small",
    MISTRAL: "mistral-embed",
    GOOGLE: "gemini-embedding-001",
}


class SdkPool:
    """The real pool and the real worker of one provider; only time is not real.

    The worker runs in the event loop of the test, so its requests go one after the other.
    """

    def __init__(self, server: EmbeddingServer, protocol: str) -> None:
        server.reset()
        self.server = server
        self.protocol = protocol
        self.clock = FakeClock()
        self.info = _info(server, protocol)
        self.worker = _worker(server, protocol)
        self.open()

    def open(self, limits: RequestLimits | None = None) -> None:
        """Starts the pool afresh; ``limits`` is what it believes that the provider takes."""
        info = replace(self.info, limits=limits or self.info.limits)
        rng = random.Random(7)
        self.pool = InlineHandle(
            EmbedderPool(info, PoolOptions(), InlineHandle(self.worker), clock=self.clock, rng=rng)
        )

    def has_rows(self, embedded: Embedded, texts: Sequence[str]) -> bool:
        """Tells whether an answer holds the vector of each text."""
        rows = [self.server.vector(text) for text in texts]
        return not embedded.refused and np.allclose(embedded.vectors, rows, atol=1e-6)

    async def num_asked(self) -> int:
        """Returns the requests that the pool decided to make."""
        return int((await self.pool.status.remote()).calls.num_requests)


def _info(server: EmbeddingServer, protocol: str) -> ModelInfo:
    known = model_info(protocol, MODELS[protocol], server.access(protocol))
    return replace(known, dim=server.dim)


@cache
def _worker(server: EmbeddingServer, protocol: str) -> EmbedderWorker:
    return EmbedderWorker(_info(server, protocol), 0, server.access(protocol))
