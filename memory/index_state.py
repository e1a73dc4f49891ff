"""Which file owns which row, and what changes with it?"""

from __future__ import annotations

import unicodedata
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memory.records import PackedFile, encode_file
from memory.row_hashes import RowHashes
from memory.text_index import TextRow
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from memory.file_diff import FileDiff
    from memory.messages import FileSummary
    from memory.posting_lists import Segment
    from memory.text_index import TextIndex
    from memory.vector_cache import VectorCache


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of the index."""

    packed: PackedFile
    rows: tuple[int, ...]
    """Row of each chunk, in file order."""
    record: memoryview | None = field(default=None, compare=False, repr=False)
    """Both as they stand in a snapshot, so that the next one need not pack them again."""
    path: str = field(init=False)
    """Key of the file."""

    def __post_init__(self) -> None:
        """Keeps the path at hand: a search asks for it hundreds of times."""
        object.__setattr__(self, "path", self.packed.summary.path)

    @property
    def summary(self) -> FileSummary:
        """What listings need."""
        return self.packed.summary

    def encoded(self) -> Buffer:
        """Returns the file as a snapshot holds it."""
        return self.record if self.record is not None else encode_file(self.packed, self.rows)


def text_rows(file: IndexedFile, wanted: Container[int] | None = None) -> Iterator[TextRow]:
    """Yields the rows of a file as the text index takes them; only the ``wanted`` ones if given."""
    meta = file.packed.meta
    for position, row in enumerate(file.rows):
        if wanted is None or row in wanted:
            chunk = file.packed.chunk(position)
            yield TextRow(row, file.path, chunk.headlines, chunk.context, chunk.content, meta)


class ChunkTable:
    """Files by path, chunks by row and by content hash; always consistent with one another."""

    def __init__(self) -> None:
        self._files: dict[str, IndexedFile] = {}
        self._owners: list[IndexedFile | None] = []
        self._positions = array("I")
        # First row of the file that owns each row, which tells files apart.
        self._leads = array("I")
        self._hashes = RowHashes(self._hash_in)
        self._num_chunks = 0

    @classmethod
    def of(cls, files: Sequence[IndexedFile]) -> ChunkTable:
        """Returns the table of files, many at once.

        Raises:
            ValueError: two have the same path.
        """
        table = cls()
        table._files = {file.path: file for file in files}
        if len(table._files) < len(files):
            raise ValueError("a path occurs twice")
        rows = [row for file in files for row in file.rows]
        table._make_room(max(rows, default=-1) + 1)
        for file in files:
            table._place(file)
        table._hashes.load(b"".join(file.packed.hashes for file in files), rows)
        table._num_chunks = len(rows)
        return table

    @property
    def num_files(self) -> int:
        """Number of known files, blank ones included."""
        return len(self._files)

    @property
    def num_chunks(self) -> int:
        """Number of rows."""
        return self._num_chunks

    def __getitem__(self, path: str) -> IndexedFile:
        """Returns a file that is known to be here, by its key."""
        return self._files[path]

    def file(self, path: str) -> IndexedFile | None:
        """Returns a file by its key."""
        return self._files.get(path)

    def find(self, path: str) -> IndexedFile | None:
        """Returns a file by its key, or by a path that is the key once normalised (SPEC W2)."""
        return self._files.get(path) or self._files.get(unicodedata.normalize("NFC", path))

    def files(self) -> list[IndexedFile]:
        """Returns every file, sorted by path."""
        return [file for _path, file in sorted(self._files.items())]

    def owner(self, row: int) -> tuple[str, int]:
        """Returns the path of a row, and the position of its chunk in the file."""
        file = self._owners[row]
        if file is None:
            raise KeyError(row)
        return file.path, self._positions[row]

    def belong_to(self, rows: NDArray[np.int64], paths: Iterable[str]) -> NDArray[np.bool_]:
        """Tells which rows belong to some files.

        Args:
            rows: Rows in use, shape (n,).
            paths: Keys of files that have rows.
        """
        leads = np.frombuffer(self._leads, np.uint32)[rows]
        wanted = np.array([self._files[path].rows[0] for path in paths], np.uint32)
        belong: NDArray[np.bool_] = (leads == wanted[:, None]).any(axis=0)
        return belong

    def hash_of(self, row: int) -> bytes:
        """Returns the content hash of the chunk in a row."""
        path, position = self.owner(row)
        return self._files[path].packed.hash_of(position)

    def rows_with(self, content_hash: bytes) -> set[int]:
        """Returns the rows that hold a text; empty if none does."""
        return self._hashes.rows(content_hash)

    def replace(self, path: str, after: IndexedFile | None) -> None:
        """Makes a file what it is from now on; None removes it."""
        before = self._files.pop(path, None)
        if before is not None:
            self._forget(before)
        if after is not None:
            self._files[path] = after
            self._learn(after)

    def _learn(self, file: IndexedFile) -> None:
        self._make_room(max(file.rows, default=-1) + 1)
        self._place(file)
        for position, row in enumerate(file.rows):
            self._hashes.add(file.packed.hash_of(position), row)
        self._num_chunks += len(file.rows)

    def _place(self, file: IndexedFile) -> None:
        for position, row in enumerate(file.rows):
            self._owners[row] = file
            self._positions[row] = position
            self._leads[row] = file.rows[0]

    def _forget(self, file: IndexedFile) -> None:
        for position, row in enumerate(file.rows):
            self._owners[row] = None
            self._hashes.remove(file.packed.hash_of(position), row)
        self._num_chunks -= len(file.rows)

    def _make_room(self, size: int) -> None:
        missing = size - len(self._owners)
        if missing > 0:
            self._owners.extend([None] * missing)
            self._positions.extend([0] * missing)
            self._leads.extend([0] * missing)

    def _hash_in(self, row: int) -> bytes | None:
        file = self._owners[row]
        return file.packed.hash_of(self._positions[row]) if file is not None else None


@dataclass(slots=True)
class IndexState:
    """Everything an index holds; the parts are always of one generation."""

    table: ChunkTable
    vectors: VectorIndex
    """Dimension 0 until a vector tells it."""
    text: TextIndex
    cache: VectorCache
    """Vectors of texts that no row holds."""
    revision: int

    def replace_file(
        self, path: str, packed: PackedFile | None, change: FileDiff, block: NDArray[np.float32]
    ) -> None:
        """Makes a change in every part or, if the text half refuses it, in none.

        Args:
            path: Key of the file.
            packed: What it is from now on; None removes it.
            change: From ``diff``.
            block: Vectors of the chunks without a row, finite, shape (n, dim).
        """
        self.take_dimension(block)
        before, new_rows = self.table.file(path), self.vectors.allocate(len(block))
        after = _placed(packed, change.rows, new_rows) if packed is not None else None
        try:
            self._write_text(before, after, removed=change.removed, added=new_rows)
        except BaseException:
            self.vectors.free(new_rows)
            raise
        retired = [self.table.hash_of(row) for row in change.removed]
        vectors = self.vectors.take(change.removed)
        self.vectors.free(change.removed)
        self._settle(path, after, new_rows, block)
        for content_hash, vector in zip(retired, vectors, strict=True):
            if not self.table.rows_with(content_hash):
                self.cache.put(content_hash, vector)

    def take_dimension(self, vectors: NDArray[np.float32]) -> None:
        """Learns the dimension from the first vectors, shape (n, dim)."""
        if len(vectors) and not self.vectors.dim:
            self.vectors = VectorIndex(vectors.shape[1])

    def place_texts(
        self, num_rows: int, segments_of: Callable[[Sequence[int]], Iterable[Segment]]
    ) -> list[int]:
        """Adds the texts of new chunks, or nothing if it raises; returns their rows.

        Args:
            num_rows: Number of the chunks.
            segments_of: Takes a row for each chunk, and returns the segments of all.
        """
        rows = self.vectors.allocate(num_rows)
        try:
            self.text.add_segments(list(segments_of(rows)), remove=())
        except BaseException:
            self.vectors.free(rows)
            raise
        return rows

    def settle_file(
        self, packed: PackedFile, rows: Sequence[int], block: NDArray[np.float32]
    ) -> None:
        """Adds a new file whose texts are there.

        Args:
            packed: The file.
            rows: From ``place_texts``, one a chunk.
            block: Vectors of the chunks, finite, shape (len(rows), dim).
        """
        file = IndexedFile(packed, tuple(rows))
        self._settle(file.path, file, rows, block)

    def _settle(
        self,
        path: str,
        after: IndexedFile | None,
        new_rows: Sequence[int],
        block: NDArray[np.float32],
    ) -> None:
        """Writes everything but the texts."""
        self.vectors.put(new_rows, block)
        self.table.replace(path, after)
        for row in new_rows:
            self.cache.discard(self.table.hash_of(row))
        self.revision += 1

    def _write_text(
        self,
        before: IndexedFile | None,
        after: IndexedFile | None,
        *,
        removed: Sequence[int],
        added: Sequence[int],
    ) -> None:
        """Replaces the postings of changed rows; those of the rest only if the front matter did."""
        written = set(added)
        if before is not None and after is not None and before.packed.meta != after.packed.meta:
            written.update(after.rows)
        rewritten = written.difference(added)
        rows = list(text_rows(after, written)) if after is not None else []
        if rows or removed:
            self.text.apply(add=rows, remove=[*removed, *rewritten])


def _placed(packed: PackedFile, rows: Sequence[int | None], new_rows: Sequence[int]) -> IndexedFile:
    """Returns a file whose chunks without a row get the new ones, in order."""
    spare = iter(new_rows)
    return IndexedFile(packed, tuple(next(spare) if row is None else row for row in rows))
