"""An embedder pool whose workers do as they are told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from actors.embedder import Vectors
from actors.embedder_pool import EmbedderPool, PoolOptions
from actors.worker_calls import NUM_SPARE
from memory.errors import (
    EmbeddingError,
    ProviderUnavailable,
)
from memory.providers.base import ModelInfo, RequestLimits
from tests.doubles import FakeClock, HashEmbedder
from tests.inline.conftest import INFO
from tests.inline.handles import InlineHandle

DIM = INFO.dim
REMOTE = replace(INFO, provider="far", limits=RequestLimits(256, 10_000, 2))
MOST_AT_A_WORKER = REMOTE.limits.max_concurrent + NUM_SPARE
"""Requests that the pool hands to one worker, which is all there is, before it waits."""
TEXTS = tuple(f"text {number}" for number in range(53))
DOWN = ProviderUnavailable("far", "status 503")

Rule = Callable[[Sequence[str]], Exception | None]


def healthy(_texts: Sequence[str]) -> None:
    """Refuses nothing."""


@dataclass
class Worker:
    """Embeds at once, or waits for a gate, or refuses what a rule says."""

    rule: Rule = healthy
    gate: asyncio.Event | None = None
    tokens_a_text: int = 0
    requests: list[tuple[str, ...]] = field(default_factory=list)
    most_at_once: int = 0
    num_now: int = 0
    model: HashEmbedder = field(default_factory=lambda: HashEmbedder(DIM))
    num_spent: int = 0
    num_held_back: int = 0

    async def embed(self, texts: tuple[str, ...]) -> Vectors:
        self.requests.append(texts)
        self.num_now += 1
        self.most_at_once = max(self.most_at_once, self.num_now)
        try:
            if self.gate is not None:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
            if error := self.rule(texts):
                raise error
            return Vectors(self.model.embed_documents(texts), self.tokens_a_text * len(texts))
        finally:
            self.num_now -= 1

    def ping(self) -> int:
        return 1

    def keep_spent(self, num_tokens: int) -> int:
        self.num_spent = max(self.num_spent, num_tokens)
        return self.num_spent

    def hold_back(self) -> None:
        self.num_held_back += 1

    async def embed_queries(self, texts: tuple[str, ...]) -> Vectors:
        self.requests.append(texts)
        if error := self.rule(texts):
            raise error
        return Vectors(self.model.embed_queries(texts), self.tokens_a_text * len(texts))


def refuses(poison: str, error: EmbeddingError) -> Rule:
    return lambda texts: error if poison in texts else None


def failing(*errors: Exception) -> Rule:
    """Fails once with each, then works."""
    rest = list(errors)
    return lambda _texts: rest.pop(0) if rest else None


def pool_of(
    *workers: Worker, info: ModelInfo = INFO, options: PoolOptions | None = None
) -> tuple[InlineHandle, list[InlineHandle], FakeClock]:
    handles, clock = [InlineHandle(worker) for worker in workers], FakeClock()
    pool = EmbedderPool(info, options or PoolOptions(), *handles, clock=clock, rng=random.Random(7))
    return InlineHandle(pool), handles, clock


def remote(worker: Worker, options: PoolOptions | None = None) -> tuple[InlineHandle, FakeClock]:
    pool, _handles, clock = pool_of(worker, info=REMOTE, options=options)
    return pool, clock


def expected(texts: Sequence[str]) -> Any:
    return HashEmbedder(DIM).embed_documents(texts)


async def settle() -> None:
    for _turn in range(40):
        await asyncio.sleep(0)
