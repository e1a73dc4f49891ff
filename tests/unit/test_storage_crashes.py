"""Does every failure and every crash of the disk leave the index as it was after some change?"""

from __future__ import annotations

import contextlib
import errno
from functools import partial

import pytest

from memory import index_opening
from memory.checks import dump
from memory.journal import JOURNAL_NAME
from memory.reader import SnapshotReader
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit import crash_disk
from tests.unit.building import new_index, parsed, put, remove, text_of
from tests.unit.crash_disk import CrashDisk, Killed, crash_images
from tests.unit.keeping import opened

EMBEDDER = HashEmbedder(4)


def keep_one(index):
    (chunk,) = parsed("later.md", ["Kept."]).chunks
    index.keep((chunk.content_hash,), EMBEDDER.embed_documents([text_of(chunk)]))


def replaced(path, *texts):
    return lambda index: put(index, EMBEDDER, parsed(path, texts))


CHANGES = [
    replaced("a.md", "One.", "Two."),
    replaced("b.md", "Three."),
    replaced("a.md", "Zero.", "Two."),
    keep_one,
    lambda index: remove(index, "b.md"),
    replaced("c.md", "Four.", "Kept."),
    replaced("c.md", "Five."),
    replaced("d.md", "Three."),
]
"""Each makes the revision one more."""


def state_of(index):
    """Returns everything that a restart must bring back."""
    return index.revision, index.files(), dump(index), set(dict(index._state.cache))


def history():
    """Returns the state after each number of changes, of an index that nobody saves."""
    index = new_index(EMBEDDER)
    states = [state_of(index)]
    for change in CHANGES:
        change(index)
        states.append(state_of(index))
    return states


HISTORY = history()


class Owner:
    """Goes on after whatever the disk refuses, as the Persister does.

    What it promises to the disk is the revision that survives a kill, and the one that survives a
    power loss.
    """

    def __init__(self, folder, disk):
        self.folder = folder
        self.disk = disk
        self.killable = self.durable = 0
        self.open()

    def open(self):
        for _attempt in range(9):
            with contextlib.suppress(OSError):
                self.index, self.storage = opened(self.folder, EMBEDDER)
                break
        assert self.index.revision >= self.killable
        assert state_of(self.index) == HISTORY[self.index.revision]
        self.note(self.durable)

    def live(self):
        """Changes, syncs, saves and opens again, each after each of the others."""
        self.save()
        while (revision := self.index.revision) < len(CHANGES):
            CHANGES[revision](self.index)
            self.note(self.durable)
            if revision % 3 == 1:
                self.sync()
            if revision % 3 == 2:
                self.save()
            if revision in {3, 5, 7} and self.storage.status().is_complete:
                self.storage.stop_logging()
                self.open()
        self.sync()

    def sync(self):
        revision = self.index.revision
        with contextlib.suppress(OSError):
            self.storage.sync()
            if self.storage.status().is_complete:
                self.note(revision)
                return
        self.save()

    def save(self):
        for _attempt in range(9):
            with contextlib.suppress(OSError):
                self.note(self.storage.save(1.0))
                return
            self.note(self.durable)
        raise AssertionError

    def note(self, durable):
        self.durable = max(self.durable, durable)
        if self.storage.status().is_complete:
            self.killable = self.index.revision
        self.killable = max(self.killable, self.durable)
        self.disk.promise((self.killable, self.durable))


@pytest.fixture
def owner_of(monkeypatch):
    """Opens a folder through a disk."""

    def owner_of(folder, disk):
        monkeypatch.setattr(index_opening, "IndexStorage", partial(IndexStorage, disk=disk))
        return Owner(folder, disk)

    return owner_of


def left_in(folder, monkeypatch):
    """Returns the revision that the next owner finds; whoever only reads finds the same."""
    monkeypatch.setattr(index_opening, "IndexStorage", IndexStorage)
    listed = ()
    if (folder / SNAPSHOT_NAME).exists():
        with SnapshotReader(folder) as reader:
            listed = reader.files()
    index, storage = opened(folder, EMBEDDER)
    storage.stop_logging()

    assert listed == index.files()
    assert state_of(index) == HISTORY[index.revision]
    return index.revision


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "num_failures"), [(errno.EIO, 1), (errno.ENOSPC, 2), (errno.EIO, 4)]
)
def test_after_any_failure_the_storage_goes_on_and_nothing_is_lost(
    tmp_path, owner_of, monkeypatch, error, num_failures
):
    """FAULTS 4 and 5: every operation of saves, appends, flushes and openings."""
    first = 0
    while True:
        folder = tmp_path / str(first)
        folder.mkdir()
        disk = CrashDisk(folder, failing=range(first, first + num_failures), error=error)
        owner = owner_of(folder, disk)
        owner.live()
        disk.reap()
        if disk.num_calls <= first:
            break

        assert owner.durable == len(CHANGES)
        assert left_in(folder, monkeypatch) == len(CHANGES)
        assert not list(folder.glob(".*.tmp"))
        first += 1

    assert first > 60


@pytest.mark.slow
def test_a_kill_at_any_operation_leaves_all_that_was_answered(tmp_path, owner_of, monkeypatch):
    """FAULTS 1 and 2: a write half done; the next owner goes on."""
    killed_at = 0
    while True:
        folder = tmp_path / str(killed_at)
        folder.mkdir()
        disk = CrashDisk(folder, killed_at=killed_at)
        try:
            owner_of(folder, disk).live()
            break
        except Killed:
            disk.reap()
        killable = max([each.value[0] for each in disk.operations if each.kind == "promise"] or [0])

        assert left_in(folder, monkeypatch) >= killable
        again = owner_of(folder, CrashDisk(folder))
        again.live()
        again.disk.reap()
        assert left_in(folder, monkeypatch) == len(CHANGES)
        killed_at += 1

    assert killed_at > 60


def images_of(disk, tmp_path, since=0):
    """Yields a folder for every image that differs, and the revision it must hold at least."""
    seen = set()
    for image in crash_images(disk, since=since, torn=False):
        durable = image.promise[1] if image.promise else 0
        case = (frozenset(image.files.items()), durable)
        if case not in seen:
            seen.add(case)
            folder = tmp_path / f"image-{len(seen)}"
            folder.mkdir()
            crash_disk.put(folder, image)
            yield folder, durable


def test_a_power_loss_at_any_operation_leaves_all_that_was_synced(tmp_path, owner_of, monkeypatch):
    """FAULTS 2 and 3: with any of the names that were not flushed."""
    home = tmp_path / "home"
    home.mkdir()
    disk = CrashDisk(home)
    owner_of(home, disk).live()
    disk.reap()
    images = list(images_of(disk, tmp_path))

    for folder, durable in images:
        assert left_in(folder, monkeypatch) >= durable
    assert len(images) > 30


def test_a_power_loss_never_brings_an_old_journal_back(tmp_path, owner_of, monkeypatch):
    """Beside the first snapshot of a new index its changes would seem to follow."""
    home = tmp_path / "home"
    home.mkdir()
    first = owner_of(home, CrashDisk(home))
    first.save()
    CHANGES[0](first.index)
    first.sync()
    first.disk.reap()
    (home / SNAPSHOT_NAME).unlink()
    disk = CrashDisk(home)
    since = len(disk.operations)
    owner_of(home, disk).save()
    disk.reap()
    images = list(images_of(disk, tmp_path, since))

    assert [left_in(folder, monkeypatch) for folder, _durable in images] == [0] * len(images)
    assert len(images) > 3


def test_the_snapshot_counts_where_only_the_journal_was_not_made_shorter(
    tmp_path, owner_of, monkeypatch
):
    """The save says so; changes go on in the old journal, and the next save repairs."""
    owner = owner_of(tmp_path, CrashDisk(tmp_path))
    owner.save()
    for change in CHANGES[:3]:
        change(owner.index)
    long = owner.storage.status().journal_bytes
    with monkeypatch.context() as patch:
        patch.setattr(CrashDisk, "create", refusing_the_journal)
        with pytest.raises(OSError, match="space"):
            owner.storage.save(7.0)
    CHANGES[3](owner.index)
    owner.storage.sync()
    status = owner.storage.status()

    assert (status.saved_revision, status.saved_at, status.is_complete) == (3, 7.0, True)
    assert status.journal_bytes > long
    assert left_in(tmp_path, monkeypatch) == 4
    owner.storage.save(8.0)
    assert owner.storage.status().journal_bytes < long
    CHANGES[4](owner.index)
    assert left_in(tmp_path, monkeypatch) == 5


def refusing_the_journal(disk, path):
    if JOURNAL_NAME in path.name:
        raise OSError(errno.ENOSPC, "No space left on device")
    return CREATE(disk, path)


CREATE = CrashDisk.create


def test_a_journal_that_could_not_be_made_at_first_is_made_by_the_next_save(
    tmp_path, owner_of, monkeypatch
):
    owner = owner_of(tmp_path, CrashDisk(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(CrashDisk, "create", refusing_the_journal)
        owner.storage.save(1.0)
    CHANGES[0](owner.index)
    assert (owner.storage.status().is_complete, owner.storage.status().needs_save) == (False, True)
    assert left_in(tmp_path, monkeypatch) == 0

    owner.storage.save(2.0)
    CHANGES[1](owner.index)

    assert owner.storage.status().is_complete
    assert left_in(tmp_path, monkeypatch) == 2
