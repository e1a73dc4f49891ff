"""How do disk and index differ?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.messages import FileEvent, FileStamp, FileSummary, Scan
from memory.reconcile import KnownFiles, by_urgency, changes


def stamp(path: str, *, mtime_ns: int = 1_000_000_001, size: int = 3, inode: int = 9) -> FileStamp:
    return FileStamp(path, path, mtime_ns, size, inode)


def known(path: str, *, mtime_ns: int = 1_000_000_001, size: int = 3) -> FileSummary:
    return FileSummary(path, path, mtime_ns, size, 9, 1, "", "")


def scan(*stamps: FileStamp, unreadable: tuple[str, ...] = ()) -> Scan:
    return Scan(stamps, (), unreadable)


def test_equal_stamps_need_no_work():
    assert changes(scan(stamp("a"), stamp("b")), [known("a"), known("b")]) == ()


def test_new_and_changed_files_are_events_and_vanished_ones_come_last():
    """FAULTS 28: a file under its new name takes the vectors of the old one while it has them."""
    found = changes(
        scan(stamp("changed", size=4), stamp("new"), stamp("same")),
        [known("vanished"), known("a vanished"), known("changed"), known("same")],
    )

    events = [event.raw_path for event in found]
    assert events == ["changed", "new", "a vanished", "vanished"]


@pytest.mark.parametrize(
    "moved", [{"mtime_ns": 5}, {"size": 4}, {"inode": 10}, {"raw_path": "cafe\u0301"}]
)
def test_each_part_of_a_stamp_counts(moved):
    on_disk = replace(stamp("caf\u00e9"), **moved)

    assert changes(scan(on_disk), [known("caf\u00e9")]) == (FileEvent(on_disk.raw_path),)


def test_the_event_carries_the_spelling_of_the_disk():
    on_disk = FileStamp("caf\u00e9.md", "cafe\u0301.md", 1, 1, 1)

    assert changes(scan(on_disk), []) == (FileEvent("cafe\u0301.md"),)


def test_what_lies_below_something_unreadable_has_not_vanished():
    """FAULTS 33."""
    index = [known("private/a.md"), known("private"), known("privateer.md"), known("other.md")]

    found = changes(scan(unreadable=("private",)), index)

    assert found == (FileEvent("other.md"), FileEvent("privateer.md"))


def test_an_unreadable_root_hides_everything():
    assert changes(scan(unreadable=("",)), [known("a.md"), known("b/c.md")]) == ()


def test_files_that_are_to_be_read_again_are_events_although_their_stamps_are_equal():
    """FAULTS 39."""
    index = [known("doubted"), known("trusted")]

    found = changes(scan(stamp("doubted"), stamp("trusted")), index, reread={"doubted", "gone"})

    assert found == (FileEvent("doubted"),)


def test_what_answers_do_not_show_goes_before_what_is_only_built_anew():
    disk = scan(stamp("edited", mtime_ns=9), stamp("new"), stamp("same"))
    old = (known("edited"), known("gone"), known("same"))

    missed, rest = by_urgency(disk, KnownFiles(newest=(), old=old))

    assert [event.raw_path for event in missed] == ["edited", "new", "gone"]
    assert [event.raw_path for event in rest] == ["same"]


def test_what_the_newest_index_holds_is_not_looked_at_again_for_the_sake_of_the_old_one():
    """An index of another model has no vector of it and never follows."""
    disk = scan(stamp("edited", mtime_ns=9), stamp("new"))
    newest = (known("edited", mtime_ns=9), known("new"))

    assert by_urgency(disk, KnownFiles(newest, (known("edited"),))) == ((), ())


def test_a_file_that_only_the_newest_index_knows_and_that_is_gone_is_removed_from_it():
    missed, rest = by_urgency(scan(), KnownFiles((known("gone"),), (known("gone too"),)))

    assert missed == (FileEvent("gone too"),)
    assert rest == (FileEvent("gone"),)


def test_without_a_second_index_everything_is_missed():
    disk, index = scan(stamp("a"), stamp("b")), (known("b"), known("c"))

    assert by_urgency(disk, KnownFiles(index)) == (changes(disk, index), ())
