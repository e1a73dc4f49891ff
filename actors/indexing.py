"""How does one file get from the disk into the index?

Read, parse, plan, embed, apply: embed first, swap afterwards, so that a failed call leaves the old
rows where they are (SPEC D2).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

from actors.claims import VectorClaims
from actors.loops import call
from memory.embedding_input import compose
from memory.errors import StaleUpdate
from memory.markdown import parse_file
from memory.messages import FileUpdate, SkippedFile
from memory.workspace import Gone, SourceFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.embedder_pool import EmbedderPool
    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.embedding_input import TokenLimits
    from memory.messages import ApplyResult, Chunk, ParsedFile
    from memory.workspace import Workspace

MAX_PLANS = 5
MAX_TEXTS = 256
"""Most texts in one request to the pool."""
EMBED_DEADLINE_S = 3600.0
KEEPER_DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class Indexed:
    """The index now holds what the disk held."""

    result: ApplyResult
    num_embedded: int
    removed: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The file does not belong into the index as it is; what was indexed of it is gone."""

    result: ApplyResult
    skipped: SkippedFile


class FileIndexer:
    """Indexes one file at a time per call; calls may run side by side for different files."""

    def __init__(
        self,
        workspace: Workspace,
        limits: TokenLimits,
        keeper: ActorProxy[IndexKeeper],
        pool: ActorProxy[EmbedderPool],
        clock: Clock,
    ) -> None:
        self._workspace = workspace
        self._limits = limits
        self._keeper = keeper
        self._pool = pool
        self._clock = clock
        self._claims = VectorClaims()

    async def index(self, path: str, raw_path: str) -> Indexed | Refused:
        """Makes the index show what the disk shows.

        Args:
            path: Key of the file.
            raw_path: Its spelling in the last event.

        Raises:
            WorkspaceMissing: the whole root is gone.
            FileUnsettled: the file cannot be read for now; the index keeps what it has.
            EmbeddingError: no vectors; the index keeps what it has.
        """
        source = await asyncio.to_thread(self._workspace.read, raw_path)
        match source:
            case SourceFile():
                parsed = await asyncio.to_thread(parse_file, source, limits=self._limits)
                return await self._replace(parsed)
            case Gone():
                return Indexed(await self._apply(FileUpdate(path, None)), 0, removed=True)
            case SkippedFile():
                return Refused(await self._apply(FileUpdate(path, None)), source)
            case _:
                assert_never(source)

    async def _replace(self, parsed: ParsedFile) -> Indexed:
        for _attempt in range(MAX_PLANS):
            delta = await call(
                lambda: self._keeper.plan.remote(parsed),
                clock=self._clock,
                deadline_s=KEEPER_DEADLINE_S,
            )
            vectors, mine = await self._claims.embed(delta.missing, self._embed)
            hashes = tuple(chunk.content_hash for chunk in delta.missing)
            try:
                result = await self._apply(FileUpdate(parsed.path, parsed, hashes, vectors))
            except StaleUpdate:
                continue
            finally:
                self._claims.release(mine)
            return Indexed(result, len(mine), removed=False)
        raise StaleUpdate(parsed.path, delta.epoch)

    async def _apply(self, update: FileUpdate) -> ApplyResult:
        return await call(
            lambda: self._keeper.apply.remote(update),
            clock=self._clock,
            deadline_s=KEEPER_DEADLINE_S,
        )

    async def _embed(self, chunks: Sequence[Chunk]) -> NDArray[np.float32]:
        blocks = [
            await self._embed_batch(
                chunks[start : start + MAX_TEXTS], is_all=len(chunks) <= MAX_TEXTS
            )
            for start in range(0, len(chunks), MAX_TEXTS)
        ]
        return np.concatenate(blocks)

    async def _embed_batch(self, chunks: Sequence[Chunk], *, is_all: bool) -> NDArray[np.float32]:
        """Embeds some chunks; what is not the whole file is kept, so that no kill loses it."""
        texts = tuple(compose(chunk, self._limits) for chunk in chunks)
        block = await call(
            lambda: self._pool.embed.remote(texts), clock=self._clock, deadline_s=EMBED_DEADLINE_S
        )
        if not is_all:
            hashes = tuple(chunk.content_hash for chunk in chunks)
            await call(
                lambda: self._keeper.keep.remote(hashes, block),
                clock=self._clock,
                deadline_s=KEEPER_DEADLINE_S,
            )
        return block
