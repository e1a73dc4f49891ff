"""Is every fact that was answered there after any crash, and nothing that nobody saved?"""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
from dataclasses import replace

import pytest

from memory import outbox_file
from memory.outbox import OUTBOX_NAME, Outbox, SaveResult, SkillEvent, event_id, read_pending
from memory.outbox_file import damage
from tests.unit.crash_disk import CrashDisk, Killed, crash_images


def event(prompt):
    return SkillEvent(event_id(prompt), prompt, ("chat-1",), (), 12.5)


ONE, TWO, THREE, FOUR = (event(prompt) for prompt in ("One.", "Two.", "Drei: \u00df.", "Four."))
STEPS = (
    lambda outbox: outbox.add(ONE),
    lambda outbox: outbox.add(TWO),
    lambda outbox: outbox.fail(ONE.event_id, "no answer", 5.0),
    lambda outbox: outbox.acknowledge(TWO.event_id, SaveResult(TWO.event_id, "noop", 6.0)),
    lambda outbox: outbox.add(THREE),
    lambda outbox: outbox.retry(ONE.event_id),
    lambda outbox: outbox.acknowledge(ONE.event_id),
    lambda outbox: outbox.add(FOUR),
    lambda outbox: outbox.acknowledge(THREE.event_id),
)
"""Each appends one line."""


def state_of(outbox):
    saved = {each.event_id for each in (ONE, TWO, THREE) if outbox.state(each.event_id) == "saved"}
    return outbox.pending, outbox.failed, outbox.results, saved


@pytest.fixture(autouse=True)
def states(tmp_path, monkeypatch):
    """Returns the state after each number of steps; some of them compact the file."""
    monkeypatch.setattr(outbox_file, "MAX_COMPACT_BYTES", 400)
    outbox = Outbox(tmp_path / "undisturbed")
    states = [state_of(outbox)]
    for step in STEPS:
        step(outbox)
        states.append(state_of(outbox))
    return states


def lived(folder, disk):
    """Takes every step, again and again if the disk refuses; the promise is how many were."""
    outbox = opened(folder, disk)
    for number, step in enumerate(STEPS, 1):
        while not succeeds(step, outbox):
            pass
        disk.promise(number)
    return outbox


def opened(folder, disk):
    try:
        return Outbox(folder / OUTBOX_NAME, disk=disk)
    except OSError:
        return Outbox(folder / OUTBOX_NAME, disk=disk)


def succeeds(step, outbox):
    try:
        return step(outbox)
    except OSError:
        return False


def home_of(tmp_path, name):
    home = tmp_path / name
    home.mkdir()
    return home


def test_a_kill_at_any_operation_leaves_what_was_answered(tmp_path, states):
    """FAULTS 2: and the one being written at most; the next process goes on."""
    for killed_at in range(1000):
        home = home_of(tmp_path, f"{killed_at}")
        disk = CrashDisk(home, killed_at=killed_at)
        try:
            lived(home, disk)
            break
        except Killed:
            disk.reap()
        answered = max(
            (each.value for each in disk.operations if each.kind == "promise"), default=0
        )

        again = Outbox(home / OUTBOX_NAME)
        left = state_of(again)
        assert left in states[answered : answered + 2]
        for step in STEPS[states.index(left) :]:
            step(again)
        assert state_of(Outbox(home / OUTBOX_NAME)) == states[-1]
        assert [each.name for each in home.iterdir()] == [OUTBOX_NAME]

    assert killed_at > 40


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
def test_after_a_failure_of_any_operation_it_goes_on(tmp_path, states, error):
    """FAULTS 4 to 6: what was refused is not there, what is tried again is there once."""
    for failing in range(1000):
        home = home_of(tmp_path, f"{failing}")
        disk = CrashDisk(home, failing={failing, failing + 1}, error=error)
        outbox = lived(home, disk)
        disk.reap()

        assert state_of(outbox) == state_of(Outbox(home / OUTBOX_NAME)) == states[-1]
        assert read_pending(home / OUTBOX_NAME) == (FOUR,)
        if disk.num_calls <= failing:
            break

    assert failing > 40


@pytest.mark.slow
@pytest.mark.parametrize("failing", [(), (4,), (20,)])
def test_a_power_loss_at_any_operation_leaves_what_was_answered(tmp_path, states, failing):
    """FAULTS 3: after an operation that failed, too. Temporary files are swept and do not count."""
    home = home_of(tmp_path, "home")
    disk = CrashDisk(home, failing=failing)
    lived(home, disk)
    disk.reap()
    cases = {(image.files.get(OUTBOX_NAME), image.promise or 0) for image in crash_images(disk)}
    path = tmp_path / OUTBOX_NAME
    for content, answered in cases:
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)

        assert state_of(Outbox(path)) in states[answered : answered + 2]

    assert len(cases) > 500


@pytest.mark.slow
@pytest.mark.parametrize("flip", [0x01, 0x08, 0x20, 0x80, 0xFF])
def test_no_flipped_byte_changes_a_fact(tmp_path, states, flip, caplog):
    """FAULTS 8: a line is read as it was written or not at all, which is said in one line."""
    path = tmp_path / OUTBOX_NAME
    outbox = Outbox(path)
    for step in STEPS[:5]:
        step(outbox)
    data = bytearray(path.read_bytes())
    known, told = {ONE, TWO, THREE}, set(outbox.results)
    for position in range(len(data)):
        data[position] ^= flip
        path.write_bytes(data)
        data[position] ^= flip
        caplog.clear()
        left = Outbox(path)

        assert set(left.pending) <= known
        assert set(left.results) <= told
        assert {failed.reason for failed in left.failed} <= {"no answer"}
        assert state_of(left) == states[5] or len(caplog.records) == 1


def test_every_truncation_leaves_what_was_answered_by_then(tmp_path, states):
    """FAULTS 9."""
    path, ends = tmp_path / OUTBOX_NAME, [0]
    outbox = Outbox(path)
    for step in STEPS[:3]:
        step(outbox)
        ends.append(path.stat().st_size)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        num_whole = sum(end <= length for end in ends) - 1

        # The last line is whole without its end.
        expected = states[num_whole + (length + 1 in ends)]
        assert state_of(Outbox(path)) == expected


EVENT = {
    "event_id": event_id("x"),
    "prompt": "x",
    "source_ids": [],
    "related": [],
    "created_at": 1.0,
}
FORGED = {
    "garbage": os.urandom(4096).replace(b"\n", b"x") * 20_000,
    "zeros": bytes(100_000_000),
    "lines of garbage": b"garbage\n" * 20_000,
    "deep": b"[" * 1_000_000,
    "deep records": b'{"event": {"event_id": ' + b"[" * 1_000_000,
    "a list": b"[]\n[1]\nnull\n3\n",
    "another id": json.dumps({"event": EVENT | {"prompt": "y"}}).encode(),
    "a number for a text": json.dumps({"event": EVENT | {"prompt": 5}}).encode(),
    "a text for a time": json.dumps({"event": EVENT | {"created_at": "now"}}).encode(),
    "a field too many": json.dumps({"event": EVENT | {"extra": 1}}).encode(),
    "no fields": b'{"event": {}}\n{"failed": {}}\n{"acknowledged": []}\n{"retried": {}}',
    "attempts that cannot be compared": b'{"failed": {"event_id": "", "attempts": "many", '
    b'"reason": "", "retry_at": 1}}',
    "a result that is none": b'{"acknowledged": "0123", "result": {"line": 5, "at": 1}}',
    "a later version": b'{"postponed": "0123"}\n{"event": {}, "postponed": 1}',
}


@pytest.mark.slow
@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_what_is_no_record_is_no_fact_and_claims_no_memory(tmp_path, content, caplog):
    """FAULTS 10: it is told once, and facts are kept from then on."""
    path = tmp_path / OUTBOX_NAME
    path.write_bytes(content)
    tracemalloc.start()
    try:
        outbox = Outbox(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 50_000_000
    assert "cannot be read" in caplog.records[0].message
    assert (outbox.pending, outbox.failed, outbox.results) == ((), (), ())
    outbox.add(ONE)
    assert Outbox(path).pending == read_pending(path) == (ONE,)


def test_a_damaged_file_is_kept_aside_once_it_is_compacted(tmp_path, caplog):
    path, bad = tmp_path / OUTBOX_NAME, tmp_path / f"{OUTBOX_NAME}.bad"
    for _time in range(2):
        damaged = path.read_bytes() if path.exists() else b""
        damaged += b"\n" + b"\xff" * outbox_file.MAX_KEPT_BYTES + b"\xff\n"
        path.write_bytes(damaged)
        caplog.clear()
        outbox = Outbox(path)
        outbox.add(ONE)
        outbox.add(TWO)
        outbox.fail(ONE.event_id, "no answer", 5.0)

        assert bad.read_bytes()[: len(damaged)] == damaged
        assert path.stat().st_size < 2_000
        assert Outbox(path).pending == (ONE, TWO)
        assert sorted(each.name for each in tmp_path.glob("outbox*")) == [path.name, bad.name]
        assert sum("kept as" in each.message for each in caplog.records) == 1


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_what_can_never_be_read_is_set_aside(tmp_path, make, caplog):
    path = tmp_path / OUTBOX_NAME
    make(path)

    assert read_pending(path) == ()
    outbox = Outbox(path)
    outbox.add(ONE)
    assert Outbox(path).pending == (ONE,)
    assert (tmp_path / f"{OUTBOX_NAME}.bad").exists()
    assert "kept as outbox.jsonl.bad" in caplog.text


def test_an_outbox_that_cannot_be_read_now_is_left_for_later(tmp_path, monkeypatch):
    path = tmp_path / OUTBOX_NAME
    Outbox(path).add(ONE)

    def refuse(*_arguments):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(outbox_file, "open_at_once", refuse)
        with pytest.raises(OSError, match="Too many"):
            Outbox(path)

    assert Outbox(path).pending == (ONE,)


def test_a_line_that_could_not_be_read_again_is_never_written(tmp_path, monkeypatch):
    monkeypatch.setattr(outbox_file, "MAX_LINE_BYTES", 1_000)
    outbox = Outbox(tmp_path / OUTBOX_NAME)

    with pytest.raises(ValueError, match="longer than 1,000"):
        outbox.add(replace(ONE, source_ids=("x" * 1_000,)))
    assert outbox.pending == ()


@pytest.mark.parametrize("cut", [False, True], ids=["flipped", "cut"])
def test_a_fact_that_cannot_be_read_is_told(tmp_path, cut):
    path = tmp_path / OUTBOX_NAME
    outbox = Outbox(path)
    outbox.add(ONE)
    outbox.add(TWO)
    assert damage(path) == ""
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 1
    path.write_bytes(content[:-20] if cut else content)

    lines = "2 lines" if cut else "1 line"
    assert damage(path) == f"{lines} of outbox.jsonl cannot be read, so saved facts may be lost"
    assert Outbox(path).pending == (() if cut else (TWO,))
