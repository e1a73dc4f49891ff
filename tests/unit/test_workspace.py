"""Which files are memory, and what is in them at this moment?"""

import os
import socket
from pathlib import Path

import pytest

from memory.messages import SkippedFile
from memory.workspace import Gone, SourceFile
from tests.unit.workspace_files import Refusing, reasons, scanned, workspace, write


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / ".root"
    folder.mkdir()
    return folder


def test_a_scan_stamps_markdown_files_in_the_order_of_their_keys(root):
    path = write(root, "b/note.md", b"12345")
    for name in ("b.md", "a.MD", "c.markdown", "c.txt", ".hidden.md", ".git/x.md", "md"):
        write(root, name)

    scan = workspace(root).scan()

    assert [stamp.path for stamp in scan.files] == ["a.MD", "b.md", "b/note.md", "c.markdown"]
    stamp, found = scan.files[2], path.stat()
    assert (stamp.mtime_ns, stamp.size, stamp.inode) == (found.st_mtime_ns, 5, found.st_ino)
    assert scan.skipped == ()


def test_a_read_returns_the_bytes_and_the_stamp_of_the_scan(root):
    write(root, "wiki/a.md", b"# A\r\n")
    (stamp,) = workspace(root).scan().files

    source = workspace(root).read("wiki/a.md")

    assert source == SourceFile(
        stamp.path, stamp.raw_path, stamp.mtime_ns, stamp.size, stamp.inode, b"# A\r\n"
    )


def test_a_folder_called_like_a_file_is_a_folder(root):
    # FAULTS 36
    write(root, "x.md/inner.md")

    assert scanned(root) == ["x.md/inner.md"]
    assert workspace(root).read("x.md") == Gone("x.md")


def test_excluded_files_are_neither_scanned_nor_read(root):
    for name in ("wiki/a.md", "drafts/b.md", "wikipedia.md"):
        write(root, name)

    assert scanned(root, exclude=["drafts/**", "wiki"]) == ["wiki/a.md", "wikipedia.md"]
    assert workspace(root, exclude=["drafts/**"]).read("drafts/b.md") == Gone("drafts/b.md")


def test_an_excluded_tree_is_not_even_listed(root):
    write(root, "node_modules/x/readme.md")
    write(root, "a.md")
    file_system = Refusing("node_modules", PermissionError(13, "Permission denied"))

    scan = workspace(root, exclude=["node_modules/**"], file_system=file_system).scan()

    assert [stamp.path for stamp in scan.files] == ["a.md"]
    assert scan.unreadable == ()


@pytest.mark.parametrize(
    "raw_path",
    [
        "../out.md",
        "a/../../out.md",
        "/etc/out.md",
        "nul\0.md",
        "a/" * 3000 + "a.md",
        "x" * 300 + ".md",
    ],
)
def test_nothing_outside_and_nothing_impossible_is_read(root, raw_path):
    write(root.parent, "out.md")

    assert isinstance(workspace(root).read(raw_path), Gone)


@pytest.mark.parametrize(
    "target", ["../outside/secret.md", "real.md", "missing.md", "link.md"], ids=str
)
def test_a_link_to_a_file_is_reported_and_never_followed(root, target):
    # FAULTS 31
    write(root.parent, "outside/secret.md")
    write(root, "real.md")
    (root / "link.md").symlink_to(target)

    reason = "symbolic links are not followed"
    assert scanned(root) == ["real.md"]
    assert reasons(root) == {"link.md": reason}
    assert workspace(root).read("link.md") == SkippedFile("link.md", reason)


def test_a_link_to_a_folder_leads_nowhere(root):
    # FAULTS 31
    write(root.parent, "outside/secret.md")
    (root / "out").symlink_to(root.parent / "outside")
    (root / "loop").symlink_to(".")
    (root / "picture.png").symlink_to("nowhere.png")

    assert scanned(root) == []
    assert set(reasons(root)) == {"loop", "out"}
    assert workspace(root).read("out/secret.md") == Gone("out/secret.md")


def test_a_folder_swapped_for_a_link_between_scan_and_read_leads_nowhere(root):
    write(root.parent, "outside/a.md", b"secret")
    write(root, "wiki/a.md")
    subject = workspace(root)
    (stamp,) = subject.scan().files
    (root / "wiki").rename(root / "old")
    (root / "wiki").symlink_to(root.parent / "outside")

    assert subject.read(stamp.raw_path) == Gone("wiki/a.md")


def test_the_root_itself_may_be_a_link(root):
    write(root, "a.md")
    link = root.parent / "link"
    link.symlink_to(root)

    assert scanned(link) == ["a.md"]
    assert isinstance(workspace(link).read("a.md"), SourceFile)


def test_pipes_and_sockets_are_skipped_without_waiting(root, monkeypatch):
    # FAULTS 32
    os.mkfifo(root / "pipe.md")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")

        expected = {"pipe.md": "not a regular file", "socket.md": "not a regular file"}
        assert reasons(root) == expected
        for name, reason in expected.items():
            assert workspace(root).read(name) == SkippedFile(name, reason)


def test_a_file_over_the_limit_is_reported_and_one_at_the_limit_is_not(root):
    # FAULTS 43
    write(root, "large.md", b"123456")
    write(root, "fits.md", b"12345")

    subject = workspace(root, max_file_bytes=5)

    scan = subject.scan()
    assert [stamp.path for stamp in scan.files] == ["fits.md"]
    assert scan.skipped == (SkippedFile("large.md", "6 bytes are more than the limit of 5"),)
    assert subject.read("large.md") == scan.skipped[0]


def test_a_file_with_nul_bytes_is_binary(root):
    # FAULTS 42
    write(root, "utf16.md", "text".encode("utf-16"))

    assert workspace(root).read("utf16.md") == SkippedFile(
        "utf16.md", "binary: the file holds NUL bytes"
    )


def test_a_deep_tree_is_walked_and_read(root):
    deep = "/".join(["d" * 100] * 60)
    (root / "/".join(["d" * 100] * 30)).mkdir(parents=True)
    descriptor = os.open(root / "/".join(["d" * 100] * 30), os.O_RDONLY)
    for _level in range(30):
        os.mkdir("d" * 100, dir_fd=descriptor)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("a.md", os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)

    assert scanned(root) == [f"{deep}/a.md"]
    assert isinstance(workspace(root).read(f"{deep}/a.md"), SourceFile)


def test_no_descriptor_stays_open(root):
    write(root, "wiki/a.md")
    os.mkfifo(root / "pipe.md")
    subject = workspace(root)
    before = len(list(Path("/dev/fd").iterdir()))

    subject.scan()
    for name in ("wiki/a.md", "pipe.md", "gone/a.md", "wiki/gone.md"):
        subject.read(name)

    assert len(list(Path("/dev/fd").iterdir())) == before
