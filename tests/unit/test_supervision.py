"""When a host starts its daemon, again and again, or leaves it alone."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from memory.supervision import HEALTHY_S, LONGEST_PAUSE_S, UNUSABLE, Backoff, Supervisor
from tests.doubles import FakeClock


class FakeChild:
    def __init__(self, *, last_words=""):
        self.last_words = last_words
        self.stopped_within_s = None
        self.num_sweeps = 0
        self._ended = asyncio.get_running_loop().create_future()

    def ends(self, code):
        self._ended.set_result(code)

    async def wait(self):
        return await asyncio.shield(self._ended)

    async def stop(self, deadline_s):
        self.stopped_within_s = deadline_s
        self.ends(0)

    async def sweep(self):
        self.num_sweeps += 1


class Host:
    """A supervisor whose children, neighbours and time are the test's."""

    def __init__(self):
        self.clock = FakeClock()
        self.children = []
        self.lines = []
        self.occupant = "nobody"
        self.launch_error = None
        self.supervisor = Supervisor(self._launch, self._occupied_by, self.clock, self.lines.append)

    async def _launch(self):
        if self.launch_error:
            raise self.launch_error
        self.children.append(FakeChild(last_words="Ray did not start"))
        return self.children[-1]

    async def _occupied_by(self):
        return self.occupant

    async def child_ends(self, code, after_s=0.0):
        await self.clock.advance(after_s)
        self.children[-1].ends(code)
        await self.clock.advance(0)


@pytest.fixture
async def host():
    host = Host()
    host.task = asyncio.create_task(host.supervisor.run())
    await host.clock.advance(0)
    yield host
    host.task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await host.task


def test_pauses_double_up_to_a_minute():
    backoff = Backoff()

    pauses = [backoff.pause_s(lived_s=1.0) for _ in range(9)]

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert max(pauses) == LONGEST_PAUSE_S


def test_a_long_life_forgives_earlier_failures():
    backoff = Backoff()
    for _ in range(5):
        backoff.pause_s(lived_s=1.0)

    assert backoff.pause_s(lived_s=HEALTHY_S) == 1.0
    assert backoff.pause_s(lived_s=1.0) == 2.0


async def test_a_child_that_was_killed_is_swept_and_started_again_after_a_second(host):
    await host.child_ends(-9)
    assert host.children[0].num_sweeps == 1
    assert host.supervisor.is_down
    await host.clock.advance(0.9)
    assert len(host.children) == 1
    await host.clock.advance(0.1)

    assert len(host.children) == 2
    assert not host.supervisor.is_down
    assert host.lines == ["memory: the daemon was ended by signal 9; it is started again in 1 s"]


async def test_a_ray_that_never_starts_is_one_line_and_one_attempt_a_minute(host):
    """FAULTS 74."""
    for _ in range(8):
        await host.child_ends(1)
        await host.clock.advance(LONGEST_PAUSE_S)
    before = len(host.children)
    await host.child_ends(1)
    await host.clock.advance(LONGEST_PAUSE_S - 1)
    assert len(host.children) == before
    await host.clock.advance(1)

    assert len(host.children) == before + 1
    (line,) = host.lines
    assert line.startswith("memory: the daemon ended with code 1 (its last line: Ray did not start")
    assert line.endswith("; it is started again in 1 s")


async def test_a_configuration_that_cannot_work_is_one_line_and_looked_at_every_ten_minutes(host):
    await host.child_ends(UNUSABLE)
    await host.clock.advance(599)
    assert len(host.children) == 1
    await host.clock.advance(1)
    assert len(host.children) == 2
    await host.child_ends(UNUSABLE)

    (line,) = host.lines
    assert line.startswith("memory: the daemon ended with code 78 (its last line: Ray did not")
    assert line.endswith("it is started again in 600 s")


async def test_a_program_that_cannot_be_started_is_tried_again(host):
    host.launch_error = OSError(11, "Resource temporarily unavailable")
    await host.child_ends(-9)
    await host.clock.advance(1)
    assert host.lines[-1].startswith(
        "memory: the daemon ended with code 1 (its last line: Resource temporarily"
    )
    host.launch_error = None
    await host.clock.advance(2)

    assert len(host.children) == 2


@pytest.fixture
async def guest():
    """A supervisor that finds another daemon."""
    host = Host()
    host.occupant = "serving"
    host.task = asyncio.create_task(host.supervisor.run())
    await host.clock.advance(10)
    yield host
    await host.supervisor.stop(5.0)
    await host.task


async def test_a_daemon_that_somebody_else_runs_is_used_and_told_once(guest):
    assert guest.children == []
    assert guest.lines == [
        "memory: another process runs the daemon of this data folder; it is used"
    ]


async def test_once_the_other_daemon_is_gone_one_is_started_here(guest):
    guest.occupant = "busy"  # it saves
    await guest.clock.advance(10)
    assert guest.children == []
    guest.occupant = "nobody"
    await guest.clock.advance(1)

    assert len(guest.children) == 1


async def test_stopping_beside_another_daemon_leaves_that_alone(guest):
    await guest.supervisor.stop(5.0)
    await guest.task

    assert guest.children == []


async def test_stop_ends_the_child_and_starts_no_other(host):
    await host.supervisor.stop(7.0)
    await host.task

    assert [child.stopped_within_s for child in host.children] == [7.0]
    assert host.children[0].num_sweeps == 1
    assert host.lines == []


async def test_stop_during_a_pause_returns_without_another_start(host):
    await host.child_ends(-9)
    await host.supervisor.stop(7.0)
    await host.task

    assert len(host.children) == 1


async def test_a_child_on_its_way_when_stop_comes_is_ended_at_once():
    host = Host()
    arrived = asyncio.Event()
    launch = host._launch

    async def slow():
        await arrived.wait()
        return await launch()

    host.supervisor._launch = slow
    task = asyncio.create_task(host.supervisor.run())
    await host.clock.advance(0)
    await host.supervisor.stop(7.0)
    arrived.set()
    await task

    assert [child.stopped_within_s for child in host.children] == [0.0]
