"""What does the saved index hold, for somebody who does not own it?

The snapshot, and the changes since, which stand in the journal. Listings decode only what they show
and import neither numpy nor FAISS nor Whoosh.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Self

import msgpack

from memory import paths
from memory.changes import apply_to_files, decode_change, paid_for
from memory.errors import SnapshotCorrupt
from memory.packing import decode_stream
from memory.records import decode_files
from memory.recovery import open_saved, replay_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from memory.config import MemorySettings
    from memory.index import MemoryIndex
    from memory.messages import Chunk, FileSummary, ParsedFile
    from memory.providers.base import ModelInfo
    from memory.records import PackedFile
    from memory.snapshot_header import Header

logger = logging.getLogger(__name__)


class SnapshotReader:
    """One generation of the index on disk, whatever the daemon writes meanwhile; read-only.

    Raises:
        SnapshotMissing: nothing was saved yet.
        SnapshotCorrupt: see SnapshotFile; so do all methods.
        SnapshotIncompatible: see SnapshotFile.
        OSError: the system cannot read a file now.
    """

    def __init__(self, data_dir: Path) -> None:
        self._saved = open_saved(data_dir)
        self._files: dict[str, PackedFile] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._saved.snapshot.close()

    @property
    def header(self) -> Header:
        """The header of the snapshot."""
        return self._saved.snapshot.header

    @property
    def revision(self) -> int:
        """Change counter of the index, with the changes in the journal."""
        changes = self._saved.changes
        return changes[-1].revision if changes else self.header.info.revision

    def age_s(self, now: float) -> float:
        """Returns the seconds since the index was written; ``now`` is Unix time."""
        return max(0.0, now - self._saved.changed_at)

    def files(self) -> tuple[FileSummary, ...]:
        """Returns every known file, sorted by path."""
        return tuple(file.summary for _path, file in sorted(self._packed_files().items()))

    def chunks(self, path: str) -> tuple[FileSummary, tuple[Chunk, ...]] | None:
        """Returns a file, found as MemoryIndex.file does, with its chunks; None if not known."""
        files = self._packed_files()
        packed = files.get(path) or files.get(paths.key(path))
        if packed is None:
            return None
        try:
            return packed.summary, packed.all_chunks()
        except (ValueError, TypeError, msgpack.UnpackException):
            raise self._corrupt() from None

    def parsed_files(self) -> Iterator[ParsedFile]:
        """Yields the whole record of every known file, sorted by path."""
        for _path, packed in sorted(self._packed_files().items()):
            try:
                yield packed.parsed
            except (ValueError, TypeError, msgpack.UnpackException):
                raise self._corrupt() from None

    def embedded_hashes(self) -> set[bytes]:
        """Returns the content hash of every text whose vector is here, in a file or not."""
        hashes = {
            packed.hash_of(position)
            for packed in self._packed_files().values()
            for position in range(packed.summary.num_chunks)
        }
        parts = {part.name for part in self.header.parts}
        try:
            for name in parts & {"cache", "kept"}:
                stored = decode_stream(bytes(self._saved.snapshot.view(name)))
                hashes.update(islice(stored, 0, None, 2))
            for record in self._saved.changes:
                hashes.update(paid_for(decode_change(bytes(record.payload))))
        except (ValueError, TypeError, msgpack.UnpackException):
            raise self._corrupt() from None
        return hashes

    def open_index(self, memory: MemorySettings, model: ModelInfo) -> MemoryIndex:
        """Returns the whole index for searching.

        Args:
            memory: How to search.
            model: The model that made the vectors, see ``header.info.identity``.
        """
        # Reading a listing must not wait for numpy, FAISS and Whoosh.
        from memory.analysis import Analyzer  # noqa: PLC0415
        from memory.index import MemoryIndex  # noqa: PLC0415
        from memory.index_settings import IndexSettings  # noqa: PLC0415

        index = MemoryIndex.restore(
            self._saved.snapshot,
            model,
            Analyzer(memory.language),
            IndexSettings.of(memory, workspace=self.header.info.workspace),
            epoch=f"snapshot-{self.revision}",
        )
        replay_all(index, self._saved.changes)
        return index

    def _packed_files(self) -> dict[str, PackedFile]:
        if self._files is None:
            try:
                data = self._saved.snapshot.view("files")
                self._files = {packed.summary.path: packed for packed, *_ in decode_files(data)}
            except (ValueError, TypeError, msgpack.UnpackException):
                raise self._corrupt() from None
            try:
                for record in self._saved.changes:
                    apply_to_files(self._files, decode_change(bytes(record.payload)))
            except (ValueError, TypeError, msgpack.UnpackException) as error:
                logger.warning("the changes since the snapshot end early: %s", error)
        return self._files

    def _corrupt(self) -> SnapshotCorrupt:
        path = str(self._saved.snapshot.path)
        return SnapshotCorrupt(path, "its files part is not understood")
