"""Is there a whole index after a crash at any moment of a take-over, and nothing to pay again?"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import replace
from functools import partial

import pytest

from memory import index_opening, taking_over
from memory.atomic_file import OsDisk
from memory.checks import dump
from memory.index_folders import NEXT_NAME, PREVIOUS_NAME, identity_in
from memory.journal import JOURNAL_NAME
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put
from tests.unit.successions import FILES, NOW, Memory

OLD, NEW = HashEmbedder(16), HashEmbedder(8)
UNTOLD = replace(OLD.info, model="untold", dim=0)
CHANGING = (
    "create",
    "open_to_append",
    "write",
    "truncate",
    "fsync",
    "fdatasync",
    "rename",
    "link",
    "fsync_folder",
    "remove",
)


class Killed(BaseException):
    """The process is gone: no cleaning up."""


class FragileDisk(OsDisk):
    """Dies at one operation and stays dead, or fails at some; notes what was done.

    Args:
        killed_at: Number of the operation, from 0.
        failing: Numbers of those that fail.
    """

    def __init__(self, *, killed_at=None, failing=()):
        self.killed_at = killed_at
        self.failing = failing
        self.done = []

    def act(self, name, *arguments):
        number = len(self.done)
        if self.killed_at is not None and number >= self.killed_at:
            raise Killed
        paths = [each for each in arguments if isinstance(each, os.PathLike)]
        self.done.append((name, *paths))
        if number in self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return getattr(OsDisk, name)(self, *arguments)


for name in CHANGING:
    setattr(FragileDisk, name, lambda self, *arguments, _name=name: self.act(_name, *arguments))


@pytest.fixture
def memory_on(monkeypatch):
    """Opens a memory through a disk."""

    def memory_on(folder, disk, embedder, **options):
        storage = partial(IndexStorage, disk=disk) if disk else IndexStorage
        monkeypatch.setattr(index_opening, "IndexStorage", storage)
        return Memory(folder, embedder, disk=disk, **options)

    return memory_on


def fresh(embedder, files):
    index = new_index(embedder)
    for path, texts in files.items():
        put(index, embedder, parsed(path, texts))
    return dump(index)


LATE = FILES | {"late.md": ["Melons."]}
AFTER = LATE | {"after.md": ["Cherries."]}


def prepare(folder, memory_on, info, embedder=OLD):
    """Leaves an old index of which the snapshot lacks a file and whose last one was removed."""
    folder.mkdir()
    memory = memory_on(folder, None, embedder, info=info[0])
    memory.save()
    memory.put_all(FILES)
    memory.put("gone.md", ["Gone."])
    memory.save()
    memory.put("late.md", LATE["late.md"])
    memory.kill()


def succeed(memory, info):
    """Builds the new index, has it take over, and changes it."""
    if info[1].dim == 0:
        memory.indexes.begin(NEW.info.dim)
    memory.save()
    memory.put_all(LATE)
    memory.remove("gone.md")
    for _attempt in range(9):
        try:
            if memory.take_over():
                break
        except OSError:
            continue
    memory.put("after.md", AFTER["after.md"])


MODELS = {
    "another model": (OLD.info, NEW.info),
    # The journals of both have the same identity.
    "another dimension": (UNTOLD, UNTOLD),
}


@pytest.mark.slow
@pytest.mark.parametrize("info", MODELS.values(), ids=MODELS)
def test_a_kill_at_any_operation_leaves_the_old_or_the_new_index(tmp_path, memory_on, info):
    """FAULTS 1, 2: and the next start ends with the new one, without paying for a text again."""
    killed_at, seen = 0, set()
    while True:
        folder = tmp_path / str(killed_at)
        prepare(folder, memory_on, info)
        NEW.texts.clear()
        disk = FragileDisk(killed_at=killed_at)
        try:
            succeed(memory_on(folder, disk, NEW, info=info[1]), info)
            break
        except Killed:
            pass
        paid = list(NEW.texts)
        dim = identity_in(folder).dim

        again = memory_on(folder, None, NEW, info=info[1])
        num_old = len(set(FILES) - set(again.paths()))
        is_old = again.indexes.answering.dim == OLD.info.dim
        seen.add((dim, again.is_building))
        assert num_old == 0
        assert is_old == (dim == OLD.info.dim)
        succeed_after(again, info)
        # Only the change that was being written down may have to be embedded again.
        repeated = {text for text in paid if NEW.texts.count(text) > 1}
        assert len(NEW.texts) == len(set(NEW.texts)) + len(repeated)
        assert repeated <= (texts_of_last(paid) if paid else set())
        assert dump(again.newest) == fresh(NEW, AFTER)
        again.kill()
        last = memory_on(folder, None, NEW, info=info[1])
        assert dump(last.newest) == fresh(NEW, AFTER)
        assert not last.is_building
        last.kill()
        killed_at += 1

    assert killed_at > 60
    assert {dim for dim, _ in seen} == {8, 16}
    assert (16, True) in seen


def texts_of_last(paid):
    """Returns the texts of the file that was embedded last."""
    words = next(words for words in AFTER.values() if any(word in paid[-1] for word in words))
    return {text for text in paid if any(word in text for word in words)}


def succeed_after(memory, info):
    if memory.is_building or memory.indexes.answering.dim != NEW.info.dim:
        succeed(memory, info)
    else:
        memory.put_all(AFTER)


@pytest.mark.slow
@pytest.mark.parametrize("num_failures", [1, 3])
def test_after_any_failure_it_goes_on_and_is_tried_again(tmp_path, memory_on, num_failures):
    """FAULTS 4: a disk that refuses one operation, or some in a row."""
    first = 0
    while True:
        folder = tmp_path / str(first)
        prepare(folder, memory_on, MODELS["another model"])
        disk = FragileDisk()
        memory = memory_on(folder, disk, NEW)
        memory.save()
        memory.put_all(LATE)
        memory.remove("gone.md")
        start = len(disk.done)
        disk.failing = range(start + first, start + first + num_failures)
        num_errors = 0
        for _attempt in range(9):
            try:
                if memory.take_over():
                    break
            except OSError:
                num_errors += 1
                assert set(memory.paths()) == set(LATE)
                assert memory.search("plums").degraded
        num_done = len(disk.done) - start
        memory.put("after.md", AFTER["after.md"])
        while memory.indexes.storage().needs_save:
            with contextlib.suppress(OSError):
                memory.save()
        memory.kill()

        last = memory_on(folder, None, NEW)
        assert not last.is_building
        assert dump(last.newest) == fresh(NEW, AFTER)
        last.kill()
        if num_done <= first:
            break
        first += 1

    assert first > 20


def test_the_names_reach_the_disk_in_an_order_that_a_power_loss_cannot_mix(
    tmp_path, memory_on, monkeypatch
):
    """The old journal is gone for good before the new snapshot has its place."""
    folder = tmp_path / "data"
    prepare(folder, memory_on, MODELS["another dimension"])
    disk = FragileDisk()
    memory = memory_on(folder, disk, NEW, info=UNTOLD)
    memory.indexes.begin(8)
    memory.put_all(LATE)
    memory.remove("gone.md")
    real = taking_over.exchange

    def exchange(*arguments):
        disk.done.clear()
        try:
            return real(*arguments)
        finally:
            disk.exchanged = list(disk.done)

    monkeypatch.setattr(taking_over, "exchange", exchange)
    memory.take_over()

    current, following = folder / SNAPSHOT_NAME, folder / NEXT_NAME / SNAPSHOT_NAME
    previous = folder / PREVIOUS_NAME
    assert disk.exchanged == [
        ("link", current, previous / SNAPSHOT_NAME),
        ("fsync_folder", previous),
        ("remove", folder / JOURNAL_NAME),
        ("fsync_folder", folder),
        ("rename", following, current),
        ("fsync_folder", folder),
    ]


def test_a_full_disk_takes_the_replaced_index(tmp_path, memory_on, monkeypatch):
    """It is there for whoever switches back; what is paid for now comes first."""
    folder = tmp_path / "data"
    prepare(folder, memory_on, MODELS["another model"])
    memory = memory_on(folder, None, NEW)
    memory.put_all(LATE)
    memory.remove("gone.md")
    memory.take_over()
    bad = folder / f"{SNAPSHOT_NAME}.bad-20260101T000000Z"
    bad.write_bytes(b"unreadable")
    real, attempts = IndexStorage.save, []

    def save_if_there_is_room(storage, *arguments):
        attempts.append(1)
        if (folder / PREVIOUS_NAME).exists() or bad.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(storage, *arguments)

    monkeypatch.setattr(IndexStorage, "save", save_if_there_is_room)
    memory.save()

    assert len(attempts) == 2
    assert not (folder / PREVIOUS_NAME).exists()
    assert not bad.exists()


def test_a_file_system_without_links_only_keeps_no_replaced_index(tmp_path, memory_on, monkeypatch):
    folder = tmp_path / "data"
    prepare(folder, memory_on, MODELS["another model"])
    disk = FragileDisk()

    def refuse(_self, _source, _target):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(FragileDisk, "link", refuse)
    memory = memory_on(folder, disk, NEW)
    memory.put_all(LATE)
    memory.remove("gone.md")

    assert memory.take_over()
    assert identity_in(folder).model == NEW.info.model
    assert identity_in(folder / PREVIOUS_NAME) is None


def rebuild(memory, begun):
    begun.append(memory.indexes.begin_rebuild(NOW))
    memory.put_all(LATE)
    memory.remove("gone.md")
    assert memory.take_over()
    memory.put("after.md", AFTER["after.md"])


@pytest.mark.slow
def test_a_kill_at_any_operation_of_a_rebuild_forgets_and_repeats_nothing(tmp_path, memory_on):
    """What was begun goes on by itself; what was not leaves the index as it was."""
    killed_at, seen = 0, set()
    while True:
        folder = tmp_path / str(killed_at)
        prepare(folder, memory_on, (NEW.info,), NEW)
        NEW.texts.clear()
        disk, begun = FragileDisk(killed_at=killed_at), []
        try:
            rebuild(memory_on(folder, disk, NEW), begun)
            break
        except Killed:
            pass
        paid = list(NEW.texts)

        again = memory_on(folder, None, NEW)
        assert set(FILES) <= set(again.paths())
        is_new = again.newest.identity.rebuild == 1
        seen.add((bool(begun), is_new, again.is_building))
        assert is_new or not begun
        if not is_new:
            again.indexes.begin_rebuild(NOW)
        again.put_all(AFTER)
        again.remove("gone.md")
        if again.is_building:
            assert again.take_over()
        # Only the change that was being written down may have to be embedded again.
        repeated = {text for text in NEW.texts if NEW.texts.count(text) > 1}
        assert repeated <= (texts_of_last(paid) if paid else set())
        assert len(set(NEW.texts)) == sum(map(len, AFTER.values()))
        assert dump(again.newest) == fresh(NEW, AFTER)
        again.kill()
        last = memory_on(folder, None, NEW)
        assert dump(last.newest) == fresh(NEW, AFTER)
        assert (last.is_building, last.newest.identity.rebuild) == (False, 1)
        assert not (folder / NEXT_NAME).exists()
        assert not (folder / PREVIOUS_NAME).exists()
        last.kill()
        killed_at += 1

    assert killed_at > 60
    assert seen >= {(False, False, False), (True, True, True), (True, True, False)}
