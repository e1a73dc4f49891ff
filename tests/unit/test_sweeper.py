"""Nothing is left of a daemon that is killed, with or without a host (FAULTS 70)."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from memory.processes import writing_below
from memory.sweeper import sweep, sweeping
from tests.doubles import FakeClock

# A daemon with a process of its own that outlives it, in another session even.
DAEMON = """
import os, pathlib, subprocess, sys
from memory.sweeper import sweeping
folder = pathlib.Path(sys.argv[1])
session = folder / f"session_2026_{os.getpid()}"
session.mkdir()
with (session / "out").open("w") as output, sweeping(folder):
    left = subprocess.Popen(["sleep", "1000"], stdout=output, start_new_session=True)
    print(left.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [True, False])
def test_what_a_daemon_leaves_is_ended_however_it_ended(tmp_path, is_killed):
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as daemon:
        left = os.pidfd_open(int(daemon.stdout.readline()))
        if is_killed:
            daemon.kill()
        else:
            daemon.stdin.close()
        ended, _, _ = select.select([left], [], [], 10)
        os.close(left)

    assert ended
    assert daemon.returncode == (-9 if is_killed else 0)


async def test_the_processes_of_the_next_daemon_are_left_alone(tmp_path):
    for daemon in (17, 18):
        (tmp_path / f"session_2026_{daemon}").mkdir()
    with (
        (tmp_path / "session_2026_18" / "out").open("w") as output,
        subprocess.Popen(["sleep", "1000"], stdout=output) as stranger,  # noqa: ASYNC220 - returns at once
    ):
        assert await sweep(tmp_path, 17, FakeClock())
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.slow
def test_an_error_within_the_block_is_not_hidden(tmp_path):
    with pytest.raises(KeyError), sweeping(tmp_path):
        raise KeyError

    assert writing_below(tmp_path) == ()
