"""What does the saved index hold, for somebody who does not own it?

Listings decode only what they show and import neither numpy nor FAISS nor Whoosh.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Self

import msgpack

from memory.errors import SnapshotCorrupt
from memory.records import decode_files, parsed_file
from memory.snapshot import SNAPSHOT_NAME, SnapshotFile

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from memory.config import MemorySettings
    from memory.index import MemoryIndex
    from memory.messages import Chunk, FileSummary
    from memory.providers.base import ModelInfo
    from memory.records import StoredFile
    from memory.snapshot import Header


class SnapshotReader:
    """One generation of the index on disk, whatever the daemon writes meanwhile; read-only.

    Raises:
        SnapshotMissing: nothing was saved yet.
        SnapshotCorrupt: see SnapshotFile; so do all methods.
        SnapshotIncompatible: see SnapshotFile.
    """

    def __init__(self, data_dir: Path) -> None:
        self._snapshot = SnapshotFile(data_dir / SNAPSHOT_NAME)
        self._files: dict[str, StoredFile] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._snapshot.close()

    @property
    def header(self) -> Header:
        """The header of the snapshot."""
        return self._snapshot.header

    def age_s(self, now: float) -> float:
        """Returns the seconds since the snapshot was written; ``now`` is Unix time."""
        return max(0.0, now - self.header.saved_at)

    def files(self) -> tuple[FileSummary, ...]:
        """Returns every known file, sorted by path."""
        return tuple(stored.summary for stored in self._stored_files().values())

    def chunks(self, path: str) -> tuple[FileSummary, tuple[Chunk, ...]] | None:
        """Returns a file, found as MemoryIndex.file does, with its chunks; None if not known."""
        files = self._stored_files()
        stored = files.get(path) or files.get(unicodedata.normalize("NFC", path))
        if stored is None:
            return None
        try:
            return stored.summary, parsed_file(stored)[0].chunks
        except (ValueError, TypeError, msgpack.UnpackException):
            raise self._corrupt() from None

    def open_index(self, memory: MemorySettings, model: ModelInfo) -> MemoryIndex:
        """Returns the whole index for searching.

        Args:
            memory: How to search.
            model: The model that made the vectors, see ``header.info.identity``.
        """
        # Reading a listing must not wait for numpy, FAISS and Whoosh.
        from memory.analysis import Analyzer  # noqa: PLC0415
        from memory.index import IndexSettings, MemoryIndex  # noqa: PLC0415

        return MemoryIndex.restore(
            self._snapshot,
            model,
            Analyzer(memory.language),
            IndexSettings.of(memory, workspace=self.header.info.workspace),
            epoch=f"snapshot-{self.header.info.revision}",
        )

    def _stored_files(self) -> dict[str, StoredFile]:
        if self._files is None:
            try:
                decoded = decode_files(self._snapshot.read("files"))
                self._files = {stored.summary.path: stored for stored in decoded}
            except (ValueError, TypeError, msgpack.UnpackException):
                raise self._corrupt() from None
        return self._files

    def _corrupt(self) -> SnapshotCorrupt:
        return SnapshotCorrupt(str(self._snapshot.path), "its files part is not understood")
