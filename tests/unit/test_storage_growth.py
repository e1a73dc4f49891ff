"""Do many edits of one file leave traces?"""

from __future__ import annotations

import pytest

from memory import index_image
from memory.journal import JOURNAL_NAME
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put

EMBEDDER = HashEmbedder(4)
SECTIONS = [f"Section {number}." for number in range(5)]
NUM_CACHED = 50


@pytest.mark.slow
def test_thousands_of_edits_of_one_file_leave_what_a_hundred_leave(tmp_path, monkeypatch):
    """SPEC P3: segments, bytes on disk, rows. A snapshot holds few vectors for an undo."""
    monkeypatch.setattr(index_image, "_LEAST_REMOVED_BYTES", NUM_CACHED * 4 * EMBEDDER.info.dim)
    index = new_index(EMBEDDER)
    storage = IndexStorage(tmp_path, index, saved_revision=-1, saved_at=0.0, complete=False)
    for number in range(20):
        put(index, EMBEDDER, parsed(f"{number}.md", SECTIONS))
    longest = 0

    def after(first, last):
        """Returns what is there after edits with numbers of four digits."""
        nonlocal longest
        for number in range(first, last):
            put(index, EMBEDDER, parsed("0.md", [*SECTIONS[1:], f"Edit {number}."], mtime_ns=2))
            longest = max(longest, storage.status().journal_bytes)
            if storage.status().needs_save:
                storage.save(0.0)
        storage.save(0.0)
        names = (SNAPSHOT_NAME, JOURNAL_NAME)
        sizes = [(tmp_path / name).stat().st_size for name in names]
        highest = max(row for file in index._state.table.files() for row in file.rows)
        return sizes, index.text.num_segments, highest

    hundred = after(1000, 1100)
    longest_of_hundred = longest
    thousands = after(1100, 3000)

    assert thousands[0] == pytest.approx(hundred[0], rel=0.02)
    assert thousands[1:] == hundred[1:]
    assert longest <= 1.1 * longest_of_hundred
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([SNAPSHOT_NAME, JOURNAL_NAME])
