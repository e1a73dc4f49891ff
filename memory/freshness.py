"""Is the file on disk still what was indexed (SPEC S6)?"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from memory.messages import Hit


def fresh_paths(root: Path, hits: Iterable[Hit]) -> frozenset[str]:
    """Returns the paths of the files whose time and size on disk are those of the index.

    Looks at the files, never into them.
    """
    return frozenset(hit.path for hit in hits if _is_fresh(root, hit))


def _is_fresh(root: Path, hit: Hit) -> bool:
    # The index names a file in NFC; on disk its name may be decomposed.
    names = {hit.path, unicodedata.normalize("NFD", hit.path)}
    return any(_matches(root / name, hit) for name in names)


def _matches(file: Path, hit: Hit) -> bool:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return False
    return (found.st_mtime_ns, found.st_size) == (hit.mtime_ns, hit.size)
