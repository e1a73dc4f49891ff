"""What does the memory hold, what would a file change, and what answers a query?"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from memory import index_image, index_updates
from memory.calibrating import Calibration, Calibrator
from memory.identity import Identity
from memory.index_search import best_level, find_hits
from memory.index_state import IndexState
from memory.inspection import inspect
from memory.messages import ApplyResult, IndexStatus, SearchResult, WordsOnly
from memory.records import pack_file
from memory.row_noise import RowNoise
from memory.vector_cache import VectorCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.bulk import FileBatch
    from memory.index_settings import IndexSettings
    from memory.inspection import Inspection
    from memory.messages import Chunk, FileDelta, FileSummary, FileUpdate, ParsedFile, Query
    from memory.providers.base import ModelInfo
    from memory.snapshot import SnapshotFile, SnapshotParts
    from memory.text_index import TextIndex


class MemoryIndex:
    """Chunks, terms and vectors of every file, always of one generation (SPEC D2).

    Not to be shared between threads. Vectors are found by content hash, wherever the text was seen
    before, so a rename, a copy or an undo needs none.

    Args:
        model: The model that makes the vectors; dimension 0 takes that of the first vectors.
        analyzer: Chain for texts and queries.
        settings: How to search.
        epoch: Name of this incarnation, different after each restart.
        state: What it holds at first; nothing by default.
        identity: Of the vectors in ``state``, and of those to come; that of the model by default.
    """

    def __init__(
        self,
        model: ModelInfo,
        analyzer: Analyzer,
        settings: IndexSettings,
        *,
        epoch: str,
        state: IndexState | None = None,
        identity: Identity | None = None,
    ) -> None:
        self._model = model
        self._identity = identity or Identity.of(model)
        self._analyzer = analyzer
        self._settings = settings
        self._epoch = epoch
        self._log: Callable[[int, bytes], None] = _forget
        self._state = state or self._empty()
        self._rules = settings.rules(analyzer.language, floor=model.similarity_floor)
        self._calibrator = Calibrator()

    @classmethod
    def restore(
        cls,
        snapshot: SnapshotFile,
        model: ModelInfo,
        analyzer: Analyzer,
        settings: IndexSettings,
        *,
        epoch: str,
    ) -> MemoryIndex:
        """Returns the index inside a snapshot, whose identity the caller has compared.

        Raises:
            SnapshotCorrupt: a checksum is wrong, or the parts do not fit together.
        """
        cache, noise = VectorCache(settings.max_cached_bytes), RowNoise(model.noise)
        state = index_image.restore(snapshot, analyzer, cache, noise)
        identity = snapshot.header.info.identity
        return cls(model, analyzer, settings, epoch=epoch, state=state, identity=identity)

    @property
    def dim(self) -> int:
        """Dimension of the vectors; 0 before the first one, if the model does not tell."""
        return self._state.vectors.dim

    @property
    def epoch(self) -> str:
        """Name of this incarnation."""
        return self._epoch

    @property
    def revision(self) -> int:
        """Grows by one with each change."""
        return self._state.revision

    @property
    def is_calibrated(self) -> bool:
        """Whether scores mean the same as in any other workspace, as far as the rules know."""
        measured = self._state.threshold_of(self._rules.weights) is not None
        return measured or self._rules.orama is not None

    @property
    def identity(self) -> Identity:
        """What a snapshot of this index is compared with."""
        return replace(self._identity, dim=self.dim or self._model.dim)

    def plan(self, parsed: ParsedFile) -> FileDelta:
        """Returns which texts of a file have no vector yet; they may be embedded meanwhile."""
        return index_updates.plan(self._state, parsed, self._epoch)

    def apply(self, update: FileUpdate) -> ApplyResult:
        """Makes a file what the update says, in all parts at once or, if it raises, in none.

        Chunks that stay keep their row, vector and postings. Applying twice changes nothing.

        Raises:
            StaleUpdate: a text has no vector, neither in the update nor here; plan again.
            DimensionMismatch: the vectors have another dimension.
            ValueError: the update names one path and its file another.
        """
        if update.parsed is not None and update.parsed.path != update.path:
            raise ValueError("an update names one path and its file another")
        packed = pack_file(update.parsed) if update.parsed is not None else None
        sent = dict(zip(map(bytes.fromhex, update.hashes), update.vectors, strict=True))
        done = index_updates.replace_file(self._state, update.path, packed, sent, self._epoch)
        self._note(done.change)
        return ApplyResult(
            epoch=self._epoch,
            revision=self._state.revision,
            num_added=done.num_added,
            num_removed=done.num_removed,
            num_kept=done.num_kept,
        )

    def add(
        self, batch: FileBatch, hashes: Sequence[str], vectors: NDArray[np.float32]
    ) -> ApplyResult:
        """Adds new files, all of them or, if it raises, none; 0.02 ms a chunk.

        The result is that of applying them one by one, which takes ten times as long.

        Args:
            batch: Made by ``bulk.build_batch`` with the analysis of this index.
            hashes: Distinct content hashes, among them those of texts that are not known here.
            vectors: Theirs, shape (len(hashes), dim), unit norm; copied.

        Raises:
            StaleUpdate: a file is known already, or a text has no vector, neither in the update nor
                here; plan again.
            DimensionMismatch: the vectors have another dimension.
            ValueError: a value is not finite, or the batch was analysed for another language.
        """
        if batch.language != self._analyzer.language or not np.isfinite(vectors).all():
            raise ValueError("texts of another language, or a value that is not finite")
        names = tuple(map(bytes.fromhex, hashes))
        first = self._state.revision + 1
        changes = index_updates.add_files(self._state, batch, names, vectors, self._epoch)
        for revision, change in enumerate(changes, first):
            self._log(revision, change)
        return ApplyResult(self._epoch, self._state.revision, batch.num_chunks, 0, 0)

    def keep(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Takes vectors of texts that no file holds yet, so that they outlive a restart.

        Args:
            hashes: Content hashes, distinct.
            vectors: Shape (len(hashes), dim), unit norm; copied.

        Raises:
            DimensionMismatch: the vectors have another dimension.
        """
        names = tuple(map(bytes.fromhex, hashes))
        self._note(index_updates.keep_vectors(self._state, names, vectors))

    def replay(self, payload: bytes) -> None:
        """Makes a change again that was written to the log.

        Raises:
            ValueError: it is no change of this index.
            TypeError: it is no change.
            StaleUpdate: it is a change of another index.
            DimensionMismatch: its vectors have another dimension.
        """
        index_updates.replay(self._state, payload, self._epoch)

    def search(
        self,
        query: Query,
        vector: NDArray[np.float32] | None,
        *,
        degraded: str = "no query embedding",
    ) -> SearchResult:
        """Returns the best hits (SPEC S5, S7); nothing for a blank query.

        Args:
            query: Text and limit.
            vector: Embedding of the text, shape (dim,), or of each part of the query, shape
                (n, dim); any norm above zero. None searches the text side alone.
            degraded: Why there is no vector, for the answer.
        Raises:
            DimensionMismatch: the vector has another dimension.
            ValueError: a vector is zero or holds a value that is not finite, or there are not as
                many as parts.
        """
        hits, raised = find_hits(self._state, self._analyzer, self._rules, query, vector)
        missed = vector is None and self._settings.weights.vector > 0 and bool(query.text.strip())
        degraded, state = degraded if missed else "", self._state
        threshold = state.threshold_of(self._rules.weights) and raised
        return SearchResult(hits, self._epoch, state.revision, degraded, threshold)

    def calibrate(self, vectors: NDArray[np.float32] | None = None) -> Calibration:
        """Goes one step towards scores that mean the same as in any other workspace.

        Args:
            vectors: Of the unrelated prompts, if the last call asked for them: shape (n, dim), unit
                norm, one a prompt.
        Returns:
            What the next call needs. After ``Calibration.NOTHING`` it may be made again whenever
            the index has changed.
        Raises:
            ValueError: the vectors do not fit the prompts or the index.
        """
        if self._rules.orama is not None:
            return Calibration.NOTHING
        if vectors is not None:
            self._calibrator.learn(self._state, vectors)
        level_of = partial(best_level, self._state, self._analyzer, self._rules)
        return self._calibrator.step(self._state, self._rules.weights, level_of)

    def files(self) -> tuple[FileSummary, ...]:
        """Returns every known file, sorted by path."""
        return tuple(file.summary for file in self._state.table.files())

    def paths(self) -> AbstractSet[str]:
        """Returns the keys of all known files, as they are at any moment."""
        return self._state.table.paths()

    def file(self, path: str) -> FileSummary | None:
        """Returns a file by its key; None if it is not known."""
        file = self._state.table.file(path)
        return file.summary if file is not None else None

    def chunks(self, path: str) -> tuple[FileSummary, tuple[Chunk, ...]] | None:
        """Returns a file with its chunks in file order; None if it is not known."""
        found = self._state.table.find(path)
        return (found.summary, found.packed.all_chunks()) if found is not None else None

    def entries(self) -> Iterator[tuple[str, Chunk, NDArray[np.float32]]]:
        """Yields path, chunk and vector of every row, by path and position."""
        for file in self._state.table.files():
            block = self._state.vectors.take(file.rows)
            for chunk, vector in zip(file.packed.all_chunks(), block, strict=True):
                yield file.path, chunk, vector

    def inspect(
        self,
        *,
        after: str = "",
        paths: Sequence[str] | None = None,
        wants_vectors: bool = False,
    ) -> Inspection:
        """Returns what is held of some files, and where the parts disagree; see ``inspection``."""
        return inspect(
            self._state, self.identity, after=after, paths=paths, wants_vectors=wants_vectors
        )

    def words_only(self) -> tuple[WordsOnly, ...]:
        """Returns the files with chunks without a vector or with replaced bytes, sorted by path."""
        zero = self._state.vectors.zero_rows()
        found = []
        for file in self._state.table.files():
            hashes = tuple(
                file.packed.hash_of(position).hex()
                for position, row in enumerate(() if zero.isdisjoint(file.rows) else file.rows)
                if row in zero
            )
            num_replaced = file.packed.num_replaced_bytes
            if hashes or num_replaced:
                found.append(WordsOnly(file.path, hashes, len(file.rows), num_replaced))
        return tuple(found)

    def status(self) -> IndexStatus:
        """Returns the counters of the index."""
        return IndexStatus(
            epoch=self._epoch,
            revision=self._state.revision,
            num_files=self._state.table.num_files,
            num_chunks=self._state.table.num_chunks,
            dim=self.dim,
            pid=os.getpid(),
            threshold=self._state.threshold_of(self._rules.weights),
            provider=self._model.provider,
            model=self._model.model,
            rebuild=self._identity.rebuild,
        )

    def log_to(self, log: Callable[[int, bytes], None]) -> None:
        """Hands every later change to a log.

        Args:
            log: Called after a change with the new revision and what ``replay`` needs to make it
                again; must not raise.
        """
        self._log = log

    def frozen(self) -> AbstractContextManager[SnapshotParts]:
        """Gives one consistent image of everything, to be written by whoever has the time.

        Later changes do not touch it; it can be read, in another thread too, until the end of the
        context. Entering the context is the only moment in which nothing may change.
        """
        return index_image.frozen_image(
            self._state,
            identity=self.identity,
            language=self._analyzer.language,
            workspace=self._settings.workspace,
        )

    @property
    def text(self) -> TextIndex:
        """The lexical half, for merges in quiet moments."""
        return self._state.text

    def _empty(self) -> IndexState:
        cache = VectorCache(self._settings.max_cached_bytes)
        noise = RowNoise(self._model.noise)
        return IndexState.empty(self._analyzer, self._model.dim, cache, noise, revision=0)

    def _note(self, change: bytes | None) -> None:
        if change is not None:
            self._log(self._state.revision, change)


def _forget(_revision: int, _change: bytes) -> None:
    """Takes the place of a log."""
