"""Lines of files, as an agent may read them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from memory.config import MemorySettings
from memory.errors import WorkspaceError
from memory.excerpts import MAX_CHARACTERS, MAX_LINES, read_excerpt
from memory.sanitizing import printable_block, sanitize_path

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = MemorySettings(exclude_globs=("private/*",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "wiki").mkdir(parents=True)
    (root / "private").mkdir()
    (root / ".git").mkdir()
    (root / "wiki" / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\nfour\n")
    for path in ("private/p.md", ".git/g.md", "wiki/.h.md", "wiki/a.txt"):
        (root / path).write_text("secret")
    (tmp_path / "outside.md").write_text("secret")
    (root / "wiki" / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "wiki" / "fifo.md")
    (root / "wiki" / "folder.md").mkdir()
    return root


def test_lines_are_counted_as_in_citations_whatever_ends_them(root):
    found = read_excerpt(root, SETTINGS, "wiki/a.md", start_line=2, num_lines=2)

    assert found["text"] == "two\nthree"
    assert (found["start_line"], found["end_line"], found["num_lines"]) == (2, 3, 4)
    assert read_excerpt(root, SETTINGS, "./wiki/a.md")["text"] == "one\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md",
        "wiki/../../outside.md",
        "/etc/passwd",
        "/etc/passwd.md",
        "~/x.md",
        "%2e%2e/outside.md",
        "out/outside.md",
        "wiki/link.md",
        "wiki/fifo.md",
        "wiki/folder.md",
        "wiki/.h.md",
        ".git/g.md",
        "private/p.md",
        "wiki/a.txt",
        "wiki/a.md\0",
        "wiki//a.md",
        "wiki/./a.md",
        "",
        "x" * 5_000 + ".md",
        "\udcff.md",
        "..\\outside.md",
    ],
)
def test_nothing_is_read_but_indexable_files_of_the_workspace(root, path):
    """FAULTS 86, for the tool that does open files."""
    with pytest.raises(WorkspaceError) as caught:
        read_excerpt(root, SETTINGS, path)

    assert "secret" not in str(caught.value)


def test_an_answer_is_bounded_and_the_next_one_goes_on_without_a_gap(root):
    lines = [f"line {number} {'x' * 90}" for number in range(1, 1_001)]
    (root / "long.md").write_text("\n".join(lines))

    read: list[str] = []
    while len(read) < len(lines):
        found = read_excerpt(root, SETTINGS, "long.md", start_line=len(read) + 1)
        assert len(found["text"]) <= MAX_CHARACTERS
        assert found["num_lines"] == len(lines)
        read += found["text"].split("\n")
        assert found["end_line"] == len(read)

    assert read == lines


def test_no_answer_has_more_lines_than_allowed(root):
    (root / "short.md").write_text("x\n" * 1_000)

    assert read_excerpt(root, SETTINGS, "short.md", num_lines=10**6)["end_line"] == MAX_LINES


def test_a_line_that_is_too_long_is_cut_and_said_to_be(root):
    (root / "wide.md").write_text("a" * (MAX_CHARACTERS + 1) + "\nend\n")

    found = read_excerpt(root, SETTINGS, "wide.md")
    assert found["is_cut"]
    assert (found["end_line"], found["num_lines"]) == (1, 2)
    assert len(found["text"]) == MAX_CHARACTERS
    (root / "wide.md").write_text("a" * MAX_CHARACTERS)
    assert not read_excerpt(root, SETTINGS, "wide.md")["is_cut"]


@pytest.mark.parametrize(("text", "start"), [("", 1), ("one\n", 2), ("one\n", 10**9)])
def test_a_line_that_does_not_exist_is_an_answer(root, text, start):
    (root / "few.md").write_text(text)

    found = read_excerpt(root, SETTINGS, "few.md", start_line=start)

    assert found["text"] == ""
    assert found["end_line"] < found["start_line"]


ODD = ["wiki/a`b.md", "wiki/a|b.md", "wiki/ri\u200bver.md", "wiki/" + "n" * 240 + ".md"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "shown", [sanitize_path, lambda path: sanitize_path(path, in_table=False), printable_block]
)
def test_a_file_is_found_by_the_name_that_is_shown_of_it(root, name, shown):
    (root / name).write_text("found")

    assert read_excerpt(root, SETTINGS, shown(name))["text"] == "found"


def test_a_name_that_two_files_are_shown_by_is_none(root):
    for name in ("wiki/x\u200by.md", "wiki/x\u200dy.md"):
        (root / name).write_text("found")

    with pytest.raises(WorkspaceError, match="no such"):
        read_excerpt(root, SETTINGS, "wiki/xy.md")
