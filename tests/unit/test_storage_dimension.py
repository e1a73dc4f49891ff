"""What is on disk where the dimension of the vectors is told late, or changes?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from memory import index_opening
from memory import storage as module
from memory.checks import dump
from memory.reader import SnapshotReader
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, put, text_of
from tests.unit.crash_disk import CrashDisk, Killed
from tests.unit.keeping import opened

OLD, NEW = HashEmbedder(16), HashEmbedder(8)
UNTOLD = SimpleNamespace(info=replace(OLD.info, model="tells no dimension", dim=0))


def confirm(index, storage, dim):
    """Does what the keeper does when a trial call has told the dimension."""
    with storage.changing:
        if index.confirm_dimension(dim):
            storage.stop_logging()


@pytest.fixture
def kept(tmp_path):
    """An index with vectors of the old dimension in its snapshot and in its journal."""
    index, storage = opened(tmp_path, UNTOLD)
    put(index, OLD, parsed("a.md", ["One."]))
    storage.save(1.0)
    put(index, OLD, parsed("b.md", ["Two."]))
    return index, storage


def test_the_first_vectors_in_a_journal_tell_the_dimension(tmp_path):
    index, storage = opened(tmp_path, UNTOLD)
    storage.save(0.0)
    put(index, OLD, parsed("a.md", ["One."]))

    again, _ = opened(tmp_path, UNTOLD)

    assert again.dim == 16
    assert dump(again) == dump(index)


@pytest.mark.parametrize("saves", [False, True])
def test_vectors_that_no_file_holds_yet_may_be_the_first(tmp_path, saves):
    """Those of the first half of a long file."""
    index, storage = opened(tmp_path, UNTOLD)
    storage.save(0.0)
    file = parsed("long.md", ["One.", "Two."])
    first = file.chunks[0]
    index.keep((first.content_hash,), OLD.embed_documents([text_of(first)]))
    if saves:
        storage.save(1.0)

    again, _ = opened(tmp_path, UNTOLD)

    assert [chunk.content for chunk in again.plan(file).missing] == ["Two."]
    put(again, OLD, file)
    assert again.dim == 16


def test_keeping_no_vectors_costs_no_change_after_it(tmp_path, kept):
    index, _ = kept
    index.keep((), np.empty((0, 16), np.float32))
    put(index, OLD, parsed("c.md", ["Three."]))

    assert dump(opened(tmp_path, UNTOLD)[0]) == dump(index)


def test_a_confirmed_dimension_changes_nothing(tmp_path, kept):
    index, storage = kept
    confirm(index, storage, 16)
    put(index, OLD, parsed("c.md", ["Three."]))

    assert storage.status().is_complete
    assert dump(opened(tmp_path, UNTOLD)[0]) == dump(index)


def test_until_the_next_save_a_restart_finds_the_old_vectors(tmp_path, kept):
    """They are asked about again; half of the old and half of the new would be worse."""
    index, storage = kept
    before = dump(index)
    confirm(index, storage, 8)
    put(index, NEW, parsed("a.md", ["One."]))

    assert (storage.status().is_complete, storage.status().needs_save) == (False, True)
    assert dump(opened(tmp_path, UNTOLD)[0]) == before


def test_after_the_save_nothing_old_comes_back(tmp_path, kept):
    index, storage = kept
    confirm(index, storage, 8)
    put(index, NEW, parsed("a.md", ["One."]))
    storage.save(2.0)
    put(index, NEW, parsed("c.md", ["Three."]))

    assert storage.status().is_complete
    again, _ = opened(tmp_path, UNTOLD)
    with SnapshotReader(tmp_path) as reader:
        assert reader.files() == index.files()
    assert (again.dim, dump(again)) == (8, dump(index))


def test_a_dimension_that_changes_beside_a_save_makes_the_next_one_due(tmp_path, kept, monkeypatch):
    index, storage = kept
    old, real = [], module.write

    def write_slowly(path, parts, **options):
        put(index, OLD, parsed("c.md", ["Three."]))
        old.extend(dump(index))
        confirm(index, storage, 8)
        put(index, NEW, parsed("a.md", ["One."]))
        real(path, parts, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "write", write_slowly)
        storage.save(2.0)

    assert storage.status().needs_save
    assert dump(opened(tmp_path, UNTOLD)[0]) == old
    storage.save(3.0)
    assert dump(opened(tmp_path, UNTOLD)[0]) == dump(index)


def test_a_kill_at_any_operation_of_that_save_leaves_the_old_or_the_new(tmp_path, monkeypatch):
    killed_at, left = 0, []
    while True:
        folder = tmp_path / str(killed_at)
        folder.mkdir()
        index, storage = opened(folder, UNTOLD)
        put(index, OLD, parsed("a.md", ["One."]))
        storage.save(1.0)
        put(index, OLD, parsed("b.md", ["Two."]))
        old = dump(index)
        storage.stop_logging()
        disk = CrashDisk(folder)
        with monkeypatch.context() as patch:
            patch.setattr(index_opening, "IndexStorage", partial(IndexStorage, disk=disk))
            index, storage = opened(folder, UNTOLD)
        confirm(index, storage, 8)
        put(index, NEW, parsed("a.md", ["One."]))
        disk.killed_at = disk.num_calls + killed_at
        try:
            storage.save(2.0)
            break
        except Killed:
            disk.reap()
        left.append(dump(opened(folder, UNTOLD)[0]))
        killed_at += 1

    disk.reap()
    num_old = left.count(old)
    assert left == [old] * num_old + [dump(index)] * (len(left) - num_old)
    assert 0 < num_old < len(left)
