"""Ending processes by session, without ever hitting a stranger (FAULTS 70)."""

from __future__ import annotations

import dataclasses
import os
import select
import subprocess

import pytest

from memory.processes import below, end, find, of_session, writing_below

# A session leader with a child in another process group, which it leaves behind.
LEADER = "set -m; sleep 1000 & echo $!; read line"


@pytest.fixture
def leader():
    with subprocess.Popen(
        ["bash", "-c", LEADER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process
        itself = find(process.pid)
        if itself is not None:
            end(of_session(itself.pid, itself.started))
        process.kill()


@pytest.fixture
def child(leader):
    return int(leader.stdout.readline())


def gone(pid):
    """Waits for the end of any process."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


def test_a_session_is_found_whatever_process_group_its_members_are_in(leader, child):
    members = of_session(leader.pid, find(leader.pid).started)

    assert [process.pid for process in members] == [child]
    assert os.getpgid(child) != os.getpgid(leader.pid)


def test_what_a_killed_leader_leaves_is_found_and_ended(leader, child):
    started = find(leader.pid).started
    leader.kill()
    leader.wait()

    left = of_session(leader.pid, started)
    end(left)

    assert [process.pid for process in left] == [child]
    assert gone(child)
    assert of_session(leader.pid, started) == ()


def test_the_session_of_a_process_that_got_an_old_id_is_a_strangers(leader, child):
    started = find(leader.pid).started

    assert of_session(leader.pid, started - 1) == ()


def test_a_process_that_got_the_id_of_an_ended_one_is_not_ended(child):
    ended = dataclasses.replace(find(child), started=find(child).started - 1)

    end([ended])

    assert find(child).is_alive


def test_what_runs_below_a_process_is_found_and_nothing_else(leader, child):
    assert child in [process.pid for process in below(leader.pid)]
    assert leader.pid in [process.pid for process in below(os.getpid())]
    assert leader.pid not in [process.pid for process in below(leader.pid)]


@pytest.mark.parametrize(
    ("descriptor", "mode", "is_found"), [(1, "w", 1), (9, "a", 1), (9, "r", 0)]
)
def test_a_process_is_found_by_the_files_it_writes_not_by_those_it_reads(
    tmp_path, descriptor, mode, is_found
):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "out").touch()
    sign = "<" if mode == "r" else ">"
    script = f"exec {descriptor}{sign}{tmp_path}/logs/out; echo ready >&2; exec sleep 1000"
    with subprocess.Popen(["bash", "-c", script], stderr=subprocess.PIPE) as process:
        process.stderr.readline()
        found = writing_below(tmp_path)
        elsewhere = writing_below(tmp_path / "other")
        process.kill()

    assert [one.pid for one in found] == [process.pid] * is_found
    assert elsewhere == ()


def test_a_name_with_parentheses_does_not_shift_the_fields(tmp_path):
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "1000"]) as process:
        found = find(process.pid)
        process.kill()

    assert (found.name, found.parent) == ("a) S 1 (b", os.getpid())
