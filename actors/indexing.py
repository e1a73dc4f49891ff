"""How does one file get from the disk into the index?

Read, parse, plan, embed, apply: embed first, swap afterwards, so that a failed call leaves the old
rows where they are (SPEC D2). All but the last is ``prepare``: a file that only waits for its turn
at the keeper keeps no other from being embedded.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

from actors.applying import KEEPER_DEADLINE_S
from actors.claims import VectorClaims
from actors.loops import call
from memory.embedding_input import compose
from memory.errors import StaleUpdate, WorkspaceMissing
from memory.markdown import parse_file
from memory.messages import FileUpdate, SkippedFile
from memory.recent import Recent
from memory.wording import counted
from memory.workspace import Gone, SourceFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.applying import Applier
    from actors.embedder_pool import EmbedderPool
    from actors.index_keeper import IndexKeeper
    from memory.clock import Clock
    from memory.embedding_input import TokenLimits
    from memory.messages import ApplyResult, Chunk, ParsedFile, WordsOnly
    from memory.workspace import Workspace

MAX_PLANS = 5
MAX_TEXTS = 256
"""Most texts in one request to the pool."""
EMBED_DEADLINE_S = 3600.0
MAX_REFUSALS = 1_024
REFUSED_BEFORE = "why was not kept"


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What the index is to hold of a file; must be handed to ``FileIndexer.apply``."""

    update: FileUpdate
    is_new: bool = False
    claimed: Sequence[Chunk] = ()
    """Chunks that were embedded for it."""
    skipped: SkippedFile | None = None
    """Why a file that is there is removed, or has sections without a vector."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The index now holds what the disk held."""

    result: ApplyResult
    num_embedded: int
    removed: bool
    skipped: SkippedFile | None = None
    """Why some of its sections have no vector."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The file does not belong into the index as it is; what was indexed of it is gone."""

    result: ApplyResult
    skipped: SkippedFile


class FileIndexer:
    """Indexes one file at a time per call; calls may run side by side for different files.

    Args:
        workspace: Where the files are.
        limits: Of the model.
        keeper: Owns the index.
        pool: Embeds.
        applier: Hands updates to the keeper.
        clock: For pauses while a neighbour restarts.
    """

    def __init__(
        self,
        workspace: Workspace,
        limits: TokenLimits,
        keeper: ActorProxy[IndexKeeper],
        pool: ActorProxy[EmbedderPool],
        applier: Applier,
        clock: Clock,
    ) -> None:
        self._workspace = workspace
        self._limits = limits
        self._keeper = keeper
        self._pool = pool
        self._applier = applier
        self._clock = clock
        self._claims = VectorClaims()
        self._refusals: Recent[str, str] = Recent(MAX_REFUSALS)
        """Why the provider refuses a text, by content hash."""

    def recall(self, file: WordsOnly) -> SkippedFile:
        """Notes what the provider refused before, and returns what is to be said of the file."""
        for name in file.hashes:
            if self._refusals.get(name) is None:
                self._refusals.put(name, REFUSED_BEFORE)
        if not file.hashes:
            return _not_utf8(file.path, file.num_replaced_bytes)
        return _words_only(file.path, len(file.hashes), file.num_chunks, REFUSED_BEFORE)

    async def prepare(self, path: str, raw_path: str, *, is_root_gone: bool = False) -> Prepared:
        """Returns what the disk shows, with the vectors that the index lacks.

        Args:
            path: Key of the file.
            raw_path: Its spelling in the last event.
            is_root_gone: Whether a missing root means that the file is gone.

        Raises:
            WorkspaceMissing: the whole root is missing, which means nothing for the file.
            FileUnsettled: the file cannot be read for now; the index keeps what it has.
            EmbeddingError: no vectors; the index keeps what it has.
        """
        source: SourceFile | Gone | SkippedFile
        try:
            source = await asyncio.to_thread(self._workspace.read, raw_path)
        except WorkspaceMissing:
            if not is_root_gone:
                raise
            source = Gone(path)
        match source:
            case SourceFile():
                parsed = await asyncio.to_thread(parse_file, source, limits=self._limits)
                return await self._planned(parsed)
            case Gone():
                return Prepared(FileUpdate(path, None))
            case SkippedFile():
                return Prepared(FileUpdate(path, None), skipped=source)
            case _:
                assert_never(source)

    async def apply(self, prepared: Prepared) -> Indexed | Refused:
        """Makes the index show what was prepared.

        Raises:
            EmbeddingError: the index has lost a vector meanwhile, and there is no new one.
            StaleUpdate: it loses them again and again.
        """
        for _attempt in range(MAX_PLANS):
            update, claimed = prepared.update, prepared.claimed
            try:
                result = await self._applier.apply(update, is_new=prepared.is_new)
            except StaleUpdate as error:
                stale = error
            else:
                if prepared.skipped is not None and update.parsed is None:
                    return Refused(result, prepared.skipped)
                return Indexed(result, len(claimed), update.parsed is None, prepared.skipped)
            finally:
                self._claims.release(claimed)
            assert update.parsed is not None  # noqa: S101 - a removal needs no vector
            prepared = await self._planned(update.parsed)
        raise stale

    async def _planned(self, parsed: ParsedFile) -> Prepared:
        delta = await call(
            lambda: self._keeper.plan.remote(parsed),
            clock=self._clock,
            deadline_s=KEEPER_DEADLINE_S,
        )
        vectors, claimed = await self._claims.embed(delta.missing, self._embed)
        hashes = tuple(chunk.content_hash for chunk in delta.missing)
        update = FileUpdate(parsed.path, parsed, hashes, vectors)
        return Prepared(update, delta.is_new, claimed, self._remark(parsed))

    def _remark(self, parsed: ParsedFile) -> SkippedFile | None:
        """Returns what is to be said of a file that is not indexed as others; None if it is."""
        reasons = [self._refusals.get(chunk.content_hash) for chunk in parsed.chunks]
        refused = [reason for reason in reasons if reason is not None]
        if not refused:
            replaced = parsed.num_replaced_bytes
            return _not_utf8(parsed.path, replaced) if replaced else None
        return _words_only(parsed.path, len(refused), len(reasons), refused[0])

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
        answer = await call(
            lambda: self._pool.embed.remote(texts), clock=self._clock, deadline_s=EMBED_DEADLINE_S
        )
        block, hashes = answer.vectors, tuple(chunk.content_hash for chunk in chunks)
        for number, reason in answer.refused:
            self._refusals.put(hashes[number], reason)
        if not is_all:
            await call(
                lambda: self._keeper.keep.remote(hashes, block),
                clock=self._clock,
                deadline_s=KEEPER_DEADLINE_S,
            )
        return block


def _not_utf8(path: str, num_replaced: int) -> SkippedFile:
    found = counted(num_replaced, "place")
    return SkippedFile(path, f"indexed, but not UTF-8 in {found}, where U+FFFD stands now")


def _words_only(path: str, num_refused: int, num_chunks: int, reason: str) -> SkippedFile:
    number = f"{num_refused} of {num_chunks} sections found by words alone"
    return SkippedFile(path, f"{number}, the provider refuses them: {reason}")
