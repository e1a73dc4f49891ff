"""Is what is read of one moment, and is nothing given up that could be read later?"""

from __future__ import annotations

import errno
import os

import pytest

from memory import recovery
from memory.checks import dump
from memory.journal import HEADER_BYTES, JOURNAL_NAME, encode_record
from memory.reader import SnapshotReader
from memory.recovery import open_saved
from memory.storage import OLD_JOURNAL_NAME
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, put
from tests.unit.keeping import opened


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def kept(tmp_path, embedder):
    """An index with one file in its snapshot and one in its journal."""
    index, storage = opened(tmp_path, embedder)
    put(index, embedder, parsed("a.md", ["One."]))
    storage.save(1.0)
    put(index, embedder, parsed("b.md", ["Two."]))
    return index, storage


def saving_between(storage, monkeypatch, *, times, change):
    """Lets the owner change and save before so many readings of the journal."""
    real, moments = recovery.read_journal, iter(range(times))

    def read_later(path, *, identity):
        if next(moments, None) is not None:
            change()
            storage.save(5.0)
        return real(path, identity=identity)

    monkeypatch.setattr(recovery, "read_journal", read_later)


@pytest.mark.parametrize("times", [1, 3, 7])
def test_a_save_between_the_two_readings_makes_them_start_again(
    tmp_path, kept, embedder, monkeypatch, times
):
    index, storage = kept
    texts = iter("abcdefghi")
    saving_between(
        storage,
        monkeypatch,
        times=times,
        change=lambda: put(index, embedder, parsed("c.md", [next(texts)])),
    )

    with SnapshotReader(tmp_path) as reader:
        assert reader.files() == index.files()
        assert (reader.revision, reader.age_s(5.0)) == (index.revision, 0.0)


def test_a_save_without_a_change_makes_them_start_again_too(tmp_path, kept, monkeypatch):
    """The journal then is empty, and does not begin where the old snapshot ends."""
    index, storage = kept
    saving_between(storage, monkeypatch, times=1, change=lambda: None)

    with SnapshotReader(tmp_path) as reader:
        assert reader.files() == index.files()


def test_an_owner_that_saves_all_the_time_leaves_the_newest_snapshot(
    tmp_path, kept, embedder, monkeypatch
):
    index, storage = kept
    texts = map(str, range(100))
    saving_between(
        storage,
        monkeypatch,
        times=100,
        change=lambda: put(index, embedder, parsed("c.md", [next(texts)])),
    )
    saved = open_saved(tmp_path)

    with saved.snapshot as snapshot:
        assert snapshot.header.info.revision == index.revision
        assert (saved.changes, saved.changed_at) == ((), 5.0)
        assert "begin after the snapshot" in saved.trouble


@pytest.mark.parametrize("dropped", [0, 1, 2])
def test_changes_behind_one_that_is_missing_do_not_count(tmp_path, kept, embedder, dropped):
    """Made without it, they would fit by chance at best; listings and searches agree on that."""
    index, _ = kept
    for name in ("c.md", "d.md"):
        put(index, embedder, parsed(name, [f"In {name}."]))
    journal = open_saved(tmp_path)
    journal.snapshot.close()
    records = [encode_record(each.revision, each.payload) for each in journal.changes]
    header = (tmp_path / JOURNAL_NAME).read_bytes()[:HEADER_BYTES]
    del records[dropped]
    (tmp_path / JOURNAL_NAME).write_bytes(header + b"".join(records))

    with SnapshotReader(tmp_path) as reader:
        listed = reader.files()
    again, storage = opened(tmp_path, embedder)

    assert [file.path for file in listed] == ["a.md", "b.md", "c.md", "d.md"][: 1 + dropped]
    assert again.files() == listed
    assert storage.status().needs_save == (dropped < 2)
    assert (tmp_path / OLD_JOURNAL_NAME).exists() == (dropped < 2)


PASSING = [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.EACCES]


@pytest.mark.parametrize("number", PASSING, ids=errno.errorcode.get)
def test_a_journal_that_cannot_be_opened_now_is_left_for_later(
    tmp_path, kept, embedder, monkeypatch, number
):
    """What is in it was paid for."""
    index, _ = kept

    def refuse(_path, _flags):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr("memory.journal.open_at_once", refuse)
        with pytest.raises(OSError, match=JOURNAL_NAME) as raised:
            opened(tmp_path, embedder)

    assert raised.value.errno == number
    assert not (tmp_path / OLD_JOURNAL_NAME).exists()
    assert dump(opened(tmp_path, embedder)[0]) == dump(index)


def test_a_journal_that_cannot_be_read_now_is_left_for_later(tmp_path, kept, embedder, monkeypatch):
    index, _ = kept
    with monkeypatch.context() as patch:
        # Reading what is open for writing alone is an error of the system.
        patch.setattr("memory.journal.open_at_once", lambda path, _: os.open(path, os.O_WRONLY))
        with pytest.raises(OSError, match=JOURNAL_NAME):
            opened(tmp_path, embedder)

    assert not (tmp_path / OLD_JOURNAL_NAME).exists()
    assert dump(opened(tmp_path, embedder)[0]) == dump(index)


def test_a_journal_that_cannot_be_read_a_second_time_makes_a_save_due(
    tmp_path, kept, embedder, monkeypatch
):
    """The first reading, for its changes, went well; the second is to append to it."""
    index, _ = kept

    def refuse(path, *, identity):
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("memory.journal_writer.read_journal", refuse)
        again, storage = opened(tmp_path, embedder)
        assert storage.status().needs_save
        put(again, embedder, parsed("c.md", ["Three."]))
        storage.save(2.0)
        assert storage.status().needs_save

    assert len(again.files()) == len(index.files()) + 1
    assert dump(opened(tmp_path, embedder)[0]) == dump(again)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_what_can_never_be_read_is_set_aside(tmp_path, kept, embedder, make):
    (tmp_path / JOURNAL_NAME).unlink()
    make(tmp_path / JOURNAL_NAME)

    again, _ = opened(tmp_path, embedder)

    assert [file.path for file in again.files()] == ["a.md"]
    assert (tmp_path / OLD_JOURNAL_NAME).exists()
