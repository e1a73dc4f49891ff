"""What is known of files that cannot be read, vanish or change meanwhile?"""

import os

import pytest

from memory.errors import WorkspaceMissing
from memory.messages import SkippedFile
from memory.workspace import FileUnsettled, Gone, SourceFile
from tests.unit.workspace_files import Moving, Refusing, workspace, write


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / ".root"
    folder.mkdir()
    return folder


def test_an_unreadable_file_is_skipped_and_the_rest_goes_on(root):
    # FAULTS 33
    write(root, "a.md")
    write(root, "b.md")
    subject = workspace(
        root, file_system=Refusing("a.md", PermissionError(13, "Permission denied"))
    )

    assert subject.read("a.md") == SkippedFile("a.md", "permission denied")
    assert isinstance(subject.read("b.md"), SourceFile)


def test_a_file_that_vanished_is_gone(root):
    # FAULTS 33
    assert workspace(root).read("a.md") == Gone("a.md")
    assert workspace(root).read("folder/a.md") == Gone("folder/a.md")
    write(root, "file.md")
    assert workspace(root).read("file.md/a.md") == Gone("file.md/a.md")


def test_a_failing_disk_is_not_a_deletion(root):
    write(root, "a.md")
    subject = workspace(root, file_system=Refusing("a.md", OSError(5, "Input/output error")))

    with pytest.raises(FileUnsettled, match=r"a\.md: input/output error"):
        subject.read("a.md")


def test_a_folder_that_cannot_be_listed_is_unreadable_not_empty(root):
    write(root, "wiki/a.md")
    write(root, "b.md")
    subject = workspace(
        root, file_system=Refusing("wiki", PermissionError(13, "Permission denied"))
    )

    scan = subject.scan()

    assert [stamp.path for stamp in scan.files] == ["b.md"]
    assert scan.unreadable == ("wiki",)
    assert scan.skipped == (SkippedFile("wiki", "permission denied"),)


def test_a_folder_that_vanished_during_the_scan_is_empty(root):
    write(root, "wiki/a.md")
    subject = workspace(root, file_system=Refusing("wiki", FileNotFoundError(2, "No such file")))

    scan = subject.scan()

    assert (scan.files, scan.skipped, scan.unreadable) == ((), (), ())


def test_a_missing_root_is_not_an_empty_one(root):
    subject = workspace(root / "gone")

    with pytest.raises(WorkspaceMissing):
        subject.scan()
    with pytest.raises(WorkspaceMissing):
        subject.read("a.md")


def test_a_root_that_cannot_be_listed_counts_as_missing(root):
    subject = workspace(root, file_system=Refusing("", PermissionError(13, "Permission denied")))

    with pytest.raises(WorkspaceMissing, match="permission denied"):
        subject.scan()


def test_a_file_that_changed_while_it_was_read_is_read_again(root):
    # FAULTS 26
    path = write(root, "a.md", b"x")

    assert workspace(root, file_system=Moving(path, 2)).read("a.md").data == b"x++"


def test_a_file_that_keeps_changing_is_left_for_later(root):
    # FAULTS 26
    path = write(root, "a.md", b"x")

    with pytest.raises(FileUnsettled, match="keeps changing"):
        workspace(root, file_system=Moving(path, 1000)).read("a.md")


def test_a_change_of_content_alone_shows_in_the_stamp_only_if_the_clock_moved(root):
    # FAULTS 39: why a stamp is a hint and the content hash decides.
    path = write(root, "a.md", b"one")
    (before,) = workspace(root).scan().files
    path.write_bytes(b"two")
    os.utime(path, ns=(before.mtime_ns, before.mtime_ns))

    (after,) = workspace(root).scan().files

    assert after == before
    assert workspace(root).read("a.md").data == b"two"
