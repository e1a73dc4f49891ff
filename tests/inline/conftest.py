"""A whole memory in one process: the real shells, joined by inline handles."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from actors.chunker import Chunker, ChunkerOptions
from actors.context_provider import ContextProvider
from actors.embedder import Vectors
from actors.embedder_pool import EmbedderPool, PoolOptions
from actors.event_emitter import EventEmitter
from actors.index_keeper import IndexKeeper
from actors.persister import Persister
from memory.analysis import Analyzer
from memory.bulk import build_batch
from memory.checking import HeldIndex, check_files
from memory.chunk_limits import chunk_limits
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.debounce import Debounce
from memory.errors import ConfigError
from memory.globs import Globs
from memory.messages import FileEvent
from memory.providers.local import LOCAL_MODELS, MINILM
from memory.recomputing import Recomputing
from memory.workspace import Workspace
from tests.doubles import FakeClock, HashEmbedder
from tests.embedding_server import EmbeddingServer
from tests.inline.handles import InlineHandle, freeze

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from actors.former_model import Open
    from memory.bulk import FileBatch
    from memory.config import InferenceSettings
    from memory.identity import Identity
    from memory.inspection import Difference
    from memory.messages import ParsedFile
    from memory.providers.base import Embedder, ModelInfo

INFO = LOCAL_MODELS[MINILM].info
RECONCILE_S = 60.0
FLUSH_S = 30.0
MAX_TURNS = 2_000


class FakeWorker:
    """An Embedder worker whose model is a hash, and which can be told to fail."""

    def __init__(self, dim: int = INFO.dim) -> None:
        self.model = HashEmbedder(dim)
        self.error: Exception | None = None

    def embed(self, texts: tuple[str, ...]) -> Any:
        if self.error is not None:
            raise self.error
        return Vectors(self.model.embed_documents(texts))

    def embed_queries(self, texts: tuple[str, ...]) -> Any:
        if self.error is not None:
            raise self.error
        return Vectors(self.model.embed_queries(texts))

    def ping(self) -> int:
        return 1


class FakeBuilder:
    """Prepares files in this process, and can be told to fail."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        """Paths of the files of each."""
        self.error: Exception | None = None

    def __call__(self, files: tuple[ParsedFile, ...]) -> asyncio.Task[FileBatch]:
        return asyncio.get_running_loop().create_task(self._build(freeze(files)))

    async def _build(self, files: tuple[ParsedFile, ...]) -> FileBatch:
        self.batches.append([file.path for file in files])
        if self.error is not None:
            raise self.error
        return freeze(build_batch(Analyzer("english"), files))


@dataclass
class Pipe:
    """The actors of one memory and what surrounds them."""

    root: Path
    data: Path
    settings: Settings
    info: ModelInfo
    clock: FakeClock
    worker: FakeWorker
    builder: FakeBuilder
    keeper: InlineHandle
    pool: InlineHandle
    persister: InlineHandle
    chunker: InlineHandle
    provider: InlineHandle
    emitter: InlineHandle

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    async def touched(self, *paths: str) -> None:
        """Tells the Chunker about paths, and lets it finish."""
        await self.chunker.notice.remote(tuple(FileEvent(path) for path in paths), False)
        await self.settle()

    async def settle(self) -> None:
        """Lets the actors work until disk and index are compared and nothing can be done now."""

        async def idle() -> bool:
            status = await self.chunker.status.remote()
            return status.num_reconciles > 0 and status.num_pending == status.num_held_up

        await self.until(idle)

    async def reconciled(self) -> None:
        """Lets the time of the next reconcile come, and its work be done."""
        before = (await self.chunker.status.remote()).num_reconciles
        await self.clock.advance(RECONCILE_S)

        async def idle() -> bool:
            status = await self.chunker.status.remote()
            is_done = status.num_pending == status.num_held_up
            return status.num_reconciles > before and is_done

        await self.until(idle)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Lets threads and tasks run, and a little time pass, until something is true."""
        for _turn in range(MAX_TURNS):
            if await condition():
                return
            await self.clock.advance(0.01)
            await asyncio.to_thread(lambda: None)
        raise AssertionError("never came true")

    async def paths(self) -> list[str]:
        return [file.path for file in await self.keeper.files.remote()]

    def differences(self) -> list[Difference]:
        """Returns where the index and the files differ, vectors included (FAULTS I1)."""
        memory, index = self.settings.memory, HeldIndex(self.keeper.shell._indexes.answering)
        limits = chunk_limits(memory.max_chunk_tokens, self.info)
        files = Workspace(self.root, exclude=Globs(memory.exclude_globs))
        report = check_files(files, limits, index)
        model = HashEmbedder(self.info.dim)
        model.info = self.info
        again = Recomputing(files, limits, model, is_exact=True)
        return [*report.differences, *again.differences(index, report.equal)]

    async def restart_chunker(self) -> None:
        """Replaces the Chunker by a fresh process, which knows nothing."""
        await self.chunker.shell.stop()
        options = ChunkerOptions(self.root, self.settings.memory, self.info)
        self.chunker.shell = Chunker(
            options, self.keeper, self.pool, self.persister, self.clock, self.builder
        )

    def restart_keeper(self) -> None:
        """Replaces the keeper by a fresh process, as Ray would: it loads what is on disk."""
        self.keeper.shell = IndexKeeper(self.settings, self.info, self.data, self.root)


def gone(_identity: Identity, _inference: InferenceSettings) -> Embedder:
    """Opens no model that was configured before."""
    raise ConfigError("it is not configured any more")


def start(
    root: Path,
    data: Path,
    info: ModelInfo,
    clock: FakeClock,
    dim: int = 0,
    open_former: Open = gone,
    *,
    worker: Any = None,
) -> Pipe:
    """Returns the actors of a memory.

    Args:
        root: The workspace.
        data: The data folder.
        info: The configured model.
        clock: Of all actors.
        dim: Dimension of the answers; that of the model by default.
        open_former: Opens the model that was configured before.
        worker: The Embedder; by default one whose model is a hash.
    """
    settings = Settings(
        memory=MemorySettings(
            embeddings=EmbeddingsSettings(provider="local"),
            persist_to_disk_delay=FLUSH_S,
            reconcile_interval=RECONCILE_S,
        )
    )
    worker, builder = worker or FakeWorker(dim or info.dim), FakeBuilder()
    keeper = InlineHandle(IndexKeeper(settings, info, data, root))
    pool = InlineHandle(EmbedderPool(info, PoolOptions(), InlineHandle(worker), clock=clock))
    persister = InlineHandle(Persister(data, keeper, Debounce(FLUSH_S, 10 * FLUSH_S), clock))
    options = ChunkerOptions(root, settings.memory, info)
    chunker = InlineHandle(Chunker(options, keeper, pool, persister, clock, builder))
    provider = InlineHandle(ContextProvider(settings, keeper, pool, clock, open_former))
    emitter = InlineHandle(EventEmitter(data, provider, clock))
    return Pipe(
        root,
        data,
        settings,
        info,
        clock,
        worker,
        builder,
        keeper,
        pool,
        persister,
        chunker,
        provider,
        emitter,
    )


async def stop(pipe: Pipe) -> None:
    """Ends the loops of a memory; the disk is as after a kill."""
    await pipe.chunker.shell.stop()
    pipe.persister.shell._task.cancel()
    for task in pipe.provider.shell._tasks:
        task.cancel()


@pytest.fixture
async def pipe(tmp_path: Path) -> AsyncIterator[Pipe]:
    root, data = tmp_path / "workspace", tmp_path / "data"
    root.mkdir()
    data.mkdir()
    pipe = start(root, data, INFO, FakeClock())
    yield pipe
    await stop(pipe)


@pytest.fixture(scope="session")
def provider_server() -> Iterator[EmbeddingServer]:
    """One for all tests, since an SDK takes long to be opened for another."""
    with EmbeddingServer() as server:
        yield server
