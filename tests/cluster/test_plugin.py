"""A host with a real child: nothing that happens to Ray reaches it (FAULTS 69, 70, 71, 74)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest

from actors.cluster import runtime_folder
from memory import hosted_access
from memory.daemon_calls import ask_daemon
from memory.daemon_client import running
from memory.plugin import create
from memory.processes import find, of_session, writing_below

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from memory.plugin import DaemonPlugin
    from memory.processes import Process

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PATIENCE_S = 120.0
NO_ORPHAN_AFTER_S = 10.0
NOTICED_AFTER_S = 5.0
BIKES = "who repairs bicycles"


class Host:
    """A program with a memory of two files."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.data = folder / "notes", folder / "data"
        self.lines: list[str] = []
        for name, text in {
            "alice.md": "# Alice\n\nAlice repairs bicycles.\n",
            "bob.md": "# Bob\n\nBob bakes bread.\n",
        }.items():
            path = self.workspace / "wiki" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / "ray_config.yaml").write_text("embedder: {workers: 1}\n")
        (folder / "config.yml").write_text("memory: {embeddings: {provider: local}}\n")
        self.memory: DaemonPlugin = create(
            folder / "config.yml",
            workspace=self.workspace,
            data=self.data,
            log=self.lines.append,
            context_deadline_s=30.0,  # the machine may be busy
        )

    def child(self) -> Process:
        address = running(self.data)
        assert address is not None
        process = find(address.pid)
        assert process is not None
        return process

    async def actors(self) -> set[int]:
        status = await ask_daemon(self.data, "status", PATIENCE_S)
        return {actor["pid"] for actor in status["actors"]}

    async def until(self, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> None:
        try:
            async with asyncio.timeout(patience_s):
                while not condition():  # noqa: ASYNC110 - a process tells nobody
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError("\n".join(self.lines)) from None


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setattr(hosted_access, "SEARCH_DISK_S", PATIENCE_S)  # the machine may be busy
    host = Host(tmp_path)
    yield host
    await host.memory.stop(20.0)
    shutil.rmtree(runtime_folder(host.data), ignore_errors=True)


async def test_a_host_outlives_its_ray_and_loses_only_time(host: Host) -> None:
    await host.memory.start()
    assert not host.memory.is_ready()
    await host.until(host.memory.is_ready)
    assert "| `wiki/alice.md` |" in await host.memory.context_provider(BIKES)
    first, actors = host.child(), await host.actors()
    members = of_session(first.pid, first.started)
    assert {"gcs_server", "raylet"} <= {process.name for process in members}

    gcs = next(process for process in members if process.name == "gcs_server")
    os.kill(gcs.pid, signal.SIGKILL)
    await host.until(lambda: not of_session(first.pid, first.started), NO_ORPHAN_AFTER_S)
    await host.until(lambda: not host.memory.is_ready(), NOTICED_AFTER_S)
    found = await host.memory.tools[0]({"query": BIKES})
    assert found.data["source"] == "disk"
    assert found.data["hits"][0]["path"] == "wiki/alice.md"
    assert "memory: Ray's gcs_server has ended, and the daemon ends with it" in host.lines
    await host.until(host.memory.is_ready)
    second = host.child()
    assert second.pid != first.pid
    assert not actors & await host.actors()

    os.kill(second.pid, signal.SIGKILL)
    await host.until(lambda: not of_session(second.pid, second.started), NO_ORPHAN_AFTER_S)
    assert "| `wiki/alice.md` |" in await host.memory.context_provider(BIKES)

    await host.memory.stop()  # while the third one starts
    assert writing_below(runtime_folder(host.data)) == ()
    assert running(host.data) is None


async def test_a_ray_that_cannot_start_is_one_line_beside_a_host_that_goes_on(
    host: Host,
) -> None:
    """FAULTS 74."""
    (runtime_folder(host.data) / "ray").write_text("in the place of Ray's folder")
    await host.memory.start()
    await host.until(lambda: any("ended with code 1" in line for line in host.lines))

    assert any("Ray at 'local' did not start" in line for line in host.lines)
    assert await host.memory.context_provider(BIKES) == ""
