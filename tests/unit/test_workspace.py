import os
import socket
import unicodedata
from pathlib import Path

import pytest

from memory.errors import WorkspaceMissing
from memory.file_system import OsFileSystem
from memory.globs import Globs
from memory.messages import SkippedFile
from memory.workspace import FileUnsettled, Gone, SourceFile, Workspace

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / ".root"
    folder.mkdir()
    return folder


def write(root, raw_path, data=b"text"):
    path = root / os.fsdecode(raw_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def workspace(root, *, exclude=(), **options):
    return Workspace(root, exclude=Globs(exclude), **options)


def scanned(root, **options):
    return [stamp.path for stamp in workspace(root, **options).scan().files]


def reasons(root, **options):
    return {file.path: file.reason for file in workspace(root, **options).scan().skipped}


class Refusing(OsFileSystem):
    """Refuses to list or open one path."""

    def __init__(self, raw_path, error):
        self._raw_path = raw_path
        self._error = error

    def entries(self, root, folder):
        if folder == self._raw_path:
            raise self._error
        return super().entries(root, folder)

    def open_file(self, root, raw_path):
        if raw_path == self._raw_path:
            raise self._error
        return super().open_file(root, raw_path)


class Folding(OsFileSystem):
    """Opens names without regard to case and Unicode form, as macOS does; lists them as stored."""

    def open_file(self, root, raw_path):
        found = ""
        for part in raw_path.split("/"):
            names = [entry.name for entry in self.entries(root, found)]
            name = next((name for name in names if _folded(name) == _folded(part)), part)
            found = f"{found}/{name}" if found else name
        return super().open_file(root, found)


def _folded(name):
    return unicodedata.normalize("NFC", name).casefold()


class Moving(OsFileSystem):
    """Changes a file each time after it was read, a limited number of times."""

    def __init__(self, path, times):
        self._path = path
        self._times = times

    def read(self, descriptor, num_bytes):
        data = super().read(descriptor, num_bytes)
        if self._times:
            self._times -= 1
            self._path.write_bytes(data + b"+")
        return data


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


def test_odd_names_are_indexed_or_skipped_with_a_reason(root):
    # FAULTS 34
    names = [
        "two words.md",
        "😀.md",
        "-dash.md",
        "pi|pe.md",
        "`tick`.md",
        "new\nline.md",
        "#.md",
        "[a](b).md",
        "a.b.md",
        "%2e.md",
        "~.md",
        "x" * 252 + ".md",
        "\u202e.md",
        "'q\".md",
        "é.md",
    ]
    for name in names:
        write(root, name)
    write(root, b"caf\xe9.md")
    write(root, b"dir\xff/a.md")

    found = scanned(root)

    assert found == sorted(names)
    assert all(isinstance(workspace(root).read(name), SourceFile) for name in names)
    assert reasons(root) == {
        "caf\ufffd.md": "the name is not UTF-8",
        "dir\ufffd": "the name is not UTF-8",
    }
    assert workspace(root).read("caf\udce9.md") == SkippedFile(
        "caf\ufffd.md", "the name is not UTF-8"
    )


def test_of_two_names_with_one_key_the_nfc_one_wins_in_scan_and_read(root):
    # FAULTS 34
    write(root, NFC, b"composed")
    write(root, NFD, b"decomposed")

    scan = workspace(root).scan()

    assert [(stamp.path, stamp.raw_path) for stamp in scan.files] == [(NFC, NFC)]
    assert [file.path for file in scan.skipped] == [NFD]
    for spelling in (NFC, NFD):
        source = workspace(root).read(spelling)
        assert (source.path, source.raw_path, source.data) == (NFC, NFC, b"composed")


def test_a_decomposed_name_is_found_under_its_key(root):
    write(root, f"u\u0308ber/{NFD}", b"decomposed")
    (stamp,) = workspace(root).scan().files

    by_key = workspace(root).read(stamp.path)
    by_name = workspace(root).read(stamp.raw_path)

    assert stamp.path == f"\u00fcber/{NFC}"
    assert by_key == by_name
    assert by_name.raw_path == stamp.raw_path == f"u\u0308ber/{NFD}"


def test_after_the_nfc_twin_is_gone_the_other_one_is_read(root):
    write(root, NFD, b"decomposed")

    assert workspace(root).read(NFC).data == b"decomposed"
    (root / NFD).unlink()
    assert workspace(root).read(NFC) == Gone(NFC)


def test_where_spellings_are_one_file_the_listed_one_is_kept(root):
    write(root, NFD)
    subject = workspace(root, file_system=Folding())

    (stamp,) = subject.scan().files

    assert subject.read(stamp.raw_path).raw_path == stamp.raw_path == NFD


def test_a_rename_that_changes_only_case_ends_with_one_file(root):
    # FAULTS 35
    write(root, "Wiki/a.md")
    subject = workspace(root, file_system=Folding())
    assert isinstance(subject.read("Wiki/a.md"), SourceFile)

    (root / "Wiki/a.md").rename(root / "Wiki/A.md")

    assert [stamp.path for stamp in subject.scan().files] == ["Wiki/A.md"]
    assert subject.read("Wiki/a.md") == Gone("Wiki/a.md")
    assert subject.read("wiki/A.md") == Gone("wiki/A.md")
    assert isinstance(subject.read("Wiki/A.md"), SourceFile)


def test_case_twins_are_two_files_where_case_matters(root):
    # FAULTS 35
    write(root, "a.md", b"small")
    write(root, "A.md", b"large")

    assert scanned(root) == ["A.md", "a.md"]
    assert workspace(root).read("a.md").data == b"small"


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
