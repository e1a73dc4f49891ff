"""Does a journal take up what it is given, and say when it cannot?"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from memory.errors import JournalUnusable
from memory.journal import JOURNAL_NAME, encode_header, encode_record, read_journal
from memory.journal_writer import JournalWriter
from tests.unit.scripted_disk import ScriptedDisk

IDENTITY = bytes(range(32))


@pytest.fixture
def disk():
    return ScriptedDisk()


@pytest.fixture
def writer(tmp_path, disk):
    writer = JournalWriter(tmp_path, base=10, identity=IDENTITY, disk=disk)
    disk.calls.clear()
    yield writer
    writer.close()


def append(writer, *revisions):
    for revision in revisions:
        writer.append(revision, b"change %d" % revision)


def read(folder):
    """Returns the base and the revisions in the journal, each with the payload of ``append``."""
    journal = read_journal(folder / JOURNAL_NAME, identity=IDENTITY)
    for record in journal.records:
        assert record.payload == b"change %d" % record.revision
    return journal.base, [record.revision for record in journal.records]


def put(folder, base, revisions, tail=b""):
    records = (encode_record(revision, b"change %d" % revision) for revision in revisions)
    data = encode_header(IDENTITY, base) + b"".join(records) + tail
    (folder / JOURNAL_NAME).write_bytes(data)


def test_a_new_journal_is_flushed_before_it_has_its_name(tmp_path, disk):
    JournalWriter(tmp_path, base=10, identity=IDENTITY, disk=disk).close()

    assert [call for call in disk.calls if call != "write"] == [
        "create",
        "fsync",
        "rename",
        "fsync_folder",
    ]
    assert read(tmp_path) == (10, [])


def test_only_the_owner_can_read_the_journal(tmp_path, writer):
    """FAULTS 77."""
    writer.restart(10)

    assert stat.S_IMODE((tmp_path / JOURNAL_NAME).stat().st_mode) == 0o600


def test_an_append_is_one_write_and_no_flush(tmp_path, writer, disk):
    append(writer, 11, 12)

    assert disk.calls == ["write", "write"]
    assert read(tmp_path) == (10, [11, 12])
    assert (writer.base, writer.last_revision) == (10, 12)
    assert writer.num_bytes == (tmp_path / JOURNAL_NAME).stat().st_size


def test_a_sync_flushes_data_and_says_up_to_where(writer, disk):
    append(writer, 11, 12)
    disk.calls.clear()

    assert writer.sync() == 12
    assert disk.calls == ["fdatasync"]


def test_a_system_without_fdatasync_uses_fsync(writer, monkeypatch):
    flushed = []
    monkeypatch.delattr(os, "fdatasync", raising=False)
    monkeypatch.setattr(os, "fsync", flushed.append)
    append(writer, 11)

    assert writer.sync() == 11
    assert len(flushed) == 1


def test_a_write_that_takes_little_at_once_is_continued(tmp_path, writer, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    append(writer, 11, 12)

    assert read(tmp_path) == (10, [11, 12])


@pytest.mark.parametrize("revision", [0, 10, 11])
def test_a_revision_that_is_not_new_is_refused(tmp_path, writer, revision):
    append(writer, 11)

    with pytest.raises(ValueError, match=f"revision {revision} after 11"):
        writer.append(revision, b"")
    assert read(tmp_path) == (10, [11])


def test_a_journal_is_continued(tmp_path):
    put(tmp_path, 10, [11, 12])
    writer = JournalWriter(tmp_path, base=10, identity=IDENTITY)
    append(writer, 13)
    writer.close()

    assert read(tmp_path) == (10, [11, 12, 13])


@pytest.mark.parametrize("tail", [b"torn", bytes(5000), encode_record(13, b"half a rec")[:-1]])
def test_a_torn_tail_is_cut_off_and_flushed_before_the_journal_goes_on(tmp_path, disk, tail):
    put(tmp_path, 10, [11, 12], tail)
    writer = JournalWriter(tmp_path, base=11, identity=IDENTITY, disk=disk)

    assert disk.calls == ["truncate", "fsync", "fsync_folder"]
    assert writer.last_revision == 12
    append(writer, 13)
    writer.close()
    assert read(tmp_path) == (10, [11, 12, 13])


def test_a_journal_that_ends_before_the_snapshot_is_replaced(tmp_path):
    """Going on would leave a gap between its end and the snapshot."""
    put(tmp_path, 10, [11, 12])
    JournalWriter(tmp_path, base=13, identity=IDENTITY).close()

    assert read(tmp_path) == (13, [])


def test_a_journal_that_starts_after_the_snapshot_is_not_touched(tmp_path):
    put(tmp_path, 10, [11, 12])

    with pytest.raises(JournalUnusable, match="starts at revision 10, the index is at 9"):
        JournalWriter(tmp_path, base=9, identity=IDENTITY)
    assert read(tmp_path) == (10, [11, 12])


def test_a_journal_of_another_model_is_not_touched(tmp_path):
    put(tmp_path, 10, [11])
    before = (tmp_path / JOURNAL_NAME).read_bytes()

    with pytest.raises(JournalUnusable, match="another model"):
        JournalWriter(tmp_path, base=10, identity=bytes(32))
    assert (tmp_path / JOURNAL_NAME).read_bytes() == before


def test_what_killed_writers_left_is_swept(tmp_path):
    """FAULTS 7."""
    (tmp_path / f".{JOURNAL_NAME}.0a1b2c3d.tmp").touch()
    (tmp_path / ".memory.msp.0a1b2c3d.tmp").touch()
    JournalWriter(tmp_path, base=10, identity=IDENTITY).close()

    assert {p.name for p in tmp_path.iterdir()} == {JOURNAL_NAME, ".memory.msp.0a1b2c3d.tmp"}


@pytest.mark.parametrize(
    ("after", "kept"), [(10, [11, 12, 15]), (12, [15]), (13, [15]), (15, []), (20, [])]
)
def test_a_restart_keeps_what_the_snapshot_lacks_and_goes_on(tmp_path, writer, after, kept):
    append(writer, 11, 12, 15)
    writer.restart(after)

    assert read(tmp_path) == (after, kept)
    assert writer.num_bytes == (tmp_path / JOURNAL_NAME).stat().st_size
    append(writer, 21)
    assert read(tmp_path) == (after, [*kept, 21])
    writer.restart(20)
    assert read(tmp_path) == (20, [21])


def test_a_restart_before_the_base_is_refused(writer):
    with pytest.raises(ValueError, match="revision 9 before the base 10"):
        writer.restart(9)


def test_an_append_that_fails_leaves_nothing_and_can_be_repeated(tmp_path, writer, disk):
    """FAULTS 5."""
    append(writer, 11)
    disk.failing = {"write"}
    with pytest.raises(OSError, match="No space left"):
        append(writer, 12)
    disk.failing = set()

    assert (writer.last_revision, writer.needs_snapshot) == (11, False)
    assert writer.num_bytes == (tmp_path / JOURNAL_NAME).stat().st_size
    append(writer, 12, 13)
    assert read(tmp_path) == (10, [11, 12, 13])


def test_half_a_record_that_stays_ends_appending_until_a_restart(tmp_path, writer, disk):
    append(writer, 11)
    disk.failing = {"write", "truncate"}
    with pytest.raises(OSError, match="No space left"):
        append(writer, 12)
    disk.failing = set()

    assert writer.needs_snapshot
    with pytest.raises(OSError, match="a snapshot is needed"):
        append(writer, 12)
    assert writer.sync() == 11
    writer.restart(10)
    assert not writer.needs_snapshot
    append(writer, 12)
    assert read(tmp_path) == (10, [11, 12])


def test_after_a_failed_sync_nothing_is_acknowledged_until_a_restart(tmp_path, writer, disk):
    """FAULTS 4: the next flush would succeed though the system dropped the pages."""
    append(writer, 11)
    disk.failing = {"fdatasync"}
    with pytest.raises(OSError, match="No space left"):
        writer.sync()
    disk.failing = set()
    disk.calls.clear()

    assert writer.needs_snapshot
    with pytest.raises(OSError, match="a snapshot is needed"):
        writer.sync()
    assert disk.calls == []
    append(writer, 12)
    writer.restart(11)
    assert (writer.needs_snapshot, writer.sync()) == (False, 12)
    assert read(tmp_path) == (11, [12])


@pytest.mark.parametrize("failing", ["write", "fsync", "rename"])
def test_a_restart_that_fails_leaves_the_old_journal_going_on(tmp_path, writer, disk, failing):
    """FAULTS 4 to 6."""
    append(writer, 11, 12)
    disk.failing = {failing}
    with pytest.raises(OSError, match="No space left"):
        writer.restart(11)
    disk.failing = set()

    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL_NAME]
    assert not writer.needs_snapshot
    append(writer, 13)
    assert writer.sync() == 13
    assert read(tmp_path) == (10, [11, 12, 13])


def test_a_restart_whose_name_may_not_last_acknowledges_nothing(tmp_path, writer, disk):
    append(writer, 11, 12)
    disk.failing = {"fsync_folder"}
    with pytest.raises(OSError, match="No space left"):
        writer.restart(11)
    disk.failing = set()
    append(writer, 13)

    with pytest.raises(OSError, match="a snapshot is needed"):
        writer.sync()
    writer.restart(writer.base)
    assert writer.sync() == 13
    assert read(tmp_path) == (11, [12, 13])


def test_records_that_cannot_be_read_back_are_not_carried_on(tmp_path, writer):
    append(writer, 11, 12)
    with (tmp_path / JOURNAL_NAME).open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"?")

    with pytest.raises(OSError, match="cannot be read back"):
        writer.restart(11)
    writer.restart(12)
    append(writer, 13)
    assert read(tmp_path) == (12, [13])


def test_a_failed_flush_while_opening_is_not_forgotten(tmp_path, disk):
    put(tmp_path, 10, [11])
    disk.failing = {"fsync"}
    writer = JournalWriter(tmp_path, base=10, identity=IDENTITY, disk=disk)
    disk.failing = set()

    assert writer.needs_snapshot
    with pytest.raises(OSError, match="a snapshot is needed"):
        writer.sync()
    writer.restart(10)
    assert writer.sync() == 11
    writer.close()


def test_changes_during_a_sync_are_not_part_of_what_it_says(tmp_path, writer, disk):
    append(writer, 11)
    disk.during_flush = lambda: append(writer, 12)

    assert writer.sync() == 11
    assert read(tmp_path) == (10, [11, 12])


@pytest.mark.parametrize("meanwhile", ["restart", "close"])
def test_a_sync_survives_that_the_file_is_exchanged_or_closed(writer, disk, meanwhile):
    append(writer, 11)
    disk.during_flush = {"restart": lambda: writer.restart(11), "close": writer.close}[meanwhile]

    assert writer.sync() == 11


def test_a_sync_that_fails_for_the_old_file_does_not_spoil_the_new_one(writer, disk):
    append(writer, 11)

    def exchange():
        writer.restart(11)
        disk.during_flush = None
        disk.failing = {"fdatasync"}

    disk.during_flush = exchange
    with pytest.raises(OSError, match="No space left"):
        writer.sync()
    disk.failing = set()

    assert not writer.needs_snapshot
    append(writer, 12)
    assert writer.sync() == 12


def test_a_sync_beside_one_that_fails_acknowledges_nothing(writer, disk):
    """The system tells only one of them."""
    append(writer, 11)

    def fail_once():
        disk.during_flush = None
        disk.failing = {"fdatasync"}
        with pytest.raises(OSError, match="No space left"):
            writer.sync()
        disk.failing = set()

    disk.during_flush = fail_once
    with pytest.raises(OSError, match="a snapshot is needed"):
        writer.sync()


def test_syncs_in_another_thread_disturb_nothing(tmp_path):
    writer = JournalWriter(tmp_path, base=10, identity=IDENTITY)
    done = threading.Event()
    synced = [0]

    def keep_syncing():
        while not done.is_set() or len(synced) == 1:
            synced.append(writer.sync())

    thread = threading.Thread(target=keep_syncing)
    thread.start()
    for revision in range(11, 111):
        append(writer, revision)
        if revision % 20 == 0:
            writer.restart(revision - 5)
    done.set()
    thread.join()

    assert synced == sorted(synced)
    assert len(synced) > 1
    assert writer.sync() == 110
    assert read(tmp_path) == (95, list(range(96, 111)))
    writer.close()


def num_open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_a_closed_journal_refuses_everything_and_leaks_nothing(tmp_path):
    before = num_open_files()
    writer = JournalWriter(tmp_path, base=10, identity=IDENTITY)
    append(writer, 11)
    writer.sync()
    writer.restart(10)
    writer.close()
    writer.close()

    assert num_open_files() == before
    for call in (lambda: append(writer, 12), writer.sync, lambda: writer.restart(10)):
        with pytest.raises(OSError, match=r"(?i)bad file descriptor"):
            call()
