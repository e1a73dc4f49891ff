"""The IndexKeeper actor: the only writer and reader of the live index."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, final

import ray

from memory.clock import SystemClock
from memory.index_opening import open_or_create

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from memory.config import Settings
    from memory.index_opening import OpenReport
    from memory.messages import (
        ApplyResult,
        Chunk,
        FileDelta,
        FileSummary,
        FileUpdate,
        IndexStatus,
        ParsedFile,
        Query,
        SearchResult,
    )
    from memory.providers.base import ModelInfo
    from memory.snapshot import SnapshotParts


@final
class IndexKeeper:
    """Holds the FAISS and Whoosh halves of the index as one generation.

    Owns: the MemoryIndex; nothing else writes it.
    Survives a crash: what the last snapshot holds. Every answer carries the ``epoch`` of this
    process, so that a restart is noticed and the difference indexed again.
    Ordering: one call after the other, in the order each caller sent them; ``status`` and ``ping``
    run beside them in the group ``control``. It calls nobody, so it cannot wait in a circle.
    Called by: Chunker, Persister, ContextProvider, the composition root.
    """

    def __init__(self, settings: Settings, info: ModelInfo, data: Path, workspace: Path) -> None:
        self._index, self._report = open_or_create(
            settings.memory,
            info,
            data=data,
            workspace=workspace,
            epoch=uuid.uuid4().hex,
            now=SystemClock().time(),
        )

    def __repr__(self) -> str:
        return "IndexKeeper"

    @ray.method
    def plan(self, parsed: ParsedFile) -> FileDelta:
        """Returns which chunks of a parsed file still need a vector."""
        return self._index.plan(parsed)

    @ray.method
    def apply(self, update: FileUpdate) -> ApplyResult:
        """Makes a file what the update says, in both halves at once; harmless when repeated.

        Raises:
            StaleUpdate: a vector the update relies on is not known here; plan again.
            DimensionMismatch: the vectors do not fit the index.
        """
        return self._index.apply(update)

    @ray.method
    def search(self, query: Query, vector: NDArray[np.float32] | None) -> SearchResult:
        """Returns the best hits; see MemoryIndex.search."""
        return self._index.search(query, vector)

    @ray.method
    def files(self) -> tuple[FileSummary, ...]:
        """Returns every known file, sorted by path."""
        return self._index.files()

    @ray.method
    def chunks(self, path: str) -> tuple[FileSummary, tuple[Chunk, ...]] | None:
        """Returns one file with its chunks in file order; None if it is not in the index."""
        return self._index.chunks(path)

    @ray.method
    def snapshot(self) -> SnapshotParts:
        """Returns one consistent image of everything, ready to be written.

        Merges what small edits have left first: a snapshot is asked for in a quiet moment.
        """
        self._index.compact()
        return self._index.snapshot()

    @ray.method
    def confirm_dimension(self, dim: int) -> bool:
        """Empties the index if its vectors have another dimension; returns whether it did."""
        return self._index.confirm_dimension(dim)

    @ray.method(concurrency_group="control")
    def report(self) -> OpenReport:
        """Returns how the index was opened: what was found, and whether a probe is needed."""
        return self._report

    @ray.method(concurrency_group="control")
    def status(self) -> IndexStatus:
        """Returns the counters of the index."""
        return self._index.status()

    @ray.method(concurrency_group="control")
    def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()
