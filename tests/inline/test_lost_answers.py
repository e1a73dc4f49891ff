"""A command is carried out, its process ends, and the caller asks again: it is done once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from actors import applying, context_provider
from actors.event_emitter import EventEmitter
from actors.host import ActorEvents
from actors.loops import call
from memory.outbox import OUTBOX_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.inline.conftest import Pipe

FACT = "Alice moved to Boston."
NUM_NEW = 40
NUM_OLD = 5
CHANGES = frozenset({"apply", "add", "keep", "sync", "save"})


def first_and_third(names: frozenset[str], restart: Callable[[], None]) -> Callable[[str], bool]:
    """Loses the first and the third answer of each method, and the process that gave it."""
    calls: Counter[str] = Counter()

    def loses(name: str) -> bool:
        calls[name] += 1
        is_lost = name in names and calls[name] in {1, 3}
        if is_lost:
            restart()
        return is_lost

    return loses


@pytest.mark.slow
async def test_changes_whose_answers_are_lost_are_in_the_index_once(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    """FAULTS 68: one by one and many together; each is on disk before its answer is on the way."""
    monkeypatch.setattr(applying, "MIN_BATCH_CHUNKS", 6)
    monkeypatch.setattr(applying, "MAX_BATCH_CHUNKS", 30)
    for number in range(NUM_OLD):
        pipe.write(f"old/{number}.md", f"# Old {number}\n\nThe first text of {number}.\n")
    await pipe.settle()
    pipe.keeper.loses = first_and_third(CHANGES, pipe.restart_keeper)
    for number in range(NUM_OLD):
        pipe.write(f"old/{number}.md", f"# Old {number}\n\nThe second text of {number}.\n")
    for number in range(NUM_NEW):
        sections = "\n".join(f"## Part {n}\n\nPart {n} of {number}.\n" for n in range(3))
        pipe.write(f"new/{number}.md", f"# New {number}\n\n{sections}")
    await pipe.chunker.notice.remote((), True)
    await pipe.reconciled()
    await pipe.settle()

    assert {"apply", "add", "sync"} <= set(pipe.keeper.calls)
    assert len(await pipe.paths()) == NUM_OLD + NUM_NEW
    assert pipe.differences() == []


@pytest.mark.parametrize("method", ["search", "section"])
@pytest.mark.parametrize("how", ["is away", "never answers"])
async def test_who_asks_a_keeper_that_is_killed_is_told_so_at_the_deadline(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, method: str, how: str
):
    """FAULTS 67: with an error that the daemon tells its clients in words."""
    monkeypatch.setattr(context_provider, "KEEPER_DEADLINE_S", 0.05)
    pipe.write("a.md", "# Zebra\n\nStripes.\n")
    await pipe.settle()
    if how == "is away":
        pipe.keeper.dead = True
    else:
        pipe.keeper.shell.search = lambda *_arguments: asyncio.Event().wait()
    arguments = (3,) if method == "search" else ()

    with pytest.raises(TimeoutError):
        await getattr(pipe.provider, method).remote("zebra", *arguments)


async def test_a_search_amid_which_the_keeper_ended_is_answered_by_the_next_one(pipe: Pipe):
    """FAULTS 67."""
    pipe.write("a.md", "# Zebra\n\nStripes.\n")
    await pipe.settle()
    pipe.keeper.loses = first_and_third(frozenset({"search"}), pipe.restart_keeper)
    asking = pipe.provider.search.remote("zebra", 3)
    await pipe.clock.advance(5)
    result = await asking

    assert pipe.keeper.calls.count("search") == 2
    assert [hit.path for hit in result.hits] == ["a.md"]


@pytest.fixture
def events(pipe: Pipe) -> ActorEvents:
    """Events of an emitter that carries a command out and ends before it answers."""

    def restart() -> None:
        pipe.emitter.shell = EventEmitter(pipe.data, pipe.provider, pipe.clock)

    names = frozenset({"emit", "acknowledge", "conclude", "fail", "retry_failed"})
    pipe.emitter.loses = first_and_third(names, restart)
    return ActorEvents(pipe.emitter, pipe.clock)  # type: ignore[arg-type]


async def told(pipe: Pipe, method: str, *arguments: Any) -> Any:
    """Returns what a command answers in the end."""
    attempt = getattr(pipe.emitter, method).remote
    asking = asyncio.create_task(
        call(lambda: attempt(*arguments), clock=pipe.clock, deadline_s=30.0)
    )
    await pipe.clock.advance(5)
    return await asking


async def test_a_fact_whose_receipt_is_lost_is_one_event(pipe: Pipe, events: ActorEvents):
    """FAULTS 68."""
    receipt = await told(pipe, "emit", FACT, ())

    assert pipe.emitter.calls.count("emit") == 2
    assert [event.event_id for event in await events.waiting()] == [receipt.event_id]
    assert (pipe.data / OUTBOX_NAME).read_text().count(FACT) == 1


@pytest.mark.parametrize("method", ["acknowledge", "conclude"])
async def test_an_end_whose_answer_is_lost_is_an_end(pipe: Pipe, events: ActorEvents, method: str):
    """FAULTS 68: asked again it is no refusal."""
    receipt = await told(pipe, "emit", FACT, ())
    lines = ("created wiki/a.md",) if method == "conclude" else ()
    is_ended = await told(pipe, method, receipt.event_id, *lines)

    assert is_ended
    assert await events.waiting() == ()
    assert (pipe.data / OUTBOX_NAME).read_text().count("acknowledged") == 1


async def test_a_failure_whose_answer_is_lost_counts_once(pipe: Pipe, events: ActorEvents):
    """FAULTS 68: else a fact would be parked after three attempts instead of five."""
    receipt = await told(pipe, "emit", FACT, ())
    failed = await told(pipe, "fail", receipt.event_id, "failed \u2014 time limit")
    status = await pipe.emitter.status.remote()

    assert pipe.emitter.calls.count("fail") == 2
    assert failed.attempts == 1
    assert status.failed == (failed,)
    assert await told(pipe, "retry_failed") == 0, "the first one did it"
    assert (await pipe.emitter.status.remote()).failed == ()
    assert len(await events.waiting()) == 1
