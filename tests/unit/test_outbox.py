"""Facts wait for their handler, whatever is killed in between."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from memory.errors import StoreError
from memory.outbox import (
    MAX_ATTEMPTS,
    MAX_RESULTS,
    Outbox,
    SaveResult,
    SkillEvent,
    event_id,
    read_pending,
)
from memory.outbox_file import MAX_COMPACT_BYTES
from tests.unit.scripted_disk import ScriptedDisk

if TYPE_CHECKING:
    from pathlib import Path


def event(prompt: str) -> SkillEvent:
    return SkillEvent(event_id(prompt), prompt, ("chat-1",), ("wiki/a.md",), 12.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "outbox.jsonl"


def test_nothing_is_written_before_the_first_event(path):
    assert Outbox(path).pending == ()
    assert not path.exists()


def test_an_event_survives_a_restart_with_all_its_fields(path):
    assert Outbox(path).add(event("Alice moved"))

    assert Outbox(path).pending == (event("Alice moved"),)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_event_of_an_earlier_version_still_waits(path):
    path.parent.mkdir()
    fields = {
        "event_id": event_id("Alice moved"),
        "prompt": "Alice moved",
        "source_ids": ["chat-1"],
        "related": ["wiki/a.md"],
        "created_at": 12.5,
        "skill": "skills:memory",
    }
    path.write_text(json.dumps({"event": fields}) + "\n")

    assert Outbox(path).pending == read_pending(path) == (event("Alice moved"),)


def test_the_same_text_is_one_event_before_and_after_it_is_handled(path):
    outbox = Outbox(path)

    assert outbox.add(event("Alice moved"))
    assert not outbox.add(event("Alice moved"))
    assert outbox.state(event_id("Alice moved")) == "queued"
    assert outbox.acknowledge(event_id("Alice moved"))
    assert not outbox.add(event("Alice moved"))
    assert outbox.state(event_id("Alice moved")) == "saved"
    assert Outbox(path).state(event_id("Alice moved")) == "saved"


def test_events_come_oldest_first_and_only_a_pending_one_can_be_acknowledged(path):
    outbox = Outbox(path)
    for prompt in ("one", "two", "three"):
        outbox.add(event(prompt))

    assert outbox.acknowledge(event_id("two"))
    assert not outbox.acknowledge(event_id("two"))
    assert not outbox.acknowledge("unknown")
    assert [each.prompt for each in Outbox(path).pending] == ["one", "three"]


def test_half_a_line_left_by_a_kill_costs_only_that_line(path):
    Outbox(path).add(event("whole"))
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole + whole[:cut])

        outbox = Outbox(path)
        outbox.add(event("later"))

        assert [each.prompt for each in Outbox(path).pending] == ["whole", "later"]


def test_an_event_with_any_text_is_kept_verbatim(path):
    prompt = 'line\n"quoted" \u2028 \U0001f600 \ud800 \x00'
    Outbox(path).add(event(prompt))

    assert [each.prompt for each in Outbox(path).pending] == [prompt]


def test_the_name_of_the_file_survives_a_power_loss_as_its_first_event_does(path):
    """A line that was synced is lost with the file if its folder never learned the name."""
    path.parent.mkdir()
    disk = ScriptedDisk()
    outbox = Outbox(path, disk=disk)
    outbox.add(event("one"))
    assert disk.calls == ["create", "write", "fsync", "fsync_folder"]
    assert disk.folders == [path.parent]

    outbox.add(event("two"))
    assert disk.calls == ["create", "write", "fsync", "fsync_folder", "write", "fsync"]


def test_a_name_that_an_earlier_process_may_not_have_synced_is_synced(path):
    Outbox(path).add(event("one"))
    disk = ScriptedDisk()

    Outbox(path, disk=disk).add(event("two"))

    assert disk.calls == ["write", "fsync", "fsync_folder"]


LONG = "x" * (MAX_COMPACT_BYTES // 4)


def filled(path: Path, *, num_events: int, num_acknowledged: int) -> list[SkillEvent]:
    """Fills an outbox with long events of which the first ones are acknowledged."""
    outbox = Outbox(path)
    events = [event(f"{number} {LONG}") for number in range(num_events)]
    for each in events:
        outbox.add(each)
    for each in events[:num_acknowledged]:
        outbox.acknowledge(each.event_id)
    return events


def test_opening_a_large_outbox_drops_the_text_of_what_was_handled(path):
    events = filled(path, num_events=8, num_acknowledged=6)

    outbox = Outbox(path)

    assert path.stat().st_size < 3 * len(LONG)
    for reader in (outbox, Outbox(path)):
        assert reader.pending == (events[6], events[7])
        assert {reader.state(each.event_id) for each in events[:6]} == {"saved"}
        assert not reader.add(events[0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("num_events", "num_acknowledged"), [(8, 3), (2, 2)])
def test_an_outbox_that_is_small_or_mostly_waiting_is_left_alone(
    path, num_events, num_acknowledged
):
    filled(path, num_events=num_events, num_acknowledged=num_acknowledged)
    before, written_at = path.read_bytes(), path.stat().st_mtime_ns

    disk = ScriptedDisk()
    Outbox(path, disk=disk)

    assert disk.calls == []
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, written_at)


def test_what_is_left_of_a_compaction_is_not_compacted_at_every_start(path):
    """Acknowledged ids stay, however many they are: the same text is never one event more."""
    path.parent.mkdir()
    ids = [f"{number:016x}" for number in range(MAX_COMPACT_BYTES // 20)]
    path.write_text("".join(f'{{"acknowledged": "{each}"}}\n' for each in ids))

    disk = ScriptedDisk()
    outbox = Outbox(path, disk=disk)

    assert path.stat().st_size > MAX_COMPACT_BYTES
    assert disk.calls == []
    assert outbox.state(ids[0]) == "saved"


@pytest.mark.parametrize("failing", ["fsync", "rename"])
def test_a_compaction_that_fails_leaves_the_old_file_and_a_working_outbox(path, failing, caplog):
    events = filled(path, num_events=8, num_acknowledged=6)
    before = path.read_bytes()

    outbox = Outbox(path, disk=ScriptedDisk(failing))

    assert path.read_bytes() == before
    assert outbox.pending == (events[6], events[7])
    assert "No space left on device" in caplog.text
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_line_of_a_later_version_outlives_a_compaction(path):
    filled(path, num_events=8, num_acknowledged=8)
    foreign = b'{"postponed": "0123456789abcdef"}'
    with path.open("ab") as file:
        file.write(foreign + b"\n")

    Outbox(path)

    assert path.stat().st_size < len(LONG)
    assert foreign in path.read_bytes().splitlines()


def test_what_is_handled_while_it_is_open_never_fills_the_disk(path):
    outbox, largest = Outbox(path), 0
    for number in range(200):
        each = event(f"{number} {'x' * 5_000}")
        outbox.add(each)
        outbox.acknowledge(each.event_id)
        largest = max(largest, path.stat().st_size)

    assert largest < MAX_COMPACT_BYTES + 2 * 5_500
    assert Outbox(path).state(event_id(f"0 {'x' * 5_000}")) == "saved"


def test_only_the_last_ids_of_what_was_handled_are_kept(path, monkeypatch):
    monkeypatch.setattr("memory.outbox.MAX_HANDLED", 3)
    outbox = Outbox(path)
    for number in range(5):
        outbox.add(event(f"{number}"))
        outbox.acknowledge(event_id(f"{number}"))

    for each in (outbox, Outbox(path)):
        assert [each.state(event_id(f"{n}")) for n in range(5)] == ["unknown"] * 2 + ["saved"] * 3


@pytest.mark.parametrize("limit", [("MAX_PENDING", 2), ("MAX_PENDING_BYTES", 500)])
def test_a_fact_beyond_what_may_wait_is_refused_until_one_is_handled(path, monkeypatch, limit):
    monkeypatch.setattr(f"memory.outbox.{limit[0]}", limit[1])
    outbox = Outbox(path)
    outbox.add(event("one"))
    outbox.add(event("two"))
    before = path.read_bytes()

    with pytest.raises(StoreError, match=r"outbox\.jsonl is full: 2 facts wait"):
        outbox.add(event("three"))
    assert path.read_bytes() == before
    assert not outbox.add(event("two"))
    outbox.acknowledge(event_id("one"))
    assert outbox.add(event("three"))
    assert [each.prompt for each in Outbox(path).pending] == ["two", "three"]


def test_what_a_killed_compaction_left_is_swept(path):
    path.parent.mkdir()
    (path.parent / f".{path.name}.0badf00d.tmp").write_text("half")

    Outbox(path)

    assert list(path.parent.iterdir()) == []


def test_a_reader_sees_what_waits_and_touches_nothing(path):
    assert read_pending(path) == ()
    assert not path.parent.exists()
    outbox = Outbox(path)
    for prompt in ("one", "two", "three"):
        outbox.add(event(prompt))
    outbox.acknowledge(event_id("two"))
    with path.open("ab") as file:
        file.write(b'{"event": {"event_id": "half')
    before = path.read_bytes()

    assert [each.prompt for each in read_pending(path)] == ["one", "three"]
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def reasons(outbox: Outbox) -> list[tuple[str, int, str]]:
    return [(each.event_id, each.attempts, each.reason) for each in outbox.failed]


def test_a_failed_event_waits_longer_each_time_and_is_parked_in_the_end(path):
    outbox, now, waits = Outbox(path), 1000.0, []
    outbox.add(event("poison"))
    outbox.add(event("good"))
    identity = event_id("poison")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert event("poison") in outbox.due(now)
        failed = outbox.fail(identity, f"reason {attempt}", now)
        waits.append(failed.retry_at - now)
        assert outbox.due(failed.retry_at - 1) == (event("good"),)
        assert reasons(Outbox(path)) == [(identity, attempt, f"reason {attempt}")]
        now = failed.retry_at

    assert waits == [60, 240, 960, 3840, 15360]
    assert failed.is_parked
    assert outbox.due(now + 1e9) == (event("good"),)
    assert outbox.pending == (event("poison"), event("good"))
    assert Outbox(path).due(now + 1e9) == (event("good"),)


def test_a_parked_event_is_delivered_again_once_somebody_asks(path):
    outbox, identity = Outbox(path), event_id("poison")
    outbox.add(event("poison"))
    now = 0.0
    for _attempt in range(MAX_ATTEMPTS):
        now = outbox.fail(identity, "reason", now).retry_at

    assert outbox.retry(identity)
    assert not outbox.retry(identity)
    assert outbox.due(0.0) == (event("poison"),)
    assert Outbox(path).due(0.0) == (event("poison"),)
    assert Outbox(path).failed == ()


def test_a_failure_that_is_told_twice_counts_once(path):
    """FAULTS 68: the emitter was killed after it wrote it down and before it answered."""
    outbox, identity = Outbox(path), event_id("poison")
    outbox.add(event("poison"))
    first = outbox.fail(identity, "reason", 0.0)
    again = Outbox(path).fail(identity, "reason", first.retry_at - 1)

    assert again == first
    assert first.attempts == 1
    assert Outbox(path).fail(identity, "reason", first.retry_at).attempts == 2


def test_only_a_pending_event_can_fail(path):
    outbox = Outbox(path)
    outbox.add(event("done"))
    outbox.acknowledge(event_id("done"))

    assert outbox.fail(event_id("done"), "reason", 0.0) is None
    assert outbox.fail("unknown", "reason", 0.0) is None
    assert outbox.failed == ()


def test_a_result_is_kept_with_the_acknowledgement(path):
    outbox = Outbox(path)
    for prompt in ("one", "two", "three"):
        outbox.add(event(prompt))
    outbox.fail(event_id("two"), "reason", 0.0)
    first = SaveResult(event_id("one"), "created wiki/a.md", 1.0)
    second = SaveResult(event_id("two"), "noop", 2.0)

    outbox.acknowledge(event_id("one"), first)
    outbox.acknowledge(event_id("two"), second)
    outbox.acknowledge(event_id("three"))

    for each in (outbox, Outbox(path)):
        assert each.results == (second, first)
        assert each.failed == ()
        assert each.pending == ()


def test_a_compaction_keeps_failures_and_the_last_results(path):
    outbox, size = Outbox(path), 0
    num_events = MAX_RESULTS + 10
    for number in range(num_events):
        prompt = f"{number} {'x' * 2_000}"
        outbox.add(event(prompt))
        outbox.acknowledge(event_id(prompt), SaveResult(event_id(prompt), f"{number}", 1.0))
        size = max(size, path.stat().st_size)
    outbox.add(event("poison"))
    outbox.fail(event_id("poison"), "reason", 5.0)

    assert path.stat().st_size < size / 2
    for each in (outbox, Outbox(path)):
        assert [result.line for result in each.results] == [
            f"{number}" for number in range(num_events - 1, num_events - 1 - MAX_RESULTS, -1)
        ]
        assert reasons(each) == [(event_id("poison"), 1, "reason")]
        assert each.state(event_id(f"0 {'x' * 2_000}")) == "saved"
