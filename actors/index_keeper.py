"""The IndexKeeper actor: the only writer and reader of the live index."""

from __future__ import annotations

import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, final

import ray

from actors.loops import end_process
from memory.clock import SystemClock
from memory.index_opening import open_or_create

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from memory.bulk import FileBatch
    from memory.calibrating import Calibration
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
    from memory.storage import StorageStatus


WARM_TERMS = 500
SWITCH_INTERVAL_S = 0.0005
"""Longest time that a save keeps a search waiting for the interpreter, seconds."""


@final
class IndexKeeper:
    """Holds the FAISS and Whoosh halves of the index as one generation.

    Owns: the MemoryIndex, its snapshot and its journal; nothing else writes them.
    Survives a crash: every change that was answered, by the snapshot and the journal. Every answer
    carries the ``epoch`` of this process, so that a restart is noticed.
    Ordering: one call after the other, in the order each caller sent them; ``status`` and ``ping``
    run beside them in the group ``control``, ``save`` and ``sync`` in groups of their own. It calls
    nobody, so it cannot wait in a circle.
    Called by: Chunker, Persister, ContextProvider, the composition root.
    """

    def __init__(self, settings: Settings, info: ModelInfo, data: Path, workspace: Path) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._clock = SystemClock()
        try:
            opened = open_or_create(
                settings.memory,
                info,
                data=data,
                workspace=workspace,
                epoch=uuid.uuid4().hex,
                now=self._clock.time(),
            )
        except OSError as error:
            # Ray starts an actor afresh whose process ended, not one whose constructor raised.
            end_process("IndexKeeper", error)
        self._save_helper = ThreadPoolExecutor(1, "checksums")
        self._index, self._storage, self._report = opened.index, opened.storage, opened.report

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
        with self._storage.changing:
            return self._index.apply(update)

    @ray.method
    def add(
        self, batch: FileBatch, hashes: tuple[str, ...], vectors: NDArray[np.float32]
    ) -> ApplyResult:
        """Adds new files that were prepared elsewhere, all of them or none; see MemoryIndex.add.

        Raises:
            StaleUpdate: a file or a vector is not what the batch relies on; apply one by one.
            DimensionMismatch: the vectors do not fit the index.
            ValueError: the batch does not fit the index.
        """
        with self._storage.changing:
            return self._index.add(batch, hashes, vectors)

    @ray.method
    def keep(self, hashes: tuple[str, ...], vectors: NDArray[np.float32]) -> None:
        """Takes vectors of a file that is not embedded to its end yet; see MemoryIndex.keep."""
        with self._storage.changing:
            self._index.keep(hashes, vectors)

    @ray.method
    def search(self, query: Query, vector: NDArray[np.float32] | None) -> SearchResult:
        """Returns the best hits; see MemoryIndex.search."""
        return self._index.search(query, vector)

    @ray.method
    def calibrate(self, vectors: NDArray[np.float32] | None) -> Calibration:
        """Goes one step towards calibrated scores; see MemoryIndex.calibrate.

        Raises:
            ValueError: the vectors do not fit the prompts or the index.
        """
        with self._storage.changing:
            return self._index.calibrate(vectors)

    @ray.method
    def files(self) -> tuple[FileSummary, ...]:
        """Returns every known file, sorted by path."""
        return self._index.files()

    @ray.method
    def chunks(self, path: str) -> tuple[FileSummary, tuple[Chunk, ...]] | None:
        """Returns one file with its chunks in file order; None if it is not in the index."""
        return self._index.chunks(path)

    @ray.method
    def confirm_dimension(self, dim: int) -> bool:
        """Empties the index if its vectors have another dimension; returns whether it did."""
        with self._storage.changing:
            emptied = self._index.confirm_dimension(dim)
            if emptied:
                self._storage.stop_logging()
        return emptied

    @ray.method(concurrency_group="save")
    def warm_up(self) -> None:
        """Looks frequent terms up, so that no query waits for them."""
        self._index.text.warm_up(WARM_TERMS)

    @ray.method(concurrency_group="save")
    def save(self) -> int:
        """Replaces the snapshot and returns its revision; searches and changes go on meanwhile.

        Raises:
            OSError: the disk refused; snapshot and journal stay as they were.
        """
        return self._storage.save(self._clock.time(), self._save_helper)

    @ray.method(concurrency_group="sync")
    def sync(self) -> StorageStatus:
        """Makes every change that was answered survive a power loss; returns what is on disk then.

        Raises:
            OSError: the disk refused; a snapshot is due.
        """
        self._storage.sync()
        return self._storage.status()

    @ray.method(concurrency_group="control")
    def storage(self) -> StorageStatus:
        """Returns what is on disk, and whether a snapshot is due."""
        return self._storage.status()

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
