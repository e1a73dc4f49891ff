"""How the daemon's process ends, and what it does about a model that does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actors import service
from actors.console import Console
from actors.ray_config import RayConfig
from actors.service import CONFIRM_RETRY_S, Service
from actors.statuses import WatcherStatus
from actors.system import MemorySystem
from memory import storage
from memory.daemon_client import ADDRESS_NAME
from memory.errors import BadEmbedding, ProviderRejected, ProviderUnavailable, StoreError
from memory.locations import Locations
from memory.processes import find
from memory.reader import SnapshotReader
from memory.snapshot import SNAPSHOT_NAME
from memory.supervision import UNUSABLE
from tests.inline.handles import InlineHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.inline.conftest import Pipe


class StillWatcher:
    """A Watcher of a folder in which nothing happens."""

    async def stop(self) -> None:
        return None

    async def ping(self) -> int:
        return os.getpid()

    async def status(self) -> WatcherStatus:
        return WatcherStatus(os.getpid(), "events", 0.0, 0, 0, 0)


class Daemon:
    """A service over inline actors, and what it prints."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._output = io.StringIO()
        locations = Locations(pipe.data.parent / "config.yml", pipe.root, pipe.data)
        console = Console(self._output)
        self.service = Service(pipe.settings, locations, RayConfig(), console, pipe.clock)

    @property
    def lines(self) -> list[str]:
        return self._output.getvalue().splitlines()

    @contextlib.asynccontextmanager
    async def running(self) -> Any:
        """Yields the running service's task once it listens."""
        task = asyncio.create_task(self.service.run())

        async def listens() -> bool:
            return task.done() or (self._pipe.data / ADDRESS_NAME).exists()

        await self._pipe.until(listens)
        yield task
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait({task}, timeout=5)
        assert task.done()


@pytest.fixture
def caught() -> Iterator[list[int]]:
    """Signals that the service left to the process, which they would have ended."""
    caught: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: caught.append(number))
        for number in (signal.SIGHUP, signal.SIGTERM)
    }
    yield caught
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def daemon(pipe: Pipe, caught: list[int], monkeypatch) -> Iterator[Callable[[], Daemon]]:
    system = MemorySystem(
        watcher=InlineHandle(StillWatcher()),
        chunker=pipe.chunker,
        pool=pipe.pool,
        workers=(),
        keeper=pipe.keeper,
        persister=pipe.persister,
        provider=pipe.provider,
        emitter=pipe.emitter,
        arguments=(),
    )
    with tempfile.TemporaryDirectory(prefix="mem-") as short:  # the socket's path must be short
        monkeypatch.setattr(service, "runtime_folder", lambda _data: Path(short))
        monkeypatch.setattr(service, "start", lambda *_: system)
        yield lambda: Daemon(pipe)


async def indexed(pipe: Pipe, name: str) -> None:
    pipe.write(name, f"# {name}\n\nText.\n")
    await pipe.touched(name)


def on_disk(pipe: Pipe) -> list[str]:
    with SnapshotReader(pipe.data) as reader:
        return [file.path for file in reader.files()]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
async def test_each_way_to_end_it_saves_the_index(pipe, daemon, caught, number):
    """SIGHUP comes when the terminal is closed."""
    await indexed(pipe, "a.md")

    async with daemon().running() as task:
        os.kill(os.getpid(), number)
        assert await asyncio.wait_for(task, 5) == 0

    assert on_disk(pipe) == ["a.md"]


async def test_under_nohup_a_closed_terminal_changes_nothing(pipe, daemon, caught):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async with daemon().running() as task:
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
        await pipe.settle()

        assert not task.done()
    assert task.result() == 0


async def test_a_hangup_during_the_start_ends_it_once_it_can_save(pipe, daemon, caught):
    """Until then the signal is blocked, and so it stays in Ray's processes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
    await indexed(pipe, "a.md")

    async with daemon().running() as task:
        assert await asyncio.wait_for(task, 5) == 0

    assert on_disk(pipe) == ["a.md"]
    assert signal.SIGHUP not in caught


async def test_a_full_disk_at_the_end_is_one_line_and_keeps_the_last_index(
    pipe, daemon, caught, monkeypatch
):
    await indexed(pipe, "a.md")
    await pipe.persister.flush.remote()
    before = (pipe.data / SNAPSHOT_NAME).read_bytes()

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "write", refuse)
    monkeypatch.setattr(storage.JournalWriter, "append", refuse)
    await indexed(pipe, "b.md")
    async with daemon().running() as task:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StoreError, match="was not saved: No space left on device; make room"):
            await asyncio.wait_for(task, 5)

    assert (pipe.data / SNAPSHOT_NAME).read_bytes() == before
    assert not (pipe.data / ADDRESS_NAME).exists()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (TimeoutError(), "memory: the model has not answered yet; it is asked again in 60 s"),
        (
            ProviderUnavailable("far", "status 503"),
            "memory: far: status 503; it is asked again in 60 s",
        ),
        (
            BadEmbedding("far", "2 vectors for 1 text"),
            "memory: far: 2 vectors for 1 text; it is asked again in 60 s",
        ),
        (ZeroDivisionError("a detail for the log"), "memory: the model cannot be checked, see"),
    ],
)
async def test_a_model_that_does_not_answer_is_told_and_asked_again(
    pipe, daemon, caught, monkeypatch, error, line
):
    attempts: list[Exception | None] = [error, error, None]

    async def confirm(_system: MemorySystem) -> str:
        failure = attempts.pop(0)
        if failure is not None:
            raise failure
        return "there is no saved index"

    async def asked(left: int) -> bool:
        return len(attempts) == left

    monkeypatch.setattr(MemorySystem, "confirm_model", confirm)
    monkeypatch.setattr(service, "POLL_S", CONFIRM_RETRY_S / 4)
    running = daemon()
    async with running.running() as task:
        await pipe.until(lambda: asked(2))
        await pipe.clock.advance(CONFIRM_RETRY_S / 2)
        assert len(attempts) == 2
        await pipe.clock.advance(2 * CONFIRM_RETRY_S)
        await pipe.until(lambda: asked(0))
        await pipe.clock.advance(2 * CONFIRM_RETRY_S)
        assert not task.done()

    assert sum(each.startswith(line) for each in running.lines) == 2
    assert running.lines.count("memory: there is no saved index") == 1


async def test_a_model_that_is_refused_ends_it(pipe, daemon, caught, monkeypatch):
    async def confirm(_system: MemorySystem) -> str:
        raise ProviderRejected("local", "no such model")

    monkeypatch.setattr(MemorySystem, "confirm_model", confirm)
    running = daemon()
    async with running.running() as task:
        assert await asyncio.wait_for(task, 5) == UNUSABLE

    assert "memory: local: no such model" in running.lines


async def test_a_start_has_failed_facts_tried_again(pipe, daemon, caught):
    receipt = await pipe.emitter.emit.remote("Alice moved", ())
    await pipe.emitter.fail.remote(receipt.event_id, "failed")
    assert await pipe.emitter.pending.remote(0.0) == ()

    async def is_due() -> bool:
        return len(await pipe.emitter.pending.remote(0.0)) == 1

    async with daemon().running() as task:
        await pipe.until(is_due)
        assert not task.done()


async def test_a_fact_that_waits_for_a_model_is_told(pipe, daemon, caught):
    running = daemon()
    await pipe.emitter.emit.remote("Alice moved", ())

    async def is_told() -> bool:
        return any("saved facts wait: no model is configured" in line for line in running.lines)

    async with running.running():
        await pipe.until(is_told)


async def test_a_service_whose_ray_dies_ends_at_once_and_asks_no_actor(
    pipe, daemon, caught, monkeypatch
):
    """FAULTS 69."""
    await indexed(pipe, "a.md")
    with subprocess.Popen(["sleep", "1000"]) as raylet:  # noqa: ASYNC220 - returns at once
        monkeypatch.setattr(service, "vital_processes", lambda: (find(raylet.pid),))
        running = daemon()
        async with running.running() as task:
            raylet.kill()
            assert await asyncio.wait_for(task, 5) == 1

    assert not running.service.has_ray
    assert "flush" not in pipe.persister.calls
    assert not (pipe.data / ADDRESS_NAME).exists()
    assert running.lines[-1:] == ["memory: Ray's sleep has ended, and the daemon ends with it"]


async def test_a_ray_that_was_dead_before_the_service_began_is_noticed(
    pipe, daemon, caught, monkeypatch
):
    with subprocess.Popen(["true"]) as raylet:  # noqa: ASYNC220 - returns at once
        gone = find(raylet.pid)
    monkeypatch.setattr(service, "vital_processes", lambda: (gone,))

    assert await asyncio.wait_for(daemon().service.run(), 5) == 1
