"""Which file owns which row, and what changes when a file changes?"""

from __future__ import annotations

import unicodedata
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.messages import FileSummary
from memory.text_index import TextRow
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.messages import Chunk, ParsedFile
    from memory.text_index import TextIndex
    from memory.vector_cache import VectorCache


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of the index."""

    parsed: ParsedFile
    rows: tuple[int, ...]
    """Row of each chunk, in the order of ``parsed.chunks``."""

    @property
    def summary(self) -> FileSummary:
        """What listings need."""
        parsed = self.parsed
        return FileSummary(
            path=parsed.path,
            raw_path=parsed.raw_path,
            mtime_ns=parsed.mtime_ns,
            size=parsed.size,
            inode=parsed.inode,
            num_chunks=len(parsed.chunks),
            description=parsed.description,
            summary=parsed.summary,
        )


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How the chunks of a file differ from its rows."""

    rows: tuple[int | None, ...]
    """For each new chunk the row that already holds it, None if there is none."""
    removed: tuple[int, ...]
    """Rows whose chunk is gone."""


def meta_of(file: IndexedFile) -> str:
    """Returns the searchable words of the front matter: title, description, tags (SPEC C5)."""
    parsed = file.parsed
    return "\n".join(filter(None, (parsed.title, parsed.description, *parsed.tags)))


def text_rows(file: IndexedFile) -> Iterator[TextRow]:
    """Yields the rows of a file as the text index takes them."""
    meta = meta_of(file)
    for row, chunk in zip(file.rows, file.parsed.chunks, strict=True):
        yield TextRow(row, file.parsed.path, chunk.headlines, chunk.context, chunk.content, meta)


def diff(before: IndexedFile | None, chunks: Sequence[Chunk]) -> FileDiff:
    """Matches chunks with rows by content hash, equal ones in their order (SPEC C9, D1)."""
    stock: defaultdict[str, deque[int]] = defaultdict(deque)
    if before is not None:
        for chunk, row in zip(before.parsed.chunks, before.rows, strict=True):
            stock[chunk.content_hash].append(row)
    rows = tuple(
        stock[chunk.content_hash].popleft() if stock[chunk.content_hash] else None
        for chunk in chunks
    )
    return FileDiff(rows, tuple(row for left in stock.values() for row in left))


class ChunkTable:
    """Files by path, chunks by row and by content hash; always consistent with one another."""

    def __init__(self) -> None:
        self._files: dict[str, IndexedFile] = {}
        self._owners: dict[int, tuple[str, int]] = {}
        self._rows_by_hash: dict[str, set[int]] = {}

    @property
    def num_files(self) -> int:
        """Number of known files, blank ones included."""
        return len(self._files)

    @property
    def num_chunks(self) -> int:
        """Number of rows."""
        return len(self._owners)

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
        return self._owners[row]

    def hash_of(self, row: int) -> str:
        """Returns the content hash of the chunk in a row."""
        path, position = self._owners[row]
        return self._files[path].parsed.chunks[position].content_hash

    def rows_with(self, content_hash: str) -> set[int]:
        """Returns the rows that hold a text; empty if none does."""
        return self._rows_by_hash.get(content_hash, set())

    def replace(self, path: str, after: IndexedFile | None) -> None:
        """Makes a file what it is from now on; None removes it."""
        before = self._files.pop(path, None)
        if before is not None:
            self._forget(before)
        if after is not None:
            self._files[path] = after
            for position, (chunk, row) in enumerate(
                zip(after.parsed.chunks, after.rows, strict=True)
            ):
                self._owners[row] = (path, position)
                self._rows_by_hash.setdefault(chunk.content_hash, set()).add(row)

    def _forget(self, file: IndexedFile) -> None:
        for chunk, row in zip(file.parsed.chunks, file.rows, strict=True):
            del self._owners[row]
            rows = self._rows_by_hash[chunk.content_hash]
            rows.discard(row)
            if not rows:
                del self._rows_by_hash[chunk.content_hash]


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
        self, path: str, parsed: ParsedFile | None, change: FileDiff, block: NDArray[np.float32]
    ) -> None:
        """Makes a change in every part or, if the text half refuses it, in none.

        Args:
            path: Key of the file.
            parsed: What it is from now on; None removes it.
            change: From ``diff``.
            block: Vectors of the chunks without a row, finite, shape (n, dim).
        """
        if len(block) and not self.vectors.dim:
            self.vectors = VectorIndex(block.shape[1])
        before, new_rows = self.table.file(path), self.vectors.allocate(len(block))
        after = _placed(parsed, change.rows, new_rows) if parsed is not None else None
        try:
            self._write_text(before, after, removed=change.removed, added=new_rows)
        except BaseException:
            self.vectors.free(new_rows)
            raise
        retired = [self.table.hash_of(row) for row in change.removed]
        vectors = self.vectors.take(change.removed)
        self.vectors.put(new_rows, block)
        self.vectors.free(change.removed)
        self.table.replace(path, after)
        for content_hash, vector in zip(retired, vectors, strict=True):
            if not self.table.rows_with(content_hash):
                self.cache.put(content_hash, vector)
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
        if before is not None and after is not None and meta_of(before) != meta_of(after):
            written.update(after.rows)
        rewritten = written.difference(added)
        rows = [row for row in text_rows(after) if row.row in written] if after is not None else []
        if rows or removed:
            self.text.apply(add=rows, remove=[*removed, *rewritten])


def _placed(parsed: ParsedFile, rows: Sequence[int | None], new_rows: Sequence[int]) -> IndexedFile:
    """Returns a file whose chunks without a row get the new ones, in order."""
    spare = iter(new_rows)
    return IndexedFile(parsed, tuple(next(spare) if row is None else row for row in rows))
