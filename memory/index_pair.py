"""What do two indexes answer together, while one is built and the other one is searched?

The *newest* takes the changes, the *old* one answers until the newest holds what it holds. Most of
the time there is no old one. Which indexes these are is the question of ``succession``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory.errors import DimensionMismatch, StaleUpdate
from memory.identity import differences
from memory.messages import FileUpdate
from memory.reconcile import KnownFiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.identity import Identity
    from memory.index import MemoryIndex
    from memory.index_opening import Kept
    from memory.messages import FileSummary, IndexStatus, Query, SearchResult
    from memory.storage import StorageStatus


@dataclass(frozen=True, slots=True)
class IndexPair:
    """Which indexes there are at one moment."""

    newest: Kept
    old: Kept | None = None

    @property
    def answering(self) -> MemoryIndex:
        """The index that is searched and listed."""
        return (self.old or self.newest).index

    @property
    def is_rebuild(self) -> bool:
        """Whether both are of one model, so that the old one takes the vectors of the newest."""
        old = self.old
        return old is not None and not differences(old.index.identity, self.newest.index.identity)

    @property
    def former(self) -> Identity | None:
        """Identity of an old index of another model; None while there is none."""
        if self.old is None or self.is_rebuild:
            return None
        return self.old.index.identity

    def all(self) -> tuple[Kept, ...]:
        """Returns the newest one, and the old one if there is one."""
        return (self.newest,) if self.old is None else (self.newest, self.old)

    def search(self, query: Query, vector: NDArray[np.float32] | None) -> SearchResult:
        """Returns the best hits; see ``Succession.search``."""
        if self.old is not None and not self.is_rebuild:
            return self.old.index.search(query, None, degraded=self._progress(self.old))
        index = self.answering
        if vector is not None and index.dim and vector.shape[-1] != index.dim:
            reason = "the model answers with another dimension than it did"
            return index.search(query, None, degraded=reason)
        return index.search(query, vector)

    def search_former(
        self, query: Query, vector: NDArray[np.float32] | None, former: Identity, trouble: str
    ) -> SearchResult | None:
        """Returns the best hits of the old index; see ``Succession.search_former``."""
        if self.old is None or self.old.index.identity != former:
            return None
        degraded = f"{self._progress(self.old)}; {trouble}"
        return self.old.index.search(query, vector, degraded=degraded)

    def files_to_compare(self) -> KnownFiles:
        """Returns what each index knows of every file, for a comparison with the disk."""
        old = () if self.old is None else self.old.index.files()
        return KnownFiles(self.newest.index.files(), old)

    def follow(self, update: FileUpdate, summary: FileSummary | None) -> None:
        """Makes a change in the old index, too, unless that needs a vector that is not there.

        Args:
            update: As it was made in the newest one.
            summary: What the newest one knows of the file since; None if it is gone.
        """
        old = self.old
        if old is None or summary == old.index.file(update.path):
            return
        if not self.is_rebuild:
            update = FileUpdate(update.path, update.parsed)
        with old.storage.changing, suppress(StaleUpdate, DimensionMismatch):
            old.index.apply(update)

    def status(self) -> IndexStatus:
        """Returns the counters of the index that answers, and in them those of the newest one."""
        status = self.answering.status()
        if self.old is None:
            return status
        return replace(status, building=self.newest.index.status())

    def storage(self) -> StorageStatus:
        """Returns what is on disk; see ``Succession.storage``."""
        status = self.newest.storage.status()
        if self.old is None:
            return status
        old = self.old.storage.status()
        return replace(
            status,
            identity=old.identity,
            is_complete=status.is_complete and old.is_complete,
            needs_save=status.needs_save or old.needs_save,
            trouble=status.trouble or old.trouble,
        )

    def _progress(self, old: Kept) -> str:
        done, known = self.newest.index.status().num_files, old.index.status().num_files
        return f"vectors are being rebuilt ({done:,} of {max(done, known):,} files)"
