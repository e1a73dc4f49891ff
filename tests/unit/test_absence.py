"""When is it believed that nothing is left of a workspace?"""

from __future__ import annotations

import pytest

from memory.absence import EMPTY, EMPTY_GRACE_S, MISSING, REMOVED_GRACE_S, Absence
from memory.messages import FileStamp, Scan, SkippedFile
from tests.unit.workspace_files import workspace

NOTHING = Scan((), ())
SOMETHING = Scan((FileStamp("a.md", "a.md", 1, 1, 1),), ())
KNOWN = ("a.md",)


def test_a_removed_root_is_doubted_for_its_grace():
    """FAULTS 23."""
    absence = Absence()
    moments = (0.0, REMOVED_GRACE_S - 1, REMOVED_GRACE_S, REMOVED_GRACE_S + 1)

    found = [absence.doubt(None, KNOWN, at, is_removed=True) for at in moments]

    assert found == [MISSING, MISSING, "", ""]


def test_a_root_that_cannot_be_reached_is_doubted_for_ever():
    """SPEC D6."""
    absence = Absence()

    for hour in range(1_000):
        assert absence.doubt(None, KNOWN, hour * 3600.0, is_removed=False) == MISSING


def test_the_grace_of_a_removal_begins_when_it_is_seen_to_be_one():
    absence = Absence()
    absence.doubt(None, KNOWN, 0, is_removed=True)
    absence.doubt(None, KNOWN, REMOVED_GRACE_S - 1, is_removed=False)

    assert absence.doubt(None, KNOWN, REMOVED_GRACE_S, is_removed=True) == MISSING


def test_an_empty_root_is_doubted_for_its_own_grace():
    """FAULTS 24: also if it was missing before."""
    absence = Absence()
    absence.doubt(None, KNOWN, 0, is_removed=True)
    begin = 100.0

    assert absence.doubt(NOTHING, KNOWN, begin, is_removed=False) == EMPTY
    assert absence.doubt(NOTHING, KNOWN, begin + EMPTY_GRACE_S - 1, is_removed=False) == EMPTY
    assert absence.doubt(NOTHING, KNOWN, begin + EMPTY_GRACE_S, is_removed=False) == ""


@pytest.mark.parametrize(
    ("scan", "known"),
    [
        (SOMETHING, KNOWN),
        (Scan((), (SkippedFile("b.md", "too large"),)), KNOWN),
        (NOTHING, ()),
    ],
)
def test_what_shows_that_the_workspace_is_there_ends_the_doubt(scan, known):
    absence = Absence()
    absence.doubt(NOTHING, KNOWN, 0, is_removed=False)

    assert absence.doubt(scan, known, EMPTY_GRACE_S / 2, is_removed=False) == ""
    assert absence.doubt(NOTHING, KNOWN, EMPTY_GRACE_S, is_removed=False) == EMPTY


def test_a_root_is_removed_only_if_the_folder_above_it_is_there(tmp_path):
    """FAULTS 23: what is away with everything around it is on a disk that is away."""
    root = tmp_path / "disk/notes"
    assert not workspace(root).is_removed()
    root.parent.mkdir()
    assert workspace(root).is_removed()
    root.mkdir()
    assert not workspace(root).is_removed()
    (tmp_path / "link").symlink_to(root)
    root.rmdir()
    assert workspace(tmp_path / "link").is_removed()
    root.parent.rmdir()
    assert not workspace(tmp_path / "link").is_removed()
