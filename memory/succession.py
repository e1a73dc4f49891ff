"""Which index answers while another one is built, and when does that take over?

Vectors of two models cannot be compared, and to embed every file again takes long (SPEC E5). So two
indexes are open then: the *old* one answers, by words alone unless its own model can still be
asked, and the *newest* takes the changes, until it holds what the old one holds. At any other time
the newest is the only one.

The same is done when somebody wants every file embedded anew by the same model (a *rebuild*). The
old one then answers as ever, and takes the changes, too.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from memory.errors import DimensionMismatch, StaleUpdate
from memory.identity import Identity, differences
from memory.index_folders import KEPT_S, NEXT_NAME, clear, forget_previous, settle
from memory.index_opening import Kept, open_or_create
from memory.index_pair import IndexPair
from memory.messages import FileUpdate
from memory.rebuilding import begin_rebuild
from memory.taking_over import is_ready, is_saved, moved, saved

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from memory.atomic_file import Disk
    from memory.bulk import FileBatch
    from memory.calibrating import Calibration
    from memory.config import MemorySettings
    from memory.index import MemoryIndex
    from memory.index_opening import Opened, OpenReport
    from memory.messages import (
        ApplyResult,
        FileDelta,
        IndexStatus,
        ParsedFile,
        Query,
        SearchResult,
        WordsOnly,
    )
    from memory.providers.base import ModelInfo
    from memory.reconcile import KnownFiles
    from memory.storage import StorageStatus

logger = logging.getLogger(__name__)


class Succession:
    """The index of the configured model, and the one that answers until it is complete.

    Changes and searches belong to one thread; ``save`` and ``take_over`` may run in a second one
    beside it, ``sync`` in a third, and the counters can be read from any.
    """

    def __init__(
        self, opened: Opened, model: ModelInfo, data: Path, *, disk: Disk | None = None
    ) -> None:
        """Takes what was opened; see ``open``."""
        self.report: OpenReport = opened.report
        self._opener = opened.opener
        self._model = model
        self._data = data
        self._disk = disk
        self._now = IndexPair(Kept(opened.index, opened.storage), opened.old)
        self._writing = threading.Lock()
        """Held while whole snapshots are written, and while it changes which indexes there are."""
        self._num_begun = 0

    @classmethod
    def open(
        cls,
        settings: MemorySettings,
        model: ModelInfo,
        *,
        data: Path,
        workspace: Path,
        epoch: str,
        now: float,
    ) -> Self:
        """Opens a data folder; see ``index_opening.open_or_create``.

        Raises:
            OSError: a file cannot be read now, or not be moved.
        """
        opened = open_or_create(
            settings, model, data=data, workspace=workspace, epoch=epoch, now=now
        )
        return cls(opened, model, data)

    @property
    def answering(self) -> MemoryIndex:
        """The index that is searched and listed."""
        return self._now.answering

    @property
    def former(self) -> Identity | None:
        """Identity of an old index of another model; None while there is none."""
        return self._now.former

    def plan(self, parsed: ParsedFile) -> FileDelta:
        """Returns which chunks of a file the newest index has no vector of."""
        return self._now.newest.index.plan(parsed)

    def apply(self, update: FileUpdate) -> ApplyResult:
        """Changes a file in the newest index, and in the old one if that needs no vector.

        Raises:
            StaleUpdate: see MemoryIndex.apply; or another index has been begun, see ``begin``.
            DimensionMismatch: the vectors do not fit the index.
        """
        now = self._now
        try:
            with now.newest.storage.changing:
                result = now.newest.index.apply(update)
        except DimensionMismatch as error:
            self._begin_with(error, update.hashes, update.vectors)
            raise StaleUpdate(update.path, self._now.newest.index.epoch) from None
        now.follow(update, now.newest.index.file(update.path))
        return result

    def add(
        self, batch: FileBatch, hashes: Sequence[str], vectors: NDArray[np.float32]
    ) -> ApplyResult:
        """Adds new files to the newest index; see MemoryIndex.add, and ``apply``."""
        now = self._now
        with now.newest.storage.changing:
            result = now.newest.index.add(batch, hashes, vectors)
        for packed in batch.files if now.old is not None else ():
            path = packed.summary.path
            now.follow(FileUpdate(path, packed.parsed, tuple(hashes), vectors), packed.summary)
        return result

    def keep(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Takes vectors of a file that is not embedded to its end; see MemoryIndex.keep."""
        newest = self._now.newest
        try:
            with newest.storage.changing:
                newest.index.keep(hashes, vectors)
        except DimensionMismatch as error:
            self._begin_with(error, hashes, vectors)

    def search(self, query: Query, vector: NDArray[np.float32] | None) -> SearchResult:
        """Returns the best hits; that of another model answers by words alone, and says so.

        Args:
            query: Text and limit.
            vector: Of the text, shape (dim,), or of its parts, shape (n, dim), made by the
                configured model; None if there is none.
        """
        return self._now.search(query, vector)

    def search_former(
        self, query: Query, vector: NDArray[np.float32] | None, former: Identity, trouble: str
    ) -> SearchResult | None:
        """Returns the best hits of the old index; None if there is none of this model any more.

        Args:
            query: Text and limit.
            vector: As for ``search``, made by the model of the old index.
            former: Its identity, see ``former``.
            trouble: Why there is no vector.
        """
        return self._now.search_former(query, vector, former, trouble)

    def calibrate(self, vectors: NDArray[np.float32] | None) -> Calibration:
        """Goes one step with the newest index; see MemoryIndex.calibrate."""
        newest = self._now.newest
        with newest.storage.changing:
            return newest.index.calibrate(vectors)

    def files_to_compare(self) -> KnownFiles:
        """Returns what each index knows of every file, for a comparison with the disk."""
        return self._now.files_to_compare()

    def words_only(self) -> tuple[WordsOnly, ...]:
        """Returns the files of the newest index that have chunks without a vector."""
        return self._now.newest.index.words_only()

    def status(self) -> IndexStatus:
        """Returns the counters of the index that answers, and in them those of the newest one."""
        return self._now.status()

    def storage(self) -> StorageStatus:
        """Returns what is on disk of the newest index, and whether something of both is not.

        The identity is that of ``memory.msp``.
        """
        return self._now.storage()

    def sync(self) -> None:
        """Makes every change so far survive a power loss; see IndexStorage.sync.

        Raises:
            OSError: the disk refused.
        """
        now = self._now
        try:
            for kept in now.all():
                kept.storage.sync()
        except OSError:
            if self._now is now:
                raise
            # Its journal was closed meanwhile, for a snapshot holds all of it.

    def save(self, now: float, helper: Executor | None = None) -> int:
        """Writes whole snapshots of what needs one; returns the revision of the newest index.

        Args:
            now: Unix time, seconds.
            helper: See ``snapshot.write``.

        Raises:
            OSError: the disk refused; see IndexStorage.save.
        """
        forget_previous(self._data, before=now - KEPT_S, disk=self._disk)
        with self._writing:
            indexes = self._now
            revision = saved(indexes.newest, self._data, now, helper)
            if indexes.old is not None and indexes.old.storage.status().needs_save:
                saved(indexes.old, self._data, now, helper)
        return revision

    def take_over(
        self, epoch: str, now: float, helper: Executor | None = None, *, is_urgent: bool = False
    ) -> bool:
        """Lets the newest index answer from now on; returns whether it does.

        Not so while it lacks a file that the old one knows, or its scores are not calibrated, or if
        something changed while both were saved.

        Args:
            epoch: Of the newest index, as whoever knows it to be up to date saw it.
            now: Unix time, seconds.
            helper: See ``snapshot.write``.
            is_urgent: Scores need not be calibrated, and a few files may be missing.

        Raises:
            OSError: the disk refused; the old index goes on.
        """
        with self._writing:
            new, old = self._now.newest, self._now.old
            if old is None or new.index.epoch != epoch or not is_ready(new, old, is_urgent):
                return False
            for kept in (new, old):
                if not is_saved(kept) or kept.storage.status().needs_save:
                    saved(kept, self._data, now, helper)
            with new.storage.changing, old.storage.changing:
                if not (is_saved(new) and is_saved(old)):
                    return False
                self._now = IndexPair(moved(new, old, self._data, self._disk))
            old.storage.stop_logging()
            new.storage.stop_logging()
            with suppress(OSError):  # the next start tries again
                clear(self._data / NEXT_NAME, self._disk)
            if not differences(new.index.identity, old.index.identity):
                # Nobody can switch back to it.
                forget_previous(self._data, disk=self._disk)
        logger.info("%s", _taken_over(new.index.identity, old.index.identity))
        return True

    def begin_rebuild(self, now: float) -> bool:
        """Begins an index of the same model, for which every file is embedded anew.

        May run beside changes and searches; a change that comes at the same moment is found by the
        comparison with the disk that follows.

        Args:
            now: Unix time, seconds.

        Returns:
            Whether it was begun; not so if another one is being built already, or if there is
            nothing yet that could be embedded anew.

        Raises:
            OSError: the disk refused; nothing was begun.
        """
        with self._writing:
            newest = self._now.newest
            if self._now.old is not None or not newest.index.revision:
                return False
            begun = begin_rebuild(
                self._opener,
                self._data,
                current=newest,
                model=self._model,
                now=now,
                disk=self._disk,
            )
            self._now = IndexPair(begun, newest)
        logger.info("every file is embedded anew; the old index answers until then")
        return True

    def begin(self, dim: int) -> bool:
        """Begins an index for vectors of this dimension, if those of the newest have another one.

        Returns:
            Whether that was so. If the old index has vectors of this dimension, it is the newest
            again.

        Raises:
            OSError: a folder cannot be read or cleared.
        """
        with self._writing:
            now = self._now
            if now.newest.index.dim in (0, dim):
                return False
            self._num_begun += 1
            self._now = self._begun(now, replace(self._model, dim=dim))
        before = now.newest.index.dim
        logger.warning("the model answers with dimension %d instead of %d", dim, before)
        return True

    def _begun(self, now: IndexPair, model: ModelInfo) -> IndexPair:
        """Returns the indexes once the newest one is of this model."""
        old, newest = now.old or now.newest, now.newest
        if now.old is not None:
            newest.storage.stop_logging()
        wanted = Identity.of(model)
        # Time does not matter: whatever was kept was looked at when the folder was opened.
        if not settle(self._data, current=old.index.identity, configured=wanted, now=0.0):
            return IndexPair(old)
        epoch = f"{newest.index.epoch}.{self._num_begun}"
        rebuild = newest.index.identity.rebuild
        return IndexPair(self._opener.next(self._data, model, epoch, rebuild=rebuild), old)

    def _begin_with(
        self, error: DimensionMismatch, hashes: Sequence[str], vectors: NDArray[np.float32]
    ) -> None:
        """Begins an index with the vectors that did not fit: they were paid for.

        Raises:
            DimensionMismatch: the configuration says which dimension is right, or an answer said
                it since the start: a model that changes its mind all the time embeds for ever.
        """
        if self._model.dim or self._num_begun or not self.begin(error.found):
            raise error
        newest = self._now.newest
        with newest.storage.changing:
            newest.index.keep(hashes, vectors)


def _taken_over(new: Identity, old: Identity) -> str:
    if not differences(old, new):
        return "every file was embedded anew; the new index answers now"
    return f"{new.provider} / {new.model} answers now instead of {old.provider} / {old.model}"
