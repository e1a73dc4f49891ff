"""Are pages of mapped files let go of, and only those?"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from memory.mapped_pages import maps_behind, release, releasing

SIZE = 16 * 1024 * 1024


@pytest.fixture
def mapped(tmp_path):
    with (tmp_path / "file").open("w+b") as file:
        file.write(b"abcd" * (SIZE // 4))
        file.flush()
        yield mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def file_bytes() -> int:
    """Returns the resident memory of this process that belongs to files."""
    return int(Path("/proc/self/statm").read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")


def test_each_mapped_file_is_found_once_behind_its_views(mapped):
    view = memoryview(mapped)

    assert maps_behind([view[:5], b"own", view[7:9], memoryview(b"own too")]) == [mapped]


def test_released_bytes_can_be_read_again(mapped):
    view = memoryview(mapped)[4:8]
    release([mapped])

    assert bytes(view) == b"abcd"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells")
def test_reading_a_file_block_by_block_holds_few_blocks_at_once(mapped):
    view, before, held = memoryview(mapped), file_bytes(), []
    blocks = (view[start : start + SIZE // 16] for start in range(0, SIZE, SIZE // 16))
    for block in releasing(blocks, [mapped]):
        assert bytes(block).count(b"abcd") == SIZE // 64
        held.append(file_bytes() - before)

    assert max(held) < 0.75 * SIZE
    assert file_bytes() - before < SIZE / 16
