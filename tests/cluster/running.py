"""A running memory as tests see it: change files, kill actors, compare with a fresh build."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from memory.checking import HeldIndex, check_files
from memory.chunk_limits import chunk_limits
from memory.errors import SnapshotMissing
from memory.globs import Globs
from memory.inspection import Difference
from memory.providers.factory import model_info, open_embedder
from memory.reader import SnapshotReader
from memory.recomputing import Recomputing
from memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from actors.system import MemorySystem
    from memory.config import Settings
    from memory.embedding_input import TokenLimits
    from memory.inspection import Inspection
    from memory.locations import Locations
    from memory.providers.base import Embedder, ModelInfo

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


class LiveIndex:
    """The index inside the IndexKeeper, as ``memory check`` sees it."""

    def __init__(self, system: MemorySystem) -> None:
        self._keeper = system.keeper

    def page(self, after: str) -> Inspection:
        return ray.get(self._keeper.inspect.remote(after, None, False), timeout=20)

    def named(self, paths: Sequence[str], *, wants_vectors: bool = False) -> Inspection:
        asked = self._keeper.inspect.remote("", tuple(paths), wants_vectors)
        return ray.get(asked, timeout=20)


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

    def saved_differences(self) -> list[Difference]:
        """Compares what is on disk, which is the live index once a change was answered."""
        try:
            with SnapshotReader(self.locations.data) as reader:
                index = reader.open_index(self.settings.memory, self._info)
        except SnapshotMissing as error:
            return [Difference("snapshot", "", str(error))]
        return check_files(self._workspace, self._limits, HeldIndex(index)).differences

    def wait_until_equal(self) -> None:
        """Waits until index, disk and files are equal; then all vectors are made anew."""
        live = LiveIndex(self.system)

        def is_equal() -> bool:
            report = check_files(self._workspace, self._limits, live)
            return not report.differences and not self.saved_differences()

        eventually(is_equal)
        report = check_files(self._workspace, self._limits, live)
        embedder = _EMBEDDERS.setdefault(self._info.model, open_embedder(self._info))
        again = Recomputing(self._workspace, self._limits, embedder, is_exact=True)
        assert list(again.differences(live, report.equal)) == []

    @property
    def _info(self) -> ModelInfo:
        return model_info("local", self.settings.memory.embeddings.model)

    @property
    def _limits(self) -> TokenLimits:
        return chunk_limits(self.settings.memory.max_chunk_tokens, self._info)

    @property
    def _workspace(self) -> Workspace:
        exclude = Globs(self.settings.memory.exclude_globs)
        return Workspace(self.locations.workspace, exclude=exclude)

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
