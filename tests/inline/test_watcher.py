"""Real file-system events become hints; nothing is lost when the watching breaks."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from ray.exceptions import ActorUnavailableError
from watchdog.observers.polling import PollingObserver

from actors import observing
from actors import watcher as watcher_module
from actors.observing import start_observing
from actors.watcher import MAX_HINTS, Watcher
from tests.inline.handles import InlineHandle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from memory.messages import FileEvent

PATIENCE_S = 20.0


@dataclass
class FakeChunker:
    """Notes what it is told; can be unreachable."""

    paths: list[str] = field(default_factory=list)
    rescans: int = 0
    is_down: bool = False

    async def notice(self, events: tuple[FileEvent, ...], rescan: bool) -> None:
        if self.is_down:
            raise ActorUnavailableError("restarting", b"0" * 16)
        self.paths += [event.raw_path for event in events]
        self.rescans += rescan

    def forget(self) -> None:
        self.paths.clear()
        self.rescans = 0


@dataclass
class Watched:
    root: Path
    chunker: FakeChunker
    watcher: Watcher

    def write(self, path: str, text: str = "# A\n") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        await asyncio.sleep(0.02)


async def is_quiet(watched: Watched) -> None:
    """Writes a last file and waits for its hint: everything before it has arrived."""
    watched.write("last.md")
    await eventually(lambda: "last.md" in watched.chunker.paths)


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    root = tmp_path / "workspace"
    root.mkdir()
    chunker = FakeChunker()
    watcher = Watcher(root, InlineHandle(chunker))
    await eventually(lambda: chunker.rescans > 0 and watcher._observing is not None)
    await is_quiet(Watched(root, chunker, watcher))
    chunker.forget()
    yield Watched(root, chunker, watcher)
    await watcher.stop()


async def test_a_fresh_watcher_asks_for_a_rescan_once_it_listens(tmp_path: Path):
    chunker = FakeChunker()
    watcher = Watcher(tmp_path, InlineHandle(chunker))

    await eventually(lambda: chunker.rescans > 0)
    await eventually(lambda: watcher._observing is not None)
    assert (await watcher.status()).mode == "events"
    await watcher.stop()


async def test_plain_and_atomic_saves_name_the_file_and_never_the_temporary(watched: Watched):
    """FAULTS 25."""
    watched.write("plain.md")
    temporary = watched.write(".b.md.tmp")
    temporary.rename(watched.root / "atomic.md")
    outside = watched.root.parent / "c.md"
    outside.write_text("# C\n")
    outside.rename(watched.root / "moved-in.md")
    await is_quiet(watched)

    assert set(watched.chunker.paths) == {"plain.md", "atomic.md", "moved-in.md", "last.md"}


async def test_a_save_through_a_backup_names_the_file_and_never_the_backup(watched: Watched):
    """FAULTS 25: as vim does with ``backupcopy=no``."""
    path = watched.write("a.md")
    await is_quiet(watched)
    watched.chunker.forget()
    path.rename(watched.root / "a.md~")
    watched.write("a.md", "# Saved\n")
    (watched.root / "a.md~").unlink()
    await is_quiet(watched)

    assert set(watched.chunker.paths) == {"a.md", "last.md"}
    assert watched.chunker.rescans == 0


async def test_renamed_and_removed_files_are_named(watched: Watched):
    watched.write("old.md")
    await is_quiet(watched)
    watched.chunker.forget()
    (watched.root / "old.md").rename(watched.root / "new.md")
    (watched.root / "last.md").unlink()

    await eventually(lambda: {"old.md", "new.md", "last.md"} <= set(watched.chunker.paths))


@pytest.mark.parametrize("change", ["rename", "move out", "move in", "remove"])
async def test_a_change_of_a_folder_asks_for_a_rescan(watched: Watched, change: str):
    """FAULTS 28, 29: the events of its files cannot be trusted."""
    watched.write("folder/a.md")
    outside = watched.root.parent / "outside"
    if change == "move in":
        (watched.root / "folder").rename(outside)
    await is_quiet(watched)
    await eventually(lambda: watched.chunker.rescans > 0)
    watched.chunker.forget()

    match change:
        case "rename":
            (watched.root / "folder").rename(watched.root / "renamed")
        case "move out":
            (watched.root / "folder").rename(outside)
        case "move in":
            outside.rename(watched.root / "folder")
        case _:
            shutil.rmtree(watched.root / "folder")

    await eventually(lambda: watched.chunker.rescans > 0)


async def test_folders_that_are_never_indexed_cost_no_rescan(watched: Watched):
    """Each commit makes folders below ``.git``."""
    (watched.root / ".git/objects/0b").mkdir(parents=True)
    shutil.rmtree(watched.root / ".git/objects")
    await is_quiet(watched)
    assert watched.chunker.rescans == 0

    (watched.root / ".git").rename(watched.root / "visible")
    await eventually(lambda: watched.chunker.rescans > 0)


async def test_reading_and_foreign_files_raise_no_hint(watched: Watched):
    """FAULTS 30."""
    path = watched.write("a.md")
    await is_quiet(watched)
    watched.chunker.forget()
    path.read_text()
    watched.write("b.txt")
    watched.write(".hidden.md")
    await is_quiet(watched)

    assert set(watched.chunker.paths) == {"last.md"}


async def test_a_name_that_is_no_unicode_does_no_harm(watched: Watched):
    """FAULTS 34."""
    (watched.root / os.fsdecode(b"caf\xe9.md")).write_text("# A\n")
    await is_quiet(watched)

    assert {"caf\udce9.md", "last.md"} >= set(watched.chunker.paths)


async def test_a_root_that_is_deleted_and_made_again_is_watched_again(watched: Watched):
    """FAULTS 22, 23: watchdog itself would stay deaf for ever."""
    shutil.rmtree(watched.root)
    await eventually(lambda: watched.watcher._observing is None)
    watched.root.mkdir()
    watched.chunker.forget()

    await eventually(lambda: watched.watcher._observing is not None)
    await eventually(lambda: watched.chunker.rescans > 0)
    await is_quiet(watched)
    assert (await watched.watcher.status()).num_restarts == 1


async def test_a_root_that_is_moved_away_is_told_at_once(watched: Watched):
    """FAULTS 23: the kernel tells nothing of it, and there is nothing to observe any more."""
    watched.root.rename(watched.root.with_name("elsewhere"))

    await eventually(lambda: watched.chunker.rescans > 0)
    assert (await watched.watcher.status()).mode == "waiting"


async def test_a_dead_thread_of_watchdog_is_replaced(watched: Watched):
    """FAULTS 22."""
    dead = watched.watcher._observing
    assert dead is not None
    for emitter in dead._observer.emitters:
        emitter.stop()

    await eventually(lambda: watched.watcher._observing not in (None, dead))
    await eventually(lambda: watched.chunker.rescans > 0)
    await is_quiet(watched)
    assert (await watched.watcher.status()).num_restarts == 1


async def test_a_watcher_that_is_stopped_while_it_starts_leaves_no_thread(
    tmp_path: Path, monkeypatch
):
    entered, may_go_on = threading.Event(), threading.Event()
    started: list[observing.Observing | None] = []

    def slow(*arguments: Any) -> observing.Observing | None:
        entered.set()
        may_go_on.wait(PATIENCE_S)
        started.append(start_observing(*arguments))
        return started[-1]

    monkeypatch.setattr(watcher_module, "start_observing", slow)
    watcher = Watcher(tmp_path, InlineHandle(FakeChunker()))
    await eventually(entered.is_set)
    stopping = asyncio.create_task(watcher.stop())
    await asyncio.sleep(0)
    may_go_on.set()
    await stopping

    (observer,) = started
    assert observer is not None
    assert not observer.is_healthy()


async def test_a_waiting_watcher_says_so_and_stops(tmp_path: Path):
    watcher = Watcher(tmp_path / "missing", InlineHandle(FakeChunker()))

    assert (await watcher.status()).mode == "waiting"
    await watcher.stop()
    assert all(task.cancelled() for task in watcher._tasks)


async def test_lost_events_ask_for_a_rescan(watched: Watched):
    """FAULTS 20: watchdog tells it to its log and to nobody else."""
    logging.getLogger("watchdog.observers.inotify_c").warning(
        "Inotify queue overflowed; filesystem events were lost"
    )

    await eventually(lambda: watched.chunker.rescans > 0)
    assert (await watched.watcher.status()).num_overflows == 1


async def test_after_lost_events_a_rescan_follows_once_everything_is_watched_anew(
    watched: Watched, monkeypatch
):
    """FAULTS 20: a rescan that came while watchdog was deaf may have missed what changed then."""

    def started(*arguments: Any) -> observing.Observing | None:
        fresh = start_observing(*arguments)
        watched.chunker.forget()
        return fresh

    monkeypatch.setattr(watcher_module, "start_observing", started)
    logging.getLogger("watchdog.observers.inotify_c").warning(
        "Inotify queue overflowed; filesystem events were lost"
    )

    await eventually(lambda: watched.watcher._num_starts > 1)
    await eventually(lambda: watched.chunker.rescans > 0)
    await is_quiet(watched)


async def test_too_many_hints_become_one_rescan(watched: Watched):
    watched.watcher._note(tuple(f"{n}.md" for n in range(MAX_HINTS + 1)), False)

    await eventually(lambda: watched.chunker.rescans == 1)
    assert watched.chunker.paths == []


async def test_hints_wait_for_a_chunker_that_restarts(watched: Watched):
    watched.chunker.is_down = True
    watched.write("a.md")
    await eventually(lambda: watched.watcher._num_events > 0)
    await asyncio.sleep(0.2)
    watched.chunker.is_down = False

    await eventually(lambda: "a.md" in watched.chunker.paths)


async def test_a_listener_that_fails_does_not_end_the_watching(tmp_path: Path, caplog):
    """FAULTS 22: an error in a handler would kill watchdog's thread."""
    heard: list[str] = []

    def listen(paths: tuple[str, ...], _is_directory: bool) -> None:
        heard.extend(paths)
        raise KeyError("broken")

    watching = start_observing(tmp_path, listen, lambda: None)
    assert watching is not None
    (tmp_path / "a.md").write_text("a")
    await eventually(lambda: "a.md" in heard)
    (tmp_path / "b.md").write_text("b")
    await eventually(lambda: "b.md" in heard)

    assert watching.is_healthy()
    watching.stop()
    assert "lost an event" in caplog.text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_without_watches_left_the_workspace_is_polled(
    tmp_path: Path, monkeypatch, caplog, number: int
):
    """FAULTS 21."""

    class Exhausted(PollingObserver):
        def start(self) -> None:
            raise OSError(number, "no watches left")

    monkeypatch.setattr(observing, "Observer", Exhausted)
    watching = start_observing(tmp_path, lambda *_: None, lambda: None)

    assert watching is not None
    assert watching.mode == "polling"
    assert "max_user_watches" in caplog.text
    watching.stop()


def test_a_root_that_is_not_there_is_not_watched(tmp_path: Path):
    assert start_observing(tmp_path / "missing", lambda *_: None, lambda: None) is None
