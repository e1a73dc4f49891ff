"""Facts wait for their handler, whatever is killed in between."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from memory.outbox import Outbox, SkillEvent, event_id

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
