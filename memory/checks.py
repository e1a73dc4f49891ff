"""Do two indexes hold the same?"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from memory.index import MemoryIndex


class DumpRow(NamedTuple):
    """One row of an index, in a form that does not depend on how it came to be."""

    path: str
    occurrence: int
    """Number of equal chunks before it in its file."""
    headlines: str
    context_sha256: str
    content_sha256: str
    vector_sha256: str
    """Of the bytes, float32 little-endian."""


def dump(index: MemoryIndex) -> list[DumpRow]:
    """Returns every row, sorted; two indexes of the same files and model have equal dumps."""
    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for path, chunk, vector in index.entries():
        occurrence = seen[path, chunk.content_hash]
        seen[path, chunk.content_hash] += 1
        rows.append(
            DumpRow(
                path,
                occurrence,
                chunk.headlines,
                _sha256(chunk.context.encode("utf-8", "surrogatepass")),
                _sha256(chunk.content.encode("utf-8", "surrogatepass")),
                _sha256(vector.astype("<f4").tobytes()),
            )
        )
    return sorted(rows)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
