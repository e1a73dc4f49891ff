"""What a host holds of its memory, with a child that is no Ray program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from memory import hosted_access, supervision
from memory.child_process import Start
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.data_lock import is_held
from memory.errors import DaemonError, SnapshotMissing
from memory.hosted_access import STUB, Configuration, section
from memory.locations import Locations
from memory.plugin import DaemonPlugin, create
from memory.processes import find, of_session
from tests.unit.fake_daemon import FakeDaemon

FAKE_CHILD = Path(__file__).with_name("fake_child.py")
PATIENCE_S = 20.0
LOCAL = {"memory": {"embeddings": {"provider": "local"}}}

pytestmark = pytest.mark.slow  # every test starts an interpreter or two


async def eventually(condition):
    """Returns the first true answer."""
    async with asyncio.timeout(PATIENCE_S):
        while not (answer := condition()):  # noqa: ASYNC110 - a process tells nobody
            await asyncio.sleep(0.01)
    return answer


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(supervision, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(supervision, "LOOK_S", 0.05)


@pytest.fixture
def short():
    with tempfile.TemporaryDirectory(prefix="mem-") as folder:  # a socket's path must be short
        yield Path(folder)


class Host:
    def __init__(self, folder, short):
        self.data = folder / "data"
        self.data.mkdir()
        self.short = short
        self.lines = []
        self.locations = Locations(folder / "config.yml", folder / "notes", self.data)

    def plugin(self, mode="ready", **options):
        settings = Settings(memory=MemorySettings(embeddings=EmbeddingsSettings(provider="local")))
        command = (sys.executable, str(FAKE_CHILD), str(self.data), str(self.short), mode)
        return DaemonPlugin(
            Configuration(settings, LOCAL),
            self.locations,
            Start(command, LOCAL),
            log=self.lines.append,
            **options,
        )

    def child(self):
        """Returns the process of the daemon that listens, or None."""
        try:
            return find(json.loads((self.data / "daemon.json").read_text())["pid"])
        except (OSError, ValueError):
            return None


@pytest.fixture
def host(tmp_path, short):
    return Host(tmp_path, short)


@pytest.fixture
async def running(host):
    """A host whose child is ready."""
    host.memory = host.plugin()
    await host.memory.start()
    await eventually(host.memory.is_ready)
    host.first = host.child()
    yield host
    await host.memory.stop(5.0)


async def test_a_child_becomes_ready_and_answers_with_the_hosts_configuration(running):
    assert await running.memory.context_provider("a prompt") == f"# a prompt {LOCAL}"
    assert running.lines[0] == "serving"
    assert running.first.session == running.first.pid != os.getsid(0)


async def test_stop_saves_and_leaves_no_process(running):
    members = of_session(running.first.pid, running.first.started)
    assert [process.name for process in members] == ["sleep"]

    await running.memory.stop(10.0)

    assert (running.data / "saved").exists()
    assert of_session(running.first.pid, running.first.started) == ()
    assert find(running.first.pid) is None
    assert not is_held(running.data)
    assert not running.memory.is_ready()


async def test_a_stopped_memory_can_be_started_again(running):
    await running.memory.stop(10.0)
    await running.memory.start()
    await eventually(running.memory.is_ready)

    assert running.child().pid != running.first.pid


async def test_a_killed_child_leaves_nothing_and_is_replaced(running):
    """FAULTS 70."""
    os.kill(running.first.pid, signal.SIGKILL)
    await eventually(lambda: (now := running.child()) and now.pid != running.first.pid)
    await eventually(running.memory.is_ready)

    assert of_session(running.first.pid, running.first.started) == ()
    assert await running.memory.context_provider("again") == f"# again {LOCAL}"
    assert "memory: the daemon was ended by signal 9; it is started again in 0 s" in running.lines


async def test_a_child_that_does_not_end_is_killed_after_the_deadline(host):
    memory = host.plugin("stubborn")
    await memory.start()
    await eventually(memory.is_ready)
    child = host.child()

    await memory.stop(0.2)

    assert find(child.pid) is None
    assert of_session(child.pid, child.started) == ()
    assert host.lines[-1] == "memory: the daemon did not end within 0.2 s and is killed"


async def test_a_caller_that_stops_waiting_for_the_end_does_not_prevent_it(host):
    memory = host.plugin("stubborn")
    await memory.start()
    await eventually(memory.is_ready)
    child = host.child()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await memory.stop(0.3)
    await eventually(lambda: find(child.pid) is None)
    await memory.stop()

    assert of_session(child.pid, child.started) == ()


async def test_a_configuration_that_the_child_refuses_is_told_and_stop_does_not_wait(host):
    memory = host.plugin("wrong")
    await memory.start()
    await eventually(lambda: len(host.lines) == 2)
    await memory.stop()

    said, told = host.lines
    assert said == "memory: no such model"
    assert told.startswith("memory: the daemon ended with code 78 (its last line: memory: no such")


async def test_a_child_that_hangs_makes_a_section_late_by_no_more_than_the_deadline(
    host, monkeypatch
):
    monkeypatch.setattr(hosted_access, "DAEMON_SHARE", 2.0)  # the disk is not even asked
    memory = host.plugin("silent", context_deadline_s=0.3)
    await memory.start()
    await eventually(memory.is_ready)
    before = asyncio.get_running_loop().time()

    given = await memory.context_provider("a prompt")

    assert given == STUB
    assert asyncio.get_running_loop().time() - before < 0.3 + 0.5
    await memory.stop(5.0)


async def test_a_daemon_that_runs_already_is_used_and_not_ended(host):
    daemon = FakeDaemon(host.data, host.short)
    answer = {"section": "# other", "rows": [], "degraded": ""}
    for _ in range(2000):
        daemon.will_answer({"ready": True, **answer})
    memory = host.plugin()
    await memory.start()
    await eventually(memory.is_ready)

    assert await memory.context_provider("a prompt") == "# other"
    await memory.stop(1.0)
    assert host.lines == ["memory: another process runs the daemon of this data folder; it is used"]
    daemon.close()


async def test_without_daemon_and_index_a_prompt_gets_nothing(host):
    assert await host.plugin().context_provider("a prompt") == ""
    assert await host.plugin().context_provider(" \n") == ""


async def test_search_answers_that_nothing_is_indexed(host):
    search, _get, _save = host.plugin().tools

    assert (await search({"query": "alice"})).data == {"state": "not_indexed"}


async def test_a_fact_waits_for_a_daemon_and_is_refused_if_none_comes(host, monkeypatch):
    monkeypatch.setattr(hosted_access, "SAVE_PATIENCE_S", 0.1)
    _search, _get, save = host.plugin().tools

    answer = await save({"content": "Alice moved."})

    assert answer.data == {"state": "not_running"}
    assert "starts it again by itself" in answer.text
    assert "memory start" not in answer.text


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({}, r"memory: disabled — pending config \(set memory.embeddings.provider and "),
        ({"memory": {"embedings": {}}}, r"memory: disabled — .*embedings: .*embeddings"),
        ({"memory": {"embeddings": {"provider": "local", "model": "x"}}}, "memory: disabled — "),
        ({"memory": {"embeddings": {"provider": object()}}}, "memory: disabled — "),
        ("no-such-file.yml", "memory: disabled — .*no-such-file.yml: No such file"),
    ],
)
async def test_a_wrong_configuration_is_one_line_and_harms_nobody(tmp_path, config, line):
    lines = []
    memory = create(config, workspace=tmp_path, data=tmp_path / "data", log=lines.append)
    await memory.start()

    assert len(lines) == 1
    assert re.match(line, lines[0])
    assert "\n" not in lines[0]
    assert memory.tools == ()
    assert await memory.context_provider("a prompt") == ""
    assert not memory.is_ready()
    await memory.stop()
    assert not (tmp_path / "data").exists()


def test_what_the_host_configures_for_itself_is_not_handed_to_the_child(tmp_path):
    memory = create(
        {**LOCAL, "mail": {"password": "secret"}}, workspace=tmp_path, data=tmp_path / "data"
    )

    assert memory._start.config == LOCAL


async def test_a_log_that_raises_does_not_end_the_supervision(host):
    def log(line):
        host.lines.append(line)
        raise ValueError

    host_plugin = host.plugin()
    memory = DaemonPlugin(
        Configuration(Settings(), LOCAL), host.locations, host_plugin._start, log=log
    )
    await memory.start()
    await eventually(memory.is_ready)
    await memory.stop(5.0)

    assert "serving" in host.lines


@pytest.mark.parametrize(
    ("error", "given"),
    [(SnapshotMissing("x"), ""), (DaemonError("x"), STUB), (KeyError("x"), STUB)],
)
async def test_a_section_is_given_whatever_fails(error, given):
    async def ask(_prompt, _deadline_s):
        raise error

    assert await section("a prompt", ask, 1.0) == given


# A host that starts a child, tells which, and is then killed. With "forked" a copy of it goes on,
# which holds the pipe to the child as well; with "thread" the thread that started it has ended.
KILLED_HOST = """
import asyncio, os, sys, threading
from pathlib import Path
from memory.child_process import Start, start_child
from memory.clock import SystemClock

how, *command = sys.argv[1:]

async def host():
    child = await start_child(Start(command, {}), SystemClock(), lambda line: None)
    return child

if how == "thread":
    kept = []
    thread = threading.Thread(target=lambda: kept.append(asyncio.run(host())))
    thread.start(); thread.join()
else:
    kept = [asyncio.run(host())]
if how == "forked" and os.fork() == 0:
    os.close(1)
    threading.Event().wait(1000)
print(kept[0].pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["plain", "forked", "thread"])
async def test_a_child_saves_and_ends_when_its_host_is_killed(host, how):
    command = (sys.executable, str(FAKE_CHILD), str(host.data), str(host.short), "ready")
    with subprocess.Popen(  # noqa: ASYNC220 - returns at once
        [sys.executable, "-c", KILLED_HOST, how, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        pid = int(process.stdout.readline())
        await eventually(host.child)
        child = find(pid)
        assert of_session(pid, child.started)
        descriptor = os.pidfd_open(pid)
        process.kill()
        ended, _, _ = await asyncio.to_thread(select.select, [descriptor], [], [], PATIENCE_S)
        os.close(descriptor)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the copy

    assert ended
    assert (host.data / "saved").exists()
    assert of_session(pid, child.started) == ()
