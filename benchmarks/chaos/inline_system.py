"""How does a memory run in one process, with a real watcher but without a cluster or a model?"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from actors.chunker import Chunker, ChunkerOptions
from actors.embedder import Vectors
from actors.embedder_pool import EmbedderPool, PoolOptions
from actors.index_keeper import IndexKeeper
from actors.persister import Persister
from actors.watcher import Watcher
from memory.analysis import Analyzer
from memory.bulk import build_batch
from memory.debounce import Debounce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from memory.bulk import FileBatch
    from memory.config import Settings
    from memory.inspection import Inspection
    from memory.messages import ParsedFile
    from memory.providers.base import ModelInfo

TIMEOUT_S = 60.0


class HashModel:
    """Gives every text a direction of its own, always the same one."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self.num_texts = 0

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector a text."""
        self.num_texts += len(texts)
        vectors = np.stack([_direction(text, self.info.dim) for text in texts])
        return vectors.astype(np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the vector of a question."""
        return _direction(text, self.info.dim)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector a question."""
        return np.stack([self.embed_query(text) for text in texts])

    def take_num_tokens(self) -> int:
        """Returns 0."""
        return 0


class Worker:
    """An Embedder worker with that model."""

    def __init__(self, model: HashModel) -> None:
        self._model = model

    def embed(self, texts: tuple[str, ...]) -> Vectors:
        """See ``EmbedderWorker``."""
        return Vectors(self._model.embed_documents(texts))

    def embed_queries(self, texts: tuple[str, ...]) -> Vectors:
        """See ``EmbedderWorker``."""
        return Vectors(self._model.embed_queries(texts))


class Handle:
    """``handle.method.remote(...)`` on a shell of this event loop."""

    def __init__(self, shell: object) -> None:
        self._shell = shell

    def __getattr__(self, name: str) -> Any:
        return _Method(getattr(self._shell, name))


class _Method:
    def __init__(self, method: Any) -> None:
        self._method = method

    def remote(self, *arguments: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self._run(arguments))

    async def _run(self, arguments: Sequence[Any]) -> Any:
        await asyncio.sleep(0)
        given = [await each if isinstance(each, asyncio.Future) else each for each in arguments]
        result = self._method(*given)
        return await result if inspect.isawaitable(result) else result


@dataclass
class InlineSystem:
    """The actors that keep an index equal to a folder; belongs to the running event loop."""

    model: HashModel
    keeper: Any
    chunker: Any
    watcher: Watcher
    shell: Chunker
    """The one behind the handle."""
    loop: asyncio.AbstractEventLoop
    persister: Any

    @classmethod
    def start(
        cls,
        root: Path,
        data: Path,
        settings: Settings,
        info: ModelInfo,
        worker_of: Callable[[HashModel], object] = Worker,
    ) -> InlineSystem:
        """Starts everything; the first comparison of disk and index begins."""
        model = HashModel(info)
        keeper: Any = Handle(IndexKeeper(settings, info, data, root))
        worker: Any = Handle(worker_of(model))
        pool: Any = Handle(EmbedderPool(info, PoolOptions(), worker))
        persister: Any = Handle(Persister(data, keeper, Debounce(30.0, 300.0)))
        options = ChunkerOptions(root, settings.memory, info)
        shell = Chunker(options, keeper, pool, persister, build=_build)
        chunker: Any = Handle(shell)
        watcher, loop = Watcher(root, chunker), asyncio.get_running_loop()
        return cls(model, keeper, chunker, watcher, shell, loop, persister)

    async def stop(self) -> None:
        """Ends the watching and the indexing."""
        await self.watcher.stop()
        await self.chunker.stop.remote()

    def page(self, after: str) -> Inspection:
        """See ``memory.checking.IndexSource``; for another thread."""
        return self._inspect(after, None, wants_vectors=False)

    def named(self, paths: Sequence[str], *, wants_vectors: bool = False) -> Inspection:
        """See ``page``."""
        return self._inspect("", tuple(paths), wants_vectors=wants_vectors)

    def _inspect(
        self, after: str, paths: tuple[str, ...] | None, *, wants_vectors: bool
    ) -> Inspection:
        async def ask() -> Inspection:
            found: Inspection = await self.keeper.inspect.remote(after, paths, wants_vectors)
            return found

        return asyncio.run_coroutine_threadsafe(ask(), self.loop).result(TIMEOUT_S)


def _direction(text: str, dim: int) -> NDArray[np.float32]:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    vector = np.random.default_rng(int.from_bytes(digest)).normal(size=dim)
    unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def _build(files: tuple[ParsedFile, ...]) -> asyncio.Task[FileBatch]:
    async def built() -> FileBatch:
        return await asyncio.to_thread(build_batch, Analyzer("english"), files)

    return asyncio.get_running_loop().create_task(built())
