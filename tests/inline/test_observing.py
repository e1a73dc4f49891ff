"""What watchdog does not tell, and how it is found out."""

from __future__ import annotations

import ctypes
import errno
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from watchdog.observers import inotify_c

from actors import observing
from actors.observing import start_observing
from memory.globs import Globs
from memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from actors.observing import Observing

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="about inotify"),
    pytest.mark.timeout(30),
]

PATIENCE_S = 10.0


class Ears:
    """Starts observers, notes what they tell, and ends them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.overflows = 0
        self._running: list[Observing] = []

    def listen(self, root: Path) -> Observing | None:
        watching = start_observing(root, self._on_paths, self._on_overflow)
        if watching is not None:
            self._running.append(watching)
        return watching

    def stop(self) -> None:
        for watching in self._running:
            watching.stop()

    def _on_paths(self, paths: tuple[str, ...], _is_directory: bool) -> None:
        self.paths += paths

    def _on_overflow(self) -> None:
        self.overflows += 1


@pytest.fixture
def ears() -> Iterator[Ears]:
    threads = threading.active_count()
    ears = Ears()
    yield ears
    ears.stop()
    eventually(lambda: threading.active_count() == threads)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        time.sleep(0.02)


def lacking(number: int) -> Callable[..., int]:
    """Returns a system call that fails."""

    def call(*_arguments: object) -> int:
        ctypes.set_errno(number)
        return -1

    return call


def test_a_root_that_is_a_symbolic_link_is_followed(tmp_path: Path, ears: Ears):
    """watchdog would watch the link, and never hear of the files right below it."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to("notes")
    watching = ears.listen(tmp_path / "link")
    (tmp_path / "notes/a.md").write_text("# A\n")

    eventually(lambda: "a.md" in ears.paths)
    assert watching is not None
    (tmp_path / "others").mkdir()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("others")
    assert not watching.is_healthy()


def test_polling_sees_changes_and_is_not_caught_in_a_loop_of_links(
    tmp_path: Path, ears: Ears, monkeypatch
):
    """FAULTS 31: three links to the parent are 3 ** 40 folders for who follows them."""
    monkeypatch.setattr(observing, "POLL_S", 0.05)
    monkeypatch.setattr(inotify_c, "inotify_init", lacking(errno.EMFILE))
    for name in ("x", "y", "z"):
        (tmp_path / name).symlink_to("..")
    watching = ears.listen(tmp_path)
    (tmp_path / "a.md").write_text("# A\n")

    eventually(lambda: "a.md" in ears.paths)
    assert watching is not None
    assert watching.mode == "polling"
    assert watching.is_healthy()


def test_a_kernel_without_instances_left_is_polled(tmp_path: Path, ears: Ears, monkeypatch, caplog):
    """FAULTS 21: inotify_init says EMFILE as soon as an observer is made."""
    monkeypatch.setattr(inotify_c, "inotify_init", lacking(errno.EMFILE))

    watching = ears.listen(tmp_path)

    assert watching is not None
    assert watching.mode == "polling"
    assert "max_user_instances" in caplog.text


@pytest.mark.parametrize("num_watches", [0, 1, 2])
def test_a_folder_without_a_watch_lets_the_workspace_be_polled(
    tmp_path: Path, ears: Ears, monkeypatch, num_watches: int
):
    """FAULTS 21: watchdog tells only of the root; other folders it would leave out silently."""
    real, given = inotify_c.inotify_add_watch, []

    def limited(*arguments: object) -> int:
        given.append(1)
        return real(*arguments) if len(given) <= num_watches else lacking(errno.ENOSPC)()

    monkeypatch.setattr(inotify_c, "inotify_add_watch", limited)
    (tmp_path / "wiki/people").mkdir(parents=True)

    watching = ears.listen(tmp_path)

    assert watching is not None
    assert watching.mode == "polling"


def test_a_network_mount_is_polled_and_changes_are_seen(
    tmp_path: Path, ears: Ears, monkeypatch, caplog
):
    """FAULTS 37: the kernel tells nothing of what another machine changes."""
    root = tmp_path / "my notes"
    root.mkdir()
    point = str(root).replace(" ", r"\040")
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(f"27 1 254:0 / / rw - ext4 a rw\n36 27 0:45 / {point} rw - nfs4 b rw\n")
    monkeypatch.setattr(observing, "MOUNTINFO", mountinfo)
    monkeypatch.setattr(observing, "POLL_S", 0.05)
    (tmp_path / "link").symlink_to(root)

    with caplog.at_level(logging.INFO):
        watching = ears.listen(tmp_path / "link")
    (root / "a.md").write_text("# A\n")

    eventually(lambda: "a.md" in ears.paths)
    assert watching is not None
    assert watching.mode == "polling"
    assert watching.is_healthy()
    polled = [record for record in caplog.records if "polling" in record.getMessage()]
    assert len(polled) == 1
    assert f"{root} is a network file system (nfs4)" in caplog.text


@pytest.mark.parametrize("text", [None, "27 1 254:0 / / rw - ext4 a rw\n"])
def test_a_local_or_unknown_file_system_is_watched(
    tmp_path: Path, ears: Ears, monkeypatch, text: str | None
):
    mountinfo = tmp_path / "mountinfo"
    if text is not None:
        mountinfo.write_text(text)
    monkeypatch.setattr(observing, "MOUNTINFO", mountinfo)

    watching = ears.listen(tmp_path)

    assert watching is not None
    assert watching.mode == "events"


def test_enough_watches_are_used_and_the_spare_one_is_given_back(tmp_path: Path, ears: Ears):
    watching = ears.listen(tmp_path)

    assert watching is not None
    assert watching.mode == "events"
    assert len(watching._observer.emitters) == 1


def test_asking_for_a_missing_root_again_and_again_costs_no_thread(tmp_path: Path, ears: Ears):
    """FAULTS 23: the Watcher asks each second, and a user has 128 inotify instances."""
    before = threading.active_count()

    for _second in range(20):
        assert ears.listen(tmp_path / "missing") is None

    assert threading.active_count() == before


def test_a_root_that_vanishes_during_the_start_costs_no_thread(
    tmp_path: Path, ears: Ears, monkeypatch
):
    before = threading.active_count()
    monkeypatch.setattr(inotify_c, "inotify_add_watch", lacking(errno.ENOENT))

    assert ears.listen(tmp_path) is None
    assert threading.active_count() == before


def test_a_root_replaced_during_the_start_is_not_taken_for_the_watched_one(
    tmp_path: Path, ears: Ears, monkeypatch
):
    root = tmp_path / "notes"
    root.mkdir()

    class Slow(observing.Observer):  # type: ignore[misc,valid-type]
        def start(self) -> None:
            super().start()
            root.rename(tmp_path / "old")
            root.mkdir()

    monkeypatch.setattr(observing, "Observer", Slow)

    watching = ears.listen(root)

    assert watching is not None
    assert not watching.is_healthy()


def test_a_dead_reader_of_the_kernels_queue_is_noticed(tmp_path: Path, ears: Ears):
    """FAULTS 22: observer and emitter live on, and nothing is ever heard again."""
    watching = ears.listen(tmp_path)
    assert watching is not None
    assert watching.is_healthy()
    reader = watching._observer._inotify_fd

    reader.stop()
    reader.join()

    assert not watching.is_healthy()


def overflow(watching: Observing) -> None:
    """Lets watchdog's own code find the kernel's overflow record."""
    mask = inotify_c.InotifyConstants.IN_Q_OVERFLOW
    watching._observer._inotify_fd.handle_event(inotify_c.InotifyEvent(-1, mask, 0, b""))


def test_each_overflow_is_heard_once_and_calls_for_another_observer(tmp_path: Path, ears: Ears):
    """FAULTS 20: watchdog logs two lines for it, and is deaf while it watches everything anew."""
    watching = ears.listen(tmp_path)
    assert watching is not None
    assert watching.is_healthy()

    overflow(watching)
    overflow(watching)

    assert ears.overflows == 2
    assert not watching.is_healthy()


def test_what_is_merely_read_is_not_even_told_by_the_kernel(tmp_path: Path, ears: Ears):
    """FAULTS 30: a scan of many folders would fill its queue, and so make itself be repeated."""
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki/a.md").write_text("# A\n")
    watching = ears.listen(tmp_path)
    assert watching is not None
    told: list[inotify_c.InotifyEvent] = []
    reader = watching._observer._inotify_fd
    handle = reader.handle_event
    reader.handle_event = lambda event: (told.append(event), handle(event))

    Workspace(tmp_path, exclude=Globs()).scan()
    (tmp_path / "wiki/a.md").read_text()
    (tmp_path / "last.md").touch()
    eventually(lambda: "last.md" in ears.paths)

    assert {event.name for event in told} == {b"last.md"}


def test_nothing_is_heard_after_the_end(tmp_path: Path, ears: Ears):
    watching = ears.listen(tmp_path)
    assert watching is not None
    watching.stop()

    logging.getLogger("watchdog.observers.inotify_c").warning("filesystem events were lost")

    assert ears.overflows == 0
    assert not watching.is_healthy()


def test_a_folder_whose_name_was_given_again_keeps_nothing_open_at_the_end(
    tmp_path: Path, ears: Ears
):
    """watchdog loses count of it, and would leave its threads and its inotify instance behind."""
    root, outside = tmp_path / "notes", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    watching = ears.listen(root)
    assert watching is not None
    reader = watching._observer._inotify_fd
    (root / "a").rename(outside)  # its watch stays, under its name
    (root / "a").mkdir()
    (root / "a" / "first.md").touch()
    eventually(lambda: "a/first.md" in ears.paths)
    (root / "a").rename(root / "b")
    (root / "b" / "second.md").touch()
    eventually(lambda: "b/second.md" in ears.paths)
    emitters = list(watching._observer.emitters)

    watching.stop()

    assert not reader.is_alive()
    assert not any(emitter.is_alive() for emitter in emitters)


def test_a_broken_listener_of_overflows_does_not_end_watchdogs_thread(tmp_path: Path, capsys):
    """An actor's event loop may be closed already."""

    def broken() -> None:
        raise RuntimeError("Event loop is closed")

    watching = start_observing(tmp_path, lambda *_: None, broken)
    assert watching is not None

    overflow(watching)

    assert watching._observer._inotify_fd.is_alive()
    watching.stop()
    assert "Event loop is closed" in capsys.readouterr().err
