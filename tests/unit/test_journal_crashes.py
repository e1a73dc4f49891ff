"""Does every crash leave the journal, and the snapshot, with all that was promised?"""

from __future__ import annotations

import contextlib
import errno
import random
import subprocess
import sys
from pathlib import Path

import pytest

from memory.atomic_file import replace_atomically
from memory.errors import JournalUnusable
from memory.journal import JOURNAL_NAME, read_journal
from memory.journal_writer import JournalWriter
from tests.unit.crash_disk import CrashDisk, Killed, crash_images, put

IDENTITY = bytes(range(32))
SNAPSHOT = 10


def payload(revision: int, life: int = 0) -> bytes:
    """Returns a payload of 0 to 3 bytes, none of them zero."""
    return bytes([revision + 100 * life]) * (revision % 4)


class Owner:
    """Goes on after whatever the disk refuses, as the owner of an index does.

    The snapshots it saves are always durable. What it promises is the revision of the snapshot and
    the one up to which changes are durable.
    """

    def __init__(
        self, folder: Path, disk: CrashDisk, promised: tuple[int, int] = (SNAPSHOT, 0), life=0
    ) -> None:
        self.folder = folder
        self.disk = disk
        self.snapshot, self.durable = promised
        self.life = life
        self.open()
        self.applied = max(self.snapshot, self.writer.last_revision)

    def open(self) -> None:
        for _attempt in range(9):
            with contextlib.suppress(OSError):
                self.writer = JournalWriter(
                    self.folder, base=self.snapshot, identity=IDENTITY, disk=self.disk
                )
                break
        self.promise(0)

    def change(self) -> None:
        self.applied += 1
        for _attempt in range(9):
            with contextlib.suppress(OSError):
                self.writer.append(self.applied, payload(self.applied, self.life))
                return
            if self.writer.needs_snapshot:
                self.save()
                return
        raise AssertionError

    def sync(self) -> None:
        for _attempt in range(9):
            with contextlib.suppress(OSError):
                self.promise(self.writer.sync())
                return
            if self.writer.needs_snapshot:
                self.save(before=9)

    def save(self, before: int = 0) -> None:
        """Shortens the journal, after saving a snapshot of some revisions before the last.

        If that does not work, then with a snapshot of the last. Where the last snapshot is younger
        anyway, none is saved.
        """
        for behind in (before, *[0] * 9):
            self.snapshot = max(self.snapshot, self.applied - behind)
            self.promise(self.snapshot)
            with contextlib.suppress(OSError):
                self.writer.restart(self.snapshot)
                self.promise(self.writer.last_revision)
                return
        raise AssertionError

    def reopen(self) -> None:
        if self.writer.needs_snapshot:
            self.save()
        with contextlib.suppress(OSError):
            self.writer.close()
        self.open()

    def promise(self, durable: int) -> None:
        self.durable = max(self.durable, durable, self.snapshot)
        self.disk.promise((self.snapshot, self.durable))

    def live(self) -> None:
        """Does each thing at least once, with one to two changes between flushes."""
        self.change()
        self.sync()
        self.change()
        self.change()
        self.sync()
        self.change()
        self.save(before=1)
        self.change()
        self.reopen()
        self.change()
        self.sync()
        self.save()
        self.change()


def promised_by(disk: CrashDisk) -> tuple[int, int]:
    promises = [o.value for o in disk.operations if o.kind == "promise"]
    return promises[-1] if promises else (SNAPSHOT, 0)


def problem_of(
    content: bytes | None, promise: tuple[int, int] | None, kept: int, path: Path
) -> str:
    """Returns what is wrong with a journal that a crash left, empty if nothing is.

    Args:
        content: Of the file.
        promise: Of an Owner.
        kept: Revisions up to this one were written in the first life, those above in the second.
        path: To put it.
    """
    snapshot, durable = promise or (SNAPSHOT, 0)
    if content is None:
        return "" if snapshot >= durable else "missing"
    path.write_bytes(content)
    try:
        journal = read_journal(path, identity=IDENTITY)
    except JournalUnusable as error:
        return str(error)
    revisions = range(journal.base + 1, journal.last_revision + 1)
    if [(record.revision, bytes(record.payload)) for record in journal.records] != [
        (revision, payload(revision, life=int(revision > kept))) for revision in revisions
    ]:
        return "not a prefix of what was written"
    if journal.base > snapshot:
        return "starts behind the snapshot"
    return "" if max(journal.last_revision, snapshot) >= durable else "lost what was promised"


class Examiner:
    """Looks at every image of a disk, at each content once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "image"
        self.num_images = 0
        self.problems: dict[tuple, str] = {}

    def look_at(self, disk: CrashDisk, *, since: int = 0, kept: int = 99) -> None:
        disk.reap()
        for image in crash_images(disk, since=since):
            self.num_images += 1
            case = (image.files.get(JOURNAL_NAME), image.promise, kept)
            if case not in self.problems:
                self.problems[case] = problem_of(*case, self.path)

    def found(self) -> list[str]:
        return sorted(filter(None, self.problems.values()))


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def examiner(tmp_path):
    return Examiner(tmp_path)


def test_every_crash_leaves_a_prefix_with_everything_promised(home, examiner):
    """FAULTS 1 to 3."""
    disk = CrashDisk(home)
    Owner(home, disk).live()
    examiner.look_at(disk)

    assert examiner.found() == []
    assert examiner.num_images > 1000


@pytest.mark.parametrize("lie", ["fsync", "fdatasync", "fsync_folder"])
def test_the_images_show_a_flush_that_is_missing(home, tmp_path, lie):
    disk = CrashDisk(home, lies={lie})
    Owner(home, disk).live()
    disk.reap()

    assert any(
        problem_of(image.files.get(JOURNAL_NAME), image.promise, 99, tmp_path / "image")
        for image in crash_images(disk)
    )


@pytest.mark.slow
def test_a_journal_is_continued_after_every_crash(home, tmp_path):
    """FAULTS 1 to 3 and 7: the next start cuts the tail off, sweeps and goes on."""
    disk = CrashDisk(home)
    Owner(home, disk).live()
    images = list(crash_images(disk))
    for number, image in enumerate(images):
        folder = tmp_path / str(number)
        folder.mkdir()
        put(folder, image)
        disk = CrashDisk(folder)
        owner = Owner(folder, disk, image.promise or (SNAPSHOT, 0), life=1)
        kept = owner.applied
        owner.change()
        owner.writer.close()

        content = (folder / JOURNAL_NAME).read_bytes()
        assert problem_of(content, (owner.snapshot, kept + 1), kept, folder / "copy") == ""
        assert sorted(path.name for path in folder.iterdir()) == ["copy", JOURNAL_NAME]

    assert len(images) > 1000


@pytest.mark.slow
def test_a_power_loss_after_a_kill_and_a_start_loses_nothing_promised(tmp_path, examiner):
    """FAULTS 2: at every operation, a write half done."""
    killed_at = 0
    while True:
        folder = tmp_path / str(killed_at)
        folder.mkdir()
        disk = CrashDisk(folder, killed_at=killed_at)
        try:
            Owner(folder, disk).live()
            break
        except Killed:
            disk.reap()
        disk.killed_at = None
        since = len(disk.operations)
        owner = Owner(folder, disk, promised_by(disk), life=1)
        kept = owner.applied
        owner.change()
        owner.sync()
        owner.change()
        owner.save(before=1)
        examiner.look_at(disk, since=since, kept=kept)
        killed_at += 1

    assert examiner.found() == []
    assert killed_at > 40
    assert examiner.num_images > 30_000


@pytest.mark.slow
@pytest.mark.parametrize("drops_pages", [False, True])
@pytest.mark.parametrize("num_failures", [1, 2, 3])
def test_every_crash_after_any_failure_leaves_everything_promised(
    tmp_path, examiner, num_failures, drops_pages
):
    """FAULTS 4 and 5."""
    first = 0
    while True:
        folder = tmp_path / str(first)
        folder.mkdir()
        failing = range(first, first + num_failures)
        disk = CrashDisk(folder, failing=failing, error=errno.ENOSPC, drops_pages=drops_pages)
        owner = Owner(folder, disk)
        owner.live()
        if disk.num_calls <= first:
            break
        examiner.look_at(disk)
        journal = read_journal(folder / JOURNAL_NAME, identity=IDENTITY)

        assert journal.last_revision == owner.applied
        first += 1

    assert examiner.found() == []
    assert first > 40
    assert examiner.num_images > 70_000


@pytest.mark.parametrize("old", [b"old snapshot", None])
def test_every_crash_of_a_replacement_leaves_the_old_or_the_new_file(tmp_path, old):
    """FAULTS 1 to 3."""
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)
    disk = CrashDisk(tmp_path)
    disk.promise(old)
    since = len(disk.operations)
    replace_atomically(path, (b"new ", b"snapshot, longer"), disk)
    disk.promise(b"new snapshot, longer")
    images = list(crash_images(disk, since=since))
    left = {(image.files.get("file"), image.promise) for image in images}

    assert left == {
        (old, old),
        (b"new snapshot, longer", old),
        (b"new snapshot, longer", b"new snapshot, longer"),
    }
    assert len(images) > 100


@pytest.mark.parametrize("lie", ["fsync", "fsync_folder"])
def test_the_images_show_that_a_replacement_was_not_flushed(tmp_path, lie):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    disk = CrashDisk(tmp_path, lies={lie})
    replace_atomically(path, (b"new",), disk)
    disk.promise(b"new")

    left = {(image.files.get("file"), image.promise) for image in crash_images(disk)}
    assert left - {(b"old", None), (b"new", None), (b"new", b"new")}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_replacement_that_fails_at_any_operation_leaves_a_whole_file(tmp_path, error):
    """FAULTS 4 to 6; the flush of the folder and the closing come after the rename."""
    left = []
    for failing in range(7):
        folder = tmp_path / str(failing)
        folder.mkdir()
        (folder / "file").write_bytes(b"old")
        disk = CrashDisk(folder, failing={failing}, error=error)
        with pytest.raises(OSError, match=r"(?i)input/output|space left") as raised:
            replace_atomically(folder / "file", (b"new ", b"snapshot"), disk)

        assert raised.value.errno == error
        assert [path.name for path in folder.iterdir()] == ["file"]
        left.append((folder / "file").read_bytes())

    assert left == [b"old"] * 5 + [b"new snapshot"] * 2


CHILD = """
import sys
from pathlib import Path
from memory.journal_writer import JournalWriter

writer = JournalWriter(Path(sys.argv[1]), base=0, identity=bytes(32))
revision = writer.last_revision
while True:
    for revision in range(revision + 1, revision + 4):
        writer.append(revision, revision.to_bytes(4, "big") * 100)
    print(writer.sync(), flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_loses_nothing_it_had_synced(tmp_path):
    """FAULTS 1: 20 kills of one journal, each after a random number of syncs."""
    chance = random.Random(7)
    root = str(Path(__file__).parents[2])
    last = 0
    for _kill in range(20):
        command = [sys.executable, "-c", CHILD, str(tmp_path)]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
            for _sync in range(chance.randrange(1, 20)):
                child.stdout.readline()
            child.kill()
            # What it could still say before the kill counts; half a line does not.
            last = max([last, *map(int, child.stdout.read().split("\n")[:-1])])
        journal = read_journal(tmp_path / JOURNAL_NAME, identity=bytes(32))
        read = [(record.revision, bytes(record.payload)) for record in journal.records]

        assert journal.last_revision >= last
        assert read == [
            (revision, revision.to_bytes(4, "big") * 100)
            for revision in range(1, journal.last_revision + 1)
        ]
        last = journal.last_revision

    assert last > 60
