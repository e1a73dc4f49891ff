"""Which name is the key of a file, and which one opens it?"""

import pytest

from memory.messages import SkippedFile
from memory.workspace import Gone, SourceFile
from tests.unit.workspace_files import Folding, reasons, scanned, workspace, write

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / ".root"
    folder.mkdir()
    return folder


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
        " leading.md",
        "trailing .md",
        "tab\there.md",
        "back\\slash.md",
        "<b>.md",
        "</memories>.md",
        "$(id).md",
        "*.md",
        "?.md",
        "日本語.md",
        "👩‍👩‍👧.md",
        "a\u200bb.md",
        "\x1b[31m.md",
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
