"""Does a replacement leave the old or the new file, whatever fails?"""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from memory.atomic_file import OsDisk, create_atomically, replace_atomically, sweep_temporaries
from tests.unit.scripted_disk import ScriptedDisk


def test_a_replacement_is_flushed_before_and_after_the_rename(tmp_path):
    disk = ScriptedDisk()
    replace_atomically(tmp_path / "file", (b"new ", b"content"), disk)

    assert disk.calls == ["create", "write", "write", "fsync", "rename", "fsync_folder"]
    assert (tmp_path / "file").read_bytes() == b"new content"


def test_only_the_owner_can_read_the_file(tmp_path):
    """FAULTS 77."""
    before = os.umask(0)
    try:
        replace_atomically(tmp_path / "file", (b"secret",))
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("failing", ["create", "write", "fsync", "rename"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, failing):
    """FAULTS 4, 5 and 6."""
    (tmp_path / "file").write_bytes(b"old")

    with pytest.raises(OSError, match="Input/output"):
        replace_atomically(tmp_path / "file", (b"new",), ScriptedDisk(failing, error=errno.EIO))

    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_write_that_takes_little_at_once_is_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    replace_atomically(tmp_path / "file", (b"0123456789", b"", b"ab"))

    assert (tmp_path / "file").read_bytes() == b"0123456789ab"


def test_the_disk_begins_while_more_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("memory.atomic_file._FLUSHED_BYTES", 4)
    begun = []

    class Disk(ScriptedDisk):
        def begin_flush(self, descriptor, offset, num_bytes):
            begun.append((len(self.calls), offset, num_bytes))
            super().begin_flush(descriptor, offset, num_bytes)

    disk = Disk()
    replace_atomically(tmp_path / "file", (b"012", b"345", b"6789ab", b"cd"), disk)

    # Once the file is made and written to twice, and a write later; the rest is for the flush.
    assert begun == [(3, 0, 6), (4, 6, 6)]
    assert disk.calls[-4:] == ["write", "fsync", "rename", "fsync_folder"]
    assert (tmp_path / "file").read_bytes() == b"0123456789abcd"


def test_what_cannot_be_begun_is_left_to_the_flush():
    ends = os.pipe()
    try:
        OsDisk().begin_flush(ends[1], 0, 1)
    finally:
        for end in ends:
            os.close(end)


def test_a_helper_frees_the_old_file_after_the_new_one_is_safe(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    disk, later = ScriptedDisk(), []

    class Helper(Executor):
        def submit(self, work, *arguments):
            later.append((list(disk.calls), work, arguments))

    replace_atomically(tmp_path / "file", (b"new",), disk, Helper())

    ((calls, work, (old,)),) = later
    assert calls[-2:] == ["rename", "fsync_folder"]
    assert (tmp_path / "file").read_bytes() == b"new"
    assert os.pread(old, 5, 0) == b"old"
    work(old)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(old)


@pytest.mark.parametrize("failing", ["create", "write", "fsync", "rename"])
def test_a_failure_leaves_no_file_open_for_a_helper(tmp_path, failing):
    (tmp_path / "file").write_bytes(b"old")
    before = len(list(Path("/dev/fd").iterdir()))
    with (
        ThreadPoolExecutor(1) as helper,
        pytest.raises(OSError, match="No space"),
    ):
        replace_atomically(tmp_path / "file", (b"new",), ScriptedDisk(failing), helper)

    assert len(list(Path("/dev/fd").iterdir())) == before


def test_only_own_temporaries_of_one_name_are_swept(tmp_path):
    """FAULTS 7."""
    for name in (".file.0a1b2c3d.tmp", ".file.ffffffff.tmp"):
        (tmp_path / name).touch()
    kept = {"file", "file.tmp", ".other.0a1b2c3d.tmp", "notes.tmp"}
    for name in kept:
        (tmp_path / name).touch()

    assert sweep_temporaries(tmp_path, "file") == 2
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_new_file_is_flushed_before_it_has_its_name(tmp_path):
    disk = ScriptedDisk()

    assert create_atomically(tmp_path / "new", [b"content"], disk)
    assert disk.calls == ["create", "write", "fsync", "fsync_folder"]
    assert (tmp_path / "new").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert (tmp_path / "new").stat().st_nlink == 1


@pytest.mark.parametrize("number", [None, errno.EPERM, errno.ENOTSUP])
def test_a_file_that_is_there_is_not_made_anew_with_or_without_links(tmp_path, monkeypatch, number):
    def refuse(*_arguments):
        raise OSError(number, os.strerror(number))

    if number:
        monkeypatch.setattr(OsDisk, "link", refuse)
    (tmp_path / "link").symlink_to("nowhere")

    assert create_atomically(tmp_path / "new", [b"first"])
    assert not create_atomically(tmp_path / "new", [b"second"])
    assert not create_atomically(tmp_path / "link", [b"third"])
    assert (tmp_path / "new").read_bytes() == b"first"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "new"]
