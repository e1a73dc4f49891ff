"""Whatever an index says wrongly of the files is found, and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from memory.checking import HeldIndex, Patience, check_files
from memory.errors import WorkspaceMissing
from memory.messages import FileUpdate
from tests.doubles import HashEmbedder
from tests.unit.building import new_index
from tests.unit.indexed_files import LIMITS, checked, index_path, indexed, parsed_now
from tests.unit.workspace_files import Moving, Refusing, workspace, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memory.index import MemoryIndex

TEXT = b"---\ntitle: T\n---\n# A\n\nFirst.\n\n## B\n\nSecond.\n"


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.md", "wiki/b.md", "c.md"):
        write(tmp_path, name, TEXT + name.encode())
    write(tmp_path, "blank.md", b"")
    return tmp_path


def kinds(root: Path, index: MemoryIndex) -> list[tuple[str, str]]:
    return [(each.kind, each.path) for each in checked(root, index).differences]


def test_an_index_of_the_files_has_no_difference(root: Path, embedder: HashEmbedder):
    report = checked(root, indexed(root, embedder))

    assert report.differences == []
    assert (report.num_files, report.num_chunks) == (4, 6)
    assert report.equal == ["a.md", "blank.md", "c.md", "wiki/b.md"]


def test_a_file_without_a_record_and_a_record_without_a_file_are_named(
    root: Path, embedder: HashEmbedder
):
    index = indexed(root, embedder)
    write(root, "new.md")
    (root / "c.md").unlink()

    assert kinds(root, index) == [("extra", "c.md"), ("missing", "new.md")]


def test_a_file_that_is_no_longer_indexable_must_have_gone(root: Path, embedder: HashEmbedder):
    index = indexed(root, embedder)
    write(root, "a.md", b"binary \0")

    (difference,) = checked(root, index).differences
    assert (difference.kind, difference.path) == ("extra", "a.md")
    assert "binary" in difference.detail


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (TEXT.replace(b"Second", b"Zecond") + b"a.md", "content"),
        (TEXT.replace(b"title: T", b"title: U") + b"a.md", "front matter"),
        (TEXT.replace(b"\n## B", b"## B\n") + b"a.md", "line"),
    ],
)
def test_a_change_that_no_stamp_shows_is_found(
    root: Path, embedder: HashEmbedder, text: bytes, named: str
):
    """FAULTS 39: same size, same time, same inode."""
    index = indexed(root, embedder)
    before = (root / "a.md").stat()
    with (root / "a.md").open("r+b") as file:
        file.write(text)
    os.utime(root / "a.md", ns=(before.st_mtime_ns, before.st_mtime_ns))

    (difference,) = checked(root, index).differences
    assert (difference.kind, difference.path) == ("stale", "a.md")
    assert named in difference.detail
    assert "time" not in difference.detail


def test_what_could_not_be_looked_into_is_no_difference(root: Path, embedder: HashEmbedder):
    index = indexed(root, embedder)
    hidden = Refusing("wiki", PermissionError(13, "Permission denied"))

    report = check_files(workspace(root, file_system=hidden), LIMITS, HeldIndex(index))

    assert report.differences == []


def test_a_missing_workspace_is_not_an_empty_one(tmp_path: Path, embedder: HashEmbedder):
    index = indexed(tmp_path, embedder)

    with pytest.raises(WorkspaceMissing):
        checked(tmp_path / "missing", index)


def test_a_file_that_changes_during_the_check_is_no_difference(root: Path, embedder: HashEmbedder):
    index = indexed(root, embedder)
    moving = Moving(root / "a.md", 4)  # three attempts of the first read, one of the second

    report = check_files(workspace(root, file_system=moving), LIMITS, HeldIndex(index))

    assert report.differences == []
    assert report.unsettled == ["a.md"]


@dataclass
class Following:
    """A clock, and a daemon that indexes a file some time after its change."""

    act: dict[float, Callable[[], object]] = field(default_factory=dict)
    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        for due in [due for due in self.act if due <= self.seconds]:
            self.act.pop(due)()

    def patience(self) -> Patience:
        return Patience(30.0, self.now, self.sleep)


def test_what_a_daemon_indexes_meanwhile_is_waited_for(root: Path, embedder: HashEmbedder):
    index = indexed(root, embedder)
    write(root, "new.md", b"# New\n")
    (root / "c.md").unlink()
    time = Following(
        {
            3.0: lambda: index_path(index, root, "new.md", embedder),
            7.0: lambda: index.apply(FileUpdate("c.md", None)),
        }
    )

    report = check_files(workspace(root), LIMITS, HeldIndex(index), time.patience())

    assert report.differences == []
    assert 7 <= time.seconds < 12


def test_what_a_daemon_never_indexes_is_a_difference_after_a_bounded_time(
    root: Path, embedder: HashEmbedder
):
    index = indexed(root, embedder)
    write(root, "new.md", b"# New\n")
    time = Following()

    report = check_files(workspace(root), LIMITS, HeldIndex(index), time.patience())

    assert [each.path for each in report.differences] == ["new.md"]
    assert 30 <= time.seconds < 33


def test_nobody_waits_where_the_index_takes_a_file_to_be_as_it_is(
    root: Path, embedder: HashEmbedder
):
    index = indexed(root, embedder)
    wrong = replace(parsed_now(root, "a.md"), chunks=())
    index.apply(FileUpdate("a.md", wrong))
    time = Following()

    report = check_files(workspace(root), LIMITS, HeldIndex(index), time.patience())

    assert [each.path for each in report.differences] == ["a.md"]
    assert time.seconds == 0


def test_a_file_that_is_written_all_the_time_proves_nothing(root: Path, embedder: HashEmbedder):
    index = indexed(root, embedder)
    time = Following()
    time.act = {
        float(second): lambda second=second: write(root, "a.md", TEXT * (second + 2))
        for second in range(32)
    }
    write(root, "a.md", TEXT * 50)

    report = check_files(workspace(root), LIMITS, HeldIndex(index), time.patience())

    assert (report.differences, report.unsettled) == ([], ["a.md"])


def test_pages_leave_no_file_out(tmp_path: Path, embedder: HashEmbedder, monkeypatch):
    monkeypatch.setattr("memory.inspection.MAX_PAGE_CHUNKS", 3)
    for number in range(7):
        write(tmp_path, f"{number}.md", b"".join(b"# H%d\n\nT\n" % n for n in range(number)))
    index = indexed(tmp_path, embedder)
    pages, after = [], ""
    while (page := index.inspect(after=after)).records:
        pages.append([record.path for record in page.records])
        after = page.records[-1].path

    assert [path for page in pages for path in page] == [f"{number}.md" for number in range(7)]
    assert pages[0] == ["0.md", "1.md", "2.md"]
    assert ["6.md"] in pages
    assert checked(tmp_path, index).differences == []


def test_the_counts_are_those_of_the_end(root: Path, embedder: HashEmbedder):
    """A daemon that has just begun knew nothing at the first look."""
    source = HeldIndex(new_index(embedder))

    def sleep(_seconds: float) -> None:
        source._index = indexed(root, embedder)

    patience = Patience(wait_s=10.0, sleep=sleep)
    report = check_files(workspace(root), LIMITS, source, patience)

    assert report.differences == []
    assert (report.num_files, report.num_chunks) == (4, 6)
