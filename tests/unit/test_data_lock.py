"""One daemon a data folder (SPEC P4, FAULTS 14)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from memory.data_lock import LOCK_NAME, data_lock, is_held
from memory.errors import LockHeld

HOLDER = """
import sys, pathlib
from memory.data_lock import data_lock
with data_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_and_told_who_holds_the_folder(tmp_path, holder):
    with pytest.raises(LockHeld, match=f"is in use by process {holder.pid}"), data_lock(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path, holder):
    assert is_held(tmp_path)
    holder.kill()
    holder.wait()

    assert not is_held(tmp_path)
    with data_lock(tmp_path):
        assert is_held(tmp_path)


def test_the_lock_is_free_after_the_block_even_if_it_raised(tmp_path):
    with pytest.raises(KeyError), data_lock(tmp_path):
        raise KeyError

    assert not is_held(tmp_path)


def test_the_folder_is_made_for_its_owner_only(tmp_path):
    with data_lock(tmp_path / "data" / "memory"):
        assert (tmp_path / "data" / "memory").stat().st_mode & 0o777 == 0o700


def test_asking_whether_it_is_held_writes_nothing(tmp_path):
    assert not is_held(tmp_path)
    assert not is_held(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_of_that_name_is_asked_at_once(tmp_path):
    os.mkfifo(tmp_path / LOCK_NAME)

    assert not is_held(tmp_path)


def test_a_start_succeeds_at_every_moment_of_a_question(tmp_path):
    """``memory status`` and ``memory stop`` ask again and again while a daemon starts."""
    (tmp_path / LOCK_NAME).touch()
    starts, module = [], is_held.__code__.co_filename

    def start_meanwhile(frame, event, _argument):
        frame.f_trace_opcodes = True
        if event == "opcode":
            with data_lock(tmp_path):
                starts.append(frame.f_lasti)
        return start_meanwhile

    def enter(frame, _event, _argument):
        return start_meanwhile(frame, "", None) if frame.f_code.co_filename == module else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        is_held(tmp_path)
    finally:
        sys.settrace(before)

    assert starts


def test_the_owner_itself_may_ask_and_keeps_the_folder(tmp_path):
    """POSIX locks would be given back as soon as their process closes the file anywhere."""
    folder = tmp_path / "own"
    with data_lock(folder):
        assert is_held(folder)
        assert is_held(folder)
        refused = subprocess.run(
            [sys.executable, "-c", HOLDER, str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )

    assert b"LockHeld" in refused.stderr
