"""Does a replacement leave the old or the new file, whatever fails?"""

from __future__ import annotations

import errno
import os
import stat

import pytest

from memory.atomic_file import replace_atomically, sweep_temporaries
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


def test_only_own_temporaries_of_one_name_are_swept(tmp_path):
    """FAULTS 7."""
    for name in (".file.0a1b2c3d.tmp", ".file.ffffffff.tmp"):
        (tmp_path / name).touch()
    kept = {"file", "file.tmp", ".other.0a1b2c3d.tmp", "notes.tmp"}
    for name in kept:
        (tmp_path / name).touch()

    assert sweep_temporaries(tmp_path, "file") == 2
    assert {path.name for path in tmp_path.iterdir()} == kept
