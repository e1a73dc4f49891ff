"""Which file owns which row, and which rows hold which text?"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memory.paths import key
from memory.records import PackedFile, encode_file
from memory.row_hashes import RowHashes
from memory.text_index import TextRow

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, KeysView, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from memory.messages import FileSummary


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
        return self._files.get(path) or self._files.get(key(path))

    def paths(self) -> KeysView[str]:
        """Returns the key of every file."""
        return self._files.keys()

    def files(self) -> list[IndexedFile]:
        """Returns every file, sorted by path."""
        return [file for _path, file in sorted(self._files.items())]

    def owner(self, row: int) -> tuple[str, int]:
        """Returns the path of a row, and the position of its chunk in the file."""
        file = self._owners[row]
        if file is None:
            raise KeyError(row)
        return file.path, self._positions[row]

    def places(self, row: int, path: str, position: int) -> bool:
        """Tells whether a row is that of this chunk."""
        file = self._owners[row] if row < len(self._owners) else None
        return file is not None and (file.path, self._positions[row]) == (path, position)

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
