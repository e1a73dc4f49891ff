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
from memory.succession import Succession

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from memory.bulk import FileBatch
    from memory.calibrating import Calibration
    from memory.config import Settings
    from memory.identity import Identity
    from memory.index_opening import OpenReport
    from memory.inspection import Inspection
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
        WordsOnly,
    )
    from memory.providers.base import ModelInfo
    from memory.reconcile import KnownFiles
    from memory.storage import StorageStatus


WARM_TERMS = 500
SWITCH_INTERVAL_S = 0.0005
"""Longest time that a save keeps a search waiting for the interpreter, seconds."""


@final
class IndexKeeper:
    """Holds the FAISS and Whoosh halves of the index as one generation.

    Owns: the MemoryIndex, its snapshot and its journal, and those of another one that is to take
    over (see ``succession``); nothing else writes them.
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
            self._indexes = Succession.open(
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

    def __repr__(self) -> str:
        return "IndexKeeper"

    @ray.method
    def plan(self, parsed: ParsedFile) -> FileDelta:
        """Returns which chunks of a parsed file still need a vector."""
        return self._indexes.plan(parsed)

    @ray.method
    def apply(self, update: FileUpdate) -> ApplyResult:
        """Makes a file what the update says, in both halves at once; harmless when repeated.

        Raises:
            StaleUpdate: a vector the update relies on is not known here; plan again.
            DimensionMismatch: the vectors do not fit the index.
        """
        return self._indexes.apply(update)

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
        return self._indexes.add(batch, hashes, vectors)

    @ray.method
    def keep(self, hashes: tuple[str, ...], vectors: NDArray[np.float32]) -> None:
        """Takes vectors of a file that is not embedded to its end yet; see MemoryIndex.keep."""
        self._indexes.keep(hashes, vectors)

    @ray.method
    def search(self, query: Query, vector: NDArray[np.float32] | None) -> SearchResult:
        """Returns the best hits; see Succession.search."""
        return self._indexes.search(query, vector)

    @ray.method
    def search_former(
        self, query: Query, vector: NDArray[np.float32] | None, former: Identity, trouble: str
    ) -> SearchResult | None:
        """Returns the best hits of the old index; see Succession.search_former."""
        return self._indexes.search_former(query, vector, former, trouble)

    @ray.method
    def calibrate(self, vectors: NDArray[np.float32] | None) -> Calibration:
        """Goes one step towards calibrated scores; see MemoryIndex.calibrate.

        Raises:
            ValueError: the vectors do not fit the prompts or the index.
        """
        return self._indexes.calibrate(vectors)

    @ray.method
    def files(self) -> tuple[FileSummary, ...]:
        """Returns every file of the index that answers, sorted by path."""
        return self._indexes.answering.files()

    @ray.method
    def files_to_compare(self) -> KnownFiles:
        """Returns what each index knows of every file, for a comparison with the disk."""
        return self._indexes.files_to_compare()

    @ray.method
    def words_only(self) -> tuple[WordsOnly, ...]:
        """Returns the files that have chunks without a vector, in the newest index."""
        return self._indexes.words_only()

    @ray.method
    def chunks(self, path: str) -> tuple[FileSummary, tuple[Chunk, ...]] | None:
        """Returns one file with its chunks in file order; None if it is not in the index."""
        return self._indexes.answering.chunks(path)

    @ray.method
    def inspect(
        self,
        after: str,
        paths: tuple[str, ...] | None,
        wants_vectors: bool,  # noqa: FBT001 - Ray passes by position
    ) -> Inspection:
        """Returns what the index that answers holds of some files; see ``memory.inspection``."""
        index = self._indexes.answering
        return index.inspect(after=after, paths=paths, wants_vectors=wants_vectors)

    @ray.method
    def confirm_dimension(self, dim: int) -> bool:
        """Begins another index if the model answers with another dimension; returns whether."""
        return self._indexes.begin(dim)

    @ray.method(concurrency_group="save")
    def warm_up(self) -> None:
        """Looks frequent terms up, so that no query waits for them."""
        self._indexes.answering.text.warm_up(WARM_TERMS)

    @ray.method(concurrency_group="save")
    def save(self) -> int:
        """Replaces the snapshot and returns its revision; searches and changes go on meanwhile.

        Raises:
            OSError: the disk refused; snapshot and journal stay as they were.
        """
        return self._indexes.save(self._clock.time(), self._save_helper)

    @ray.method(concurrency_group="save")
    def begin_rebuild(self) -> bool:
        """Begins to embed every file anew; returns whether, see Succession.begin_rebuild.

        Raises:
            OSError: the disk refused; nothing was begun.
        """
        return self._indexes.begin_rebuild(self._clock.time())

    @ray.method(concurrency_group="save")
    def take_over(self, epoch: str, is_urgent: bool) -> bool:  # noqa: FBT001 - Ray passes by position
        """Lets the index of the configured model answer; see Succession.take_over.

        Raises:
            OSError: the disk refused; the old index goes on.
        """
        now = self._clock.time()
        done = self._indexes.take_over(epoch, now, self._save_helper, is_urgent=is_urgent)
        if done:
            self._indexes.answering.text.warm_up(WARM_TERMS)
        return done

    @ray.method(concurrency_group="sync")
    def sync(self) -> StorageStatus:
        """Makes every change that was answered survive a power loss; returns what is on disk then.

        Raises:
            OSError: the disk refused; a snapshot is due.
        """
        self._indexes.sync()
        return self._indexes.storage()

    @ray.method(concurrency_group="control")
    def storage(self) -> StorageStatus:
        """Returns what is on disk, and whether a snapshot is due."""
        return self._indexes.storage()

    @ray.method(concurrency_group="control")
    def report(self) -> OpenReport:
        """Returns how the index was opened: what was found, and whether a probe is needed."""
        return self._indexes.report

    @ray.method(concurrency_group="control")
    def former_identity(self) -> Identity | None:
        """Returns what the index was made with that answers until another one is complete."""
        return self._indexes.former

    @ray.method(concurrency_group="control")
    def status(self) -> IndexStatus:
        """Returns the counters of the index that answers, and of the one that is built."""
        return self._indexes.status()

    @ray.method(concurrency_group="control")
    def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()
