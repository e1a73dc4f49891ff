"""Processes of actors, and how often they changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from actors import roster as module
from actors.roster import Roster
from tests.inline.handles import InlineHandle


@dataclass
class Pinged:
    pid: int
    is_silent: bool = False

    async def ping(self) -> int:
        if self.is_silent:
            await asyncio.Event().wait()
        return self.pid


@pytest.fixture
def actors() -> dict[str, InlineHandle]:
    return {name: InlineHandle(Pinged(pid)) for name, pid in (("Watcher", 11), ("Chunker", 22))}


async def states(roster: Roster) -> dict[str, str]:
    return {actor["name"]: actor["state"] for actor in await roster.check()}


async def test_before_the_first_answer_an_actor_is_starting(actors):
    actors["Watcher"].dead = True

    assert await states(Roster(actors)) == {"Watcher": "starting", "Chunker": "alive"}


async def test_a_new_process_is_a_restart_told_once(actors):
    roster = Roster(actors)
    await roster.check()
    actors["Chunker"].dead = True
    assert await states(roster) == {"Watcher": "alive", "Chunker": "restarting"}
    assert roster.restarted() == []

    actors["Chunker"].dead = False
    actors["Chunker"].shell.pid = 33
    found = {actor["name"]: actor for actor in await roster.check()}

    assert found["Chunker"] == {"name": "Chunker", "pid": 33, "restarts": 1, "state": "alive"}
    assert found["Watcher"] == {"name": "Watcher", "pid": 11, "restarts": 0, "state": "alive"}
    assert roster.restarted() == [("Chunker", 33)]
    assert roster.restarted() == []


async def test_two_questions_at_once_count_a_restart_once(actors):
    roster = Roster(actors)
    await roster.check()
    actors["Chunker"].shell.pid = 33

    await asyncio.gather(roster.check(), roster.check())

    assert roster.restarted() == [("Chunker", 33)]


async def test_an_actor_that_does_not_answer_in_time_holds_up_nobody(actors, monkeypatch):
    roster = Roster(actors)
    await roster.check()
    monkeypatch.setattr(module, "PING_DEADLINE_S", 0.01)
    actors["Watcher"].shell.is_silent = True

    assert await states(roster) == {"Watcher": "silent", "Chunker": "alive"}


async def test_what_is_returned_is_a_copy(actors):
    roster = Roster(actors)
    for actor in await roster.check():
        actor["restarts"] = 99

    assert {actor["restarts"] for actor in await roster.check()} == {0}
