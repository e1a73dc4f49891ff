"""What a run may read and write, whatever it asks for and whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from memory.agent_run import files as module
from memory.agent_run import folder_writing
from memory.agent_run.files import MAX_READ_CHARACTERS, RunFiles, ToolError
from memory.globs import Globs

if TYPE_CHECKING:
    from pathlib import Path

ALICE = "wiki/people/alice.md"
TEXT = "# Alice\n\nSenior PM.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "wiki" / "people").mkdir(parents=True)
    (root / ALICE).write_text(TEXT)
    return root


def run_files(root: Path, writable: str = "wiki/**", exclude: tuple[str, ...] = ()) -> RunFiles:
    return RunFiles(
        root, writable=Globs(writable), exclude=Globs(exclude), max_file_bytes=10 * 1024 * 1024
    )


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_was_read_is_replaced_whole_and_keeps_its_mode(root: Path):
    (root / ALICE).chmod(0o640)
    files = run_files(root)
    files.read(ALICE, 1, 2000)

    assert files.write(ALICE, TEXT + "More.\n") == f"extended {ALICE}"
    assert (root / ALICE).read_text() == TEXT + "More.\n"
    assert stat.S_IMODE((root / ALICE).stat().st_mode) == 0o640
    assert names_in(root / "wiki" / "people") == ["alice.md"]
    assert files.written == (("extended", ALICE),)


def test_a_new_file_makes_its_folders_and_stays_created_when_it_is_written_again(root: Path):
    files = run_files(root)

    assert files.write("wiki/companies/acme.md", "# Acme\n") == "created wiki/companies/acme.md"
    assert files.write("wiki/companies/acme.md", "# Acme\n\nBig.\n").startswith("extended")
    assert (root / "wiki/companies/acme.md").read_text() == "# Acme\n\nBig.\n"
    assert files.written == (("created", "wiki/companies/acme.md"),)


def test_writing_what_is_there_changes_nothing_and_counts_for_nothing(root: Path):
    files = run_files(root)
    before = (root / ALICE).stat().st_ino

    assert files.write(ALICE, TEXT).startswith("unchanged")
    assert files.written == ()
    assert (root / ALICE).stat().st_ino == before


def test_an_existing_file_that_was_not_read_is_not_replaced(root: Path):
    with pytest.raises(ToolError, match="read all of it"):
        run_files(root).write(ALICE, "# Alice\n\nOnly the new fact.\n")

    assert (root / ALICE).read_text() == TEXT


def test_a_file_read_in_part_is_not_replaced_until_the_rest_is_read(root: Path):
    (root / ALICE).write_text("one\ntwo\nthree")
    files = run_files(root)

    assert files.read(ALICE, 1, 2) == "one\ntwo\n[lines 1-2 of 3; read on with from=3]"
    with pytest.raises(ToolError, match="read all of it"):
        files.write(ALICE, "one")
    assert files.read(ALICE, 3, 2000) == "three\n[lines 3-3 of 3]"
    assert files.write(ALICE, "one").startswith("extended")


def test_a_long_file_is_read_in_answers_that_are_not_too_long(root: Path):
    text = "\n".join(f"line {number} {'x' * 100}" for number in range(2000))
    (root / ALICE).write_text(text)
    files = run_files(root)

    first = files.read(ALICE, 1, 2000)

    assert len(first) < MAX_READ_CHARACTERS + 100
    assert "read on with from=" in first
    with pytest.raises(ToolError, match="read all of it"):
        files.write(ALICE, "short")


def test_a_line_that_is_cut_off_was_not_read(root: Path):
    (root / ALICE).write_text("x" * (MAX_READ_CHARACTERS + 1))
    files = run_files(root)

    assert len(files.read(ALICE, 1, 1)) == MAX_READ_CHARACTERS
    with pytest.raises(ToolError, match="read all of it"):
        files.write(ALICE, "short")


def test_bytes_that_are_no_text_are_not_lost_by_a_rewrite(root: Path):
    (root / ALICE).write_bytes(b"caf\xe9")
    files = run_files(root)

    assert files.read(ALICE, 1, 1) == "caf\ufffd"
    with pytest.raises(ToolError, match="read all of it"):
        files.write(ALICE, "caf\ufffd and more")


def test_an_edit_after_the_read_is_not_undone(root: Path):
    files = run_files(root)
    files.read(ALICE, 1, 2000)
    (root / ALICE).write_text("edited by a person")

    with pytest.raises(ToolError, match="read all of it"):
        files.write(ALICE, "by the run")

    assert (root / ALICE).read_text() == "edited by a person"


def test_an_edit_during_the_write_is_not_undone(root: Path, monkeypatch):
    files = run_files(root)
    files.read(ALICE, 1, 2000)
    real = folder_writing._write_new

    def write_while_edited(*arguments: object) -> None:
        real(*arguments)
        (root / ALICE).write_text("edited by a person")

    monkeypatch.setattr(folder_writing, "_write_new", write_while_edited)
    with pytest.raises(ToolError, match="changed by somebody else"):
        files.write(ALICE, "by the run")

    assert (root / ALICE).read_text() == "edited by a person"
    assert names_in(root / "wiki" / "people") == ["alice.md"]


def test_a_file_that_appears_during_the_write_is_not_replaced(root: Path, monkeypatch):
    real = folder_writing._write_new

    def write_while_created(*arguments: object) -> None:
        real(*arguments)
        (root / "wiki/bob.md").write_text("by a person")

    monkeypatch.setattr(folder_writing, "_write_new", write_while_created)
    with pytest.raises(ToolError, match="changed by somebody else"):
        run_files(root).write("wiki/bob.md", "by the run")

    assert (root / "wiki/bob.md").read_text() == "by a person"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd.md",
        "../outside.md",
        "wiki/../../outside.md",
        "wiki/./a.md",
        "wiki//a.md",
        "wiki/.hidden.md",
        "wiki/.git/a.md",
        "~/a.md",
        "wiki/a\0.md",
        "wiki/a\nb.md",
        "wiki\\..\\a.md",
        "wiki/a\udcff.md",
        "wiki/" + "x" * 300 + ".md",
        "wiki/ /a.md",
    ],
)
def test_a_path_that_could_lead_elsewhere_is_refused(root: Path, path: str):
    """FAULTS 86."""
    files = run_files(root, writable="**")

    for attempt in (
        lambda: files.read(path, 1, 1),
        lambda: files.write(path, "text"),
        lambda: files.listing(f"{path}/x"),
    ):
        with pytest.raises(ToolError):
            attempt()
    assert names_in(root.parent) == ["workspace"]


@pytest.mark.parametrize(
    "path", ["wiki/a.txt", "wiki/a.MD", "wiki/a.md.sh", "wiki/a", "wiki/a.markdown"]
)
def test_only_markdown_is_written(root: Path, path: str):
    with pytest.raises(ToolError, match=r"\.md"):
        run_files(root).write(path, "text")


@pytest.mark.parametrize("path", ["wikipedia.md", "notes/a.md", "Wiki/a.md", "a.md"])
def test_nothing_is_written_outside_of_the_writable_paths(root: Path, path: str):
    with pytest.raises(ToolError, match="outside"):
        run_files(root).write(path, "text")


@pytest.mark.parametrize("path", ["skills/memory/save.md", "Skills/x.md"])
def test_a_run_never_writes_handlers(root: Path, path: str):
    with pytest.raises(ToolError, match="handlers"):
        run_files(root, writable="**").write(path, "text")


@pytest.mark.parametrize("content", ["a\0b", "\ud800", " \n", ""])
def test_content_that_is_no_text_is_refused(root: Path, content: str):
    with pytest.raises(ToolError):
        run_files(root).write("wiki/a.md", content)

    assert not (root / "wiki/a.md").exists()


def test_links_lead_nowhere(root: Path):
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (root / "wiki" / "link.md").symlink_to(outside / "secret.md")
    (root / "wiki" / "folder").symlink_to(outside)
    (root / "wiki" / "dangling.md").symlink_to(outside / "new.md")
    files = run_files(root)

    for attempt in (
        lambda: files.read("wiki/link.md", 1, 9),
        lambda: files.write("wiki/link.md", "evil"),
        lambda: files.write("wiki/dangling.md", "evil"),
        lambda: files.write("wiki/folder/new.md", "evil"),
        lambda: files.listing("wiki/folder"),
    ):
        with pytest.raises(ToolError):
            attempt()
    assert names_in(outside) == ["secret.md"]
    assert (outside / "secret.md").read_text() == "secret"
    assert files.listing("wiki") == "wiki/people/"


def test_a_folder_swapped_for_a_link_after_the_check_leads_nowhere(root: Path, monkeypatch):
    outside = root.parent / "outside"
    outside.mkdir()
    real = module.replace

    def replace_after_swap(*arguments: object) -> None:
        (root / "wiki").rename(root / "wiki-before")
        (root / "wiki").symlink_to(outside)
        real(*arguments)

    monkeypatch.setattr(module, "replace", replace_after_swap)
    with pytest.raises(ToolError, match="cannot be written"):
        run_files(root).write("wiki/new.md", "evil")

    assert names_in(outside) == []


def test_what_is_no_regular_file_is_neither_read_nor_replaced(root: Path):
    os.mkfifo(root / "wiki" / "pipe.md")
    (root / "wiki" / "folder.md").mkdir()
    files = run_files(root)

    with pytest.raises(ToolError, match="not a regular file"):
        files.read("wiki/pipe.md", 1, 1)
    for path in ("wiki/pipe.md", "wiki/folder.md"):
        with pytest.raises(ToolError):
            files.write(path, "text")


def test_what_the_memory_excludes_a_run_does_not_see(root: Path):
    (root / "wiki" / "private").mkdir()
    (root / "wiki" / "private" / "a.md").write_text("secret")
    files = run_files(root, exclude=("wiki/private/**",))

    with pytest.raises(ToolError, match="excluded"):
        files.read("wiki/private/a.md", 1, 1)
    with pytest.raises(ToolError, match="excluded"):
        files.write("wiki/private/b.md", "text")
    assert files.listing("wiki") == "wiki/people/"


def test_a_folder_lists_its_markdown_files_and_folders(root: Path):
    (root / "wiki" / "a.txt").write_text("text")
    (root / "wiki" / ".b.md").write_text("text")
    (root / "wiki" / "c.md").write_text("text")

    assert run_files(root).listing("wiki/") == "wiki/c.md\nwiki/people/"
    assert run_files(root).listing("") == "wiki/"
    with pytest.raises(ToolError, match="cannot be listed"):
        run_files(root).listing("nowhere")


def test_the_spelling_of_an_existing_file_is_kept(root: Path):
    """SPEC W2: one file, not two that are equal in NFC."""
    decomposed = "wiki/cafe\u0301.md"
    (root / decomposed).write_text("old")
    files = run_files(root)
    files.read("wiki/caf\u00e9.md", 1, 9)

    files.write("wiki/caf\u00e9.md", "new")

    assert names_in(root / "wiki") == ["cafe\u0301.md", "people"]
    assert (root / decomposed).read_text() == "new"


def test_what_a_kill_left_behind_is_swept_with_the_next_write(root: Path):
    """FAULTS 7: its own pattern only."""
    folder = root / "wiki" / "people"
    for name in (".alice.md.0123abcd.tmp", ".alice.md.note.tmp", ".bob.md.0123abcd.tmp"):
        (folder / name).write_text("half")
    files = run_files(root)
    files.read(ALICE, 1, 9)

    files.write(ALICE, "new")

    assert names_in(folder) == [".alice.md.note.tmp", ".bob.md.0123abcd.tmp", "alice.md"]


@pytest.mark.parametrize("operation", ["write", "fsync", "rename"])
def test_a_disk_that_refuses_leaves_the_old_file_and_no_other(root: Path, monkeypatch, operation):
    """FAULTS 4-6."""
    files = run_files(root)
    files.read(ALICE, 1, 9)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder_writing.os, operation, refuse)
    with pytest.raises(ToolError, match="no space left on device"):
        files.write(ALICE, "new")
    monkeypatch.undo()

    assert (root / ALICE).read_text() == TEXT
    assert names_in(root / "wiki" / "people") == ["alice.md"]
    assert files.written == ()


def test_a_workspace_that_is_away_is_told(root: Path):
    files = run_files(root)
    root.rename(root.with_name("elsewhere"))

    for attempt in (
        lambda: files.read(ALICE, 1, 1),
        lambda: files.write("wiki/b.md", "text"),
        lambda: files.listing("wiki"),
    ):
        with pytest.raises(ToolError, match="cannot be"):
            attempt()
