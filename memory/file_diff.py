"""How do the chunks of a file differ from the rows it has?"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory.chunk_table import IndexedFile
    from memory.records import PackedFile


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How the chunks of a file differ from its rows."""

    rows: tuple[int | None, ...]
    """For each new chunk the row that already holds it, None if there is none."""
    removed: tuple[int, ...]
    """Rows whose chunk is gone."""


def diff(before: IndexedFile | None, after: PackedFile | None) -> FileDiff:
    """Matches chunks with rows by content hash, equal ones in their order (SPEC C9, D1)."""
    stock: defaultdict[bytes, deque[int]] = defaultdict(deque)
    if before is not None:
        for position, row in enumerate(before.rows):
            stock[before.packed.hash_of(position)].append(row)
    hashes = map(after.hash_of, range(after.summary.num_chunks)) if after is not None else ()
    rows = tuple(stock[name].popleft() if stock[name] else None for name in hashes)
    return FileDiff(rows, tuple(row for left in stock.values() for row in left))
