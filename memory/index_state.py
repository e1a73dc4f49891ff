"""What does an index hold, and how does all of it change at once?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.chunk_table import ChunkTable, IndexedFile, text_rows
from memory.text_index import TextIndex
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.calibration import Threshold
    from memory.file_diff import FileDiff
    from memory.fusion import Weights
    from memory.posting_lists import Segment
    from memory.records import PackedFile
    from memory.row_noise import RowNoise
    from memory.vector_cache import VectorCache


@dataclass(slots=True)
class IndexState:
    """Everything an index holds; the parts are always of one generation."""

    table: ChunkTable
    vectors: VectorIndex
    """Dimension 0 until a vector tells it."""
    text: TextIndex
    cache: VectorCache
    """Vectors of texts that no row holds."""
    noise: RowNoise
    revision: int
    threshold: Threshold | None = None
    """None until it was measured."""

    @classmethod
    def empty(
        cls, analyzer: Analyzer, dim: int, cache: VectorCache, noise: RowNoise, *, revision: int
    ) -> IndexState:
        """Returns the state of an index without a file; ``dim`` 0 if nobody knows it yet."""
        table, vectors, text = ChunkTable(), VectorIndex(dim), TextIndex(analyzer)
        return cls(table, vectors, text, cache, noise, revision)

    def threshold_of(self, weights: Weights) -> float | None:
        """Returns the level that prompts about something else do not reach, in (0, 1).

        None if it was not measured with these weights.
        """
        known = self.threshold
        return known.level if known is not None and known.weights == weights else None

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
        self.noise.put(new_rows, block)
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
