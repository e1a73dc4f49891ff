"""Fakes that stand for the slow and the uncertain: models and time."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import numpy as np

from memory.providers.base import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SETTLE_TURNS = 20


class HashEmbedder:
    """Gives every text its own random direction, always the same one, and counts.

    Equal texts have cosine 1, different ones about 0 +- 1/sqrt(dim).
    """

    def __init__(self, dim: int = 16) -> None:
        self.info = ModelInfo(
            provider="fake",
            model=f"hash-{dim}",
            dim=dim,
            max_tokens=512,
            noise=0.0,
            similarity_floor=0.0,
        )
        self.num_calls = 0
        self.texts: list[str] = []
        """Every text sent as a document, in order."""
        self.queries: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.num_calls += 1
        self.texts += texts
        if not texts:
            return np.empty((0, self.info.dim), np.float32)
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.queries.append(text)
        return self._vector(text)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.embed_query(text) for text in texts])

    def take_num_tokens(self) -> int:
        return 0

    def _vector(self, text: str) -> NDArray[np.float32]:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        vector = np.random.default_rng(int.from_bytes(digest)).normal(size=self.info.dim)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class FakeClock:
    """Time that passes only when a test says so."""

    def __init__(self, *, unix: float = 1_000_000.0) -> None:
        self._now = 0.0
        self._offset = unix
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self._now + self._offset

    def monotonic(self) -> float:
        return self._now

    def set_wall_clock_by(self, seconds: float) -> None:
        """Moves Unix time alone, as an administrator or a time server would."""
        self._offset += seconds

    async def sleep(self, seconds: float) -> None:
        await self.wait(asyncio.Event(), seconds)

    async def wait(self, event: asyncio.Event, timeout_s: float | None) -> bool:
        if event.is_set():
            return True
        due = asyncio.get_running_loop().create_future()
        if timeout_s is not None:
            self._sleepers.append((self._now + timeout_s, due))
            self._fire()
        arrival = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({arrival, due}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrival.cancel()
            due.cancel()
        return event.is_set()

    async def advance(self, seconds: float) -> None:
        """Lets time pass, stopping at each moment somebody waits for."""
        end = self._now + seconds
        await self._settle()
        while moments := [at for at, due in self._sleepers if at <= end and not due.done()]:
            self._now = max(self._now, min(moments))
            self._fire()
            await self._settle()
        self._now = end

    def _fire(self) -> None:
        for at, due in self._sleepers:
            if at <= self._now and not due.done():
                due.set_result(None)
        self._sleepers = [(at, due) for at, due in self._sleepers if not due.done()]

    async def _settle(self) -> None:
        """Lets tasks that were woken run until they wait again."""
        for _turn in range(SETTLE_TURNS):
            await asyncio.sleep(0)
