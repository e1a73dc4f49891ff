"""A running memory as tests see it: change files, kill actors, compare with a fresh build."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from memory.analysis import Analyzer
from memory.checks import DumpRow, dump
from memory.chunk_limits import chunk_limits
from memory.embedding_input import compose
from memory.errors import SnapshotMissing
from memory.globs import Globs
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.markdown import parse_file
from memory.messages import FileUpdate
from memory.providers.factory import model_info, open_embedder
from memory.reader import SnapshotReader
from memory.workspace import SourceFile, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.system import MemorySystem
    from memory.config import Settings
    from memory.locations import Locations
    from memory.providers.base import Embedder

T = TypeVar("T")

PATIENCE_S = 60.0
_EMBEDDERS: dict[str, Embedder] = {}


def eventually(condition: Callable[[], T], *, patience_s: float = PATIENCE_S) -> T:
    """Returns the first true answer; repeats the question until then, not longer than allowed."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            answer = condition()
        except (RayActorError, GetTimeoutError) as error:
            answer, last = None, repr(error)
        else:
            last = repr(answer)
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience_s} s; last answer: {last[:2000]}")
        time.sleep(0.1)


def fresh_dump(settings: Settings, locations: Locations) -> list[DumpRow]:
    """Builds an index of the workspace in this process, without Ray and without the old index."""
    info = model_info("local", settings.memory.embeddings.model)
    embedder = _EMBEDDERS.setdefault(info.model, open_embedder(info))
    limits = chunk_limits(settings.memory.max_chunk_tokens, info)
    index = MemoryIndex(info, Analyzer("english"), IndexSettings(), epoch="fresh")
    workspace = Workspace(locations.workspace, exclude=Globs(settings.memory.exclude_globs))
    for stamp in workspace.scan().files:
        source = workspace.read(stamp.raw_path)
        assert isinstance(source, SourceFile)
        parsed = parse_file(source, limits=limits)
        missing = index.plan(parsed).missing
        vectors = embedder.embed_documents([compose(chunk, limits) for chunk in missing])
        hashes = tuple(chunk.content_hash for chunk in missing)
        index.apply(FileUpdate(stamp.path, parsed, hashes, vectors))
    return dump(index)


@dataclass
class Running:
    """The handles of one memory and where its files are."""

    system: MemorySystem
    settings: Settings
    locations: Locations

    def get(self, reference: ray.ObjectRef[T]) -> T:
        return ray.get(reference, timeout=20)

    def write(self, path: str, text: str) -> None:
        target = self.locations.workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def pids(self) -> dict[str, int]:
        return {
            name: self.get(handle.ping.remote()) for name, handle in self.system.named().items()
        }

    def kill(self, name: str) -> None:
        """Ends the process of one actor as the kernel would, and waits for the next one."""
        old = self.get(self.system.named()[name].ping.remote())
        os.kill(old, signal.SIGKILL)
        eventually(lambda: self.get(self.system.named()[name].ping.remote()) not in (0, old))

    def live_dump(self) -> list[DumpRow]:
        """Reads what is on disk, which is the live index once a change was answered."""
        info = model_info("local", self.settings.memory.embeddings.model)
        try:
            with SnapshotReader(self.locations.data) as reader:
                return dump(reader.open_index(self.settings.memory, info))
        except SnapshotMissing:
            return []

    def wait_until_equal(self) -> None:
        """Waits until the live index equals a fresh build of the workspace."""
        expected = fresh_dump(self.settings, self.locations)
        eventually(lambda: self.live_dump() == expected)

    def end(self) -> None:
        """Kills every actor and waits for the processes, so that the next test starts clean."""
        pids = self.pids()
        for handle in self.system.named().values():
            ray.kill(handle, no_restart=True)
        eventually(lambda: not any(_is_alive(pid) for pid in pids.values()))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
