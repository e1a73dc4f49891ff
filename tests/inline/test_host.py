"""Tools and events for a host: over handles, and over the socket of the daemon."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actors.answers import Answers
from actors.control import ControlServer
from actors.host import ActorAccess, ActorEvents
from actors.system import MemorySystem
from memory.checking import check_files
from memory.chunk_limits import chunk_limits
from memory.daemon_calls import ask_daemon
from memory.errors import DaemonError, DaemonNotRunning, ProviderUnavailable
from memory.events import DaemonEvents, subscribe
from memory.globs import Globs
from memory.index_check import DaemonIndex
from memory.local_access import LocalAccess
from memory.tools import memory_tools
from memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memory.outbox import SkillEvent
    from tests.inline.conftest import Pipe

ALICE = "# Alice\n\nAlice lives in Atlanta.\n"
VISIBILITY_S = 300.0


@pytest.fixture
def system(pipe: Pipe) -> MemorySystem:
    handles: Any = {
        name: getattr(pipe, name)
        for name in ("chunker", "pool", "keeper", "persister", "provider", "emitter")
    }
    return MemorySystem(watcher=handles["chunker"], workers=(), arguments=(), **handles)


@pytest.fixture
async def data(pipe: Pipe, system: MemorySystem) -> AsyncIterator[Path]:
    """The data folder of a memory whose daemon listens."""
    with tempfile.TemporaryDirectory(prefix="mem-") as short:  # the socket's path must be short
        answers = Answers(system, pipe.settings, pipe.root)
        server = ControlServer(Path(short), pipe.data, answers.commands())
        await server.start()
        yield pipe.data
        await server.stop()


async def test_the_live_index_is_compared_with_the_files_over_the_socket(pipe: Pipe, data: Path):
    """``memory check`` beside a daemon."""
    for name in ("wiki/alice.md", "wiki/bob.md"):
        pipe.write(name, ALICE)
    await pipe.touched("wiki/alice.md", "wiki/bob.md")
    pipe.write("wiki/silent.md", ALICE)
    limits = chunk_limits(None, pipe.info)
    files = Workspace(pipe.root, exclude=Globs())

    index = await asyncio.to_thread(DaemonIndex, data)
    report = await asyncio.to_thread(check_files, files, limits, index)
    vectors = (await asyncio.to_thread(index.named, ["wiki/bob.md"], wants_vectors=True)).vectors

    assert [(each.kind, each.path) for each in report.differences] == [
        ("missing", "wiki/silent.md")
    ]
    assert report.equal == ["wiki/alice.md", "wiki/bob.md"]
    assert vectors is not None
    assert vectors.shape == (report.num_chunks // 2, pipe.info.dim)
    assert index.rules.workspace == str(pipe.root)
    assert (index.identity.model, index.is_building) == (pipe.info.model, False)


async def test_beside_a_rebuild_the_live_index_is_compared_as_ever(pipe: Pipe, data: Path):
    pipe.write("wiki/alice.md", ALICE)
    await pipe.touched("wiki/alice.md")
    pipe.worker.error = ProviderUnavailable("local", "down")
    assert await pipe.keeper.begin_rebuild.remote()

    index = await asyncio.to_thread(DaemonIndex, data)

    assert (await pipe.keeper.status.remote()).building is not None
    assert not index.is_building


def tools_over(access: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in memory_tools(access)}


def local(pipe: Pipe) -> LocalAccess:
    return LocalAccess(pipe.data, pipe.settings, configured=pipe.root)


async def saved(pipe: Pipe, *facts: str) -> None:
    for fact in facts:
        await pipe.emitter.emit.remote(fact, ())


async def test_the_tools_answer_the_same_over_handles_and_over_the_socket(
    pipe: Pipe, system: MemorySystem, data: Path
):
    pipe.write("wiki/alice.md", ALICE)
    await pipe.touched("wiki/alice.md")
    calls = (
        ("memory_search", {"query": "atlanta"}),
        ("memory_get", {"path": "wiki/alice.md", "from": 3}),
        ("memory_get", {"path": "../outside.md"}),
        ("memory_get", {"path": "wiki/bob.md"}),
    )
    near = tools_over(ActorAccess(system, pipe.settings, pipe.root))
    far = tools_over(local(pipe))

    for name, arguments in calls:
        assert await near[name](arguments) == await far[name](arguments)
    found = await far["memory_search"]({"query": "atlanta"})
    assert "`wiki/alice.md:1-3`" in found.text
    assert (found.data["ready"], found.data["pending"]) == (True, 0)
    read = await far["memory_get"]({"path": "wiki/alice.md", "from": 3})
    assert read.text.endswith("\n\nAlice lives in Atlanta.\n")


async def test_a_fact_saved_by_a_tool_waits_with_its_related_files(pipe: Pipe, data: Path):
    """SPEC A5."""
    pipe.write("wiki/alice.md", ALICE)
    await pipe.touched("wiki/alice.md")
    save = tools_over(local(pipe))["memory_save"]

    first = await save({"content": "Alice moved from Atlanta."})
    second = await save({"content": "Alice moved from Atlanta."})

    assert (first.data["state"], second.data["state"]) == ("queued", "already queued")
    event = await DaemonEvents(data).take(VISIBILITY_S, 0)
    assert event is not None
    assert (event.prompt, event.related) == ("Alice moved from Atlanta.", ("wiki/alice.md",))


async def test_who_saves_is_told_that_no_model_can_file_it_unless_the_host_does(
    pipe: Pipe, system: MemorySystem
):
    for is_ours, problem in ((True, "no model is configured"), (False, None)):
        memory = pipe.settings.memory.model_copy(update={"save_handler": is_ours})
        settings = pipe.settings.model_copy(update={"memory": memory})

        answer = await ActorAccess(system, settings, pipe.root).save(f"fact {is_ours}")

        assert answer["state"] == "queued"
        assert str(answer.get("problem")).startswith(str(problem))


async def test_while_the_index_is_being_built_a_search_says_so(pipe: Pipe, system: MemorySystem):
    gate, real = asyncio.Event(), pipe.worker.embed

    async def waits(texts: tuple[str, ...]) -> Any:
        await gate.wait()
        return real(texts)

    pipe.worker.embed = waits  # type: ignore[method-assign]
    pipe.write("wiki/alice.md", ALICE)

    async def is_pending() -> bool:
        return (await pipe.chunker.status.remote()).num_pending == 1

    await pipe.until(is_pending)

    access = ActorAccess(system, pipe.settings, pipe.root)
    answer = await tools_over(access)["memory_search"]({"query": "atlanta"})

    gate.set()
    assert not answer.is_error
    assert "still being built (1 file pending)" in answer.text


async def test_an_event_belongs_to_one_subscriber_until_its_time_is_over(pipe: Pipe):
    await saved(pipe, "one", "two")
    first, second = ActorEvents(pipe.emitter), ActorEvents(pipe.emitter)

    taken = [await source.take(VISIBILITY_S, 0) for source in (first, second, first)]
    await pipe.clock.advance(VISIBILITY_S)
    again = await second.take(VISIBILITY_S, 0)

    assert [event and event.prompt for event in taken] == ["one", "two", None]
    assert again == taken[0]


async def test_what_was_acknowledged_never_comes_again(pipe: Pipe):
    await saved(pipe, "one")
    source = ActorEvents(pipe.emitter)
    event = await source.take(VISIBILITY_S, 0)
    assert event is not None

    assert await source.acknowledge(event.event_id)
    assert await source.acknowledge(event.event_id), "asked again, as after an answer that was lost"
    assert not await source.acknowledge("0" * 16)
    await pipe.clock.advance(VISIBILITY_S)
    assert await source.take(VISIBILITY_S, 0) is None


async def test_a_restart_of_the_emitter_hands_everything_out_again(pipe: Pipe):
    """At least once: who works on what is not written down."""
    await saved(pipe, "one")
    source = ActorEvents(pipe.emitter)
    before = await source.take(VISIBILITY_S, 0)
    pipe.emitter.shell = type(pipe.emitter.shell)(pipe.data, pipe.provider, pipe.clock)

    assert await source.take(VISIBILITY_S, 0) == before


async def test_a_waiting_subscriber_is_woken_by_a_fact_and_by_the_end_of_a_lease(pipe: Pipe):
    source = ActorEvents(pipe.emitter)
    waiting = asyncio.create_task(source.take(VISIBILITY_S, 20))
    await pipe.clock.advance(5)
    assert not waiting.done()
    await saved(pipe, "one")
    first = await asyncio.wait_for(waiting, 5)

    waiting = asyncio.create_task(source.take(VISIBILITY_S, 30))
    await pipe.clock.advance(29)
    assert not waiting.done()
    await pipe.clock.advance(1)
    assert await asyncio.wait_for(waiting, 5) is None

    await pipe.clock.advance(VISIBILITY_S - 40)
    waiting = asyncio.create_task(source.take(VISIBILITY_S, 30))
    await pipe.clock.advance(10)
    assert await asyncio.wait_for(waiting, 5) == first


async def test_two_subscribers_at_once_share_the_facts(pipe: Pipe, data: Path):
    async def handle(handled: list[str]) -> None:
        async for event in subscribe(DaemonEvents(data), visibility_s=VISIBILITY_S):
            handled.append(event.prompt)
            await DaemonEvents(data).acknowledge(event.event_id)

    shares: tuple[list[str], list[str]] = ([], [])
    tasks = [asyncio.create_task(handle(share)) for share in shares]
    facts = [f"fact {number}" for number in range(10)]
    await saved(pipe, *facts)

    async def all_done() -> bool:
        return await pipe.emitter.pending.remote(0.0) == ()

    await pipe.until(all_done)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert sorted(shares[0] + shares[1]) == sorted(facts)


async def test_a_subscriber_that_hangs_up_while_it_waits_takes_nothing(pipe: Pipe, data: Path):
    source = DaemonEvents(data)
    waiting = asyncio.create_task(source.take(VISIBILITY_S, 20))

    async def is_waiting() -> bool:
        return "wait" in pipe.emitter.calls

    await pipe.until(is_waiting)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    others = {task for task in asyncio.all_tasks() if "_serve" in repr(task.get_coro())}
    if others:
        await asyncio.wait(others, timeout=5)
    await saved(pipe, "one")

    event = await source.take(VISIBILITY_S, 0)
    assert event is not None
    assert event.prompt == "one"


async def test_a_subscriber_that_hangs_up_while_related_files_are_looked_for_takes_nothing(
    pipe: Pipe,
):
    await saved(pipe, "one")
    source, gate, real = ActorEvents(pipe.emitter), asyncio.Event(), pipe.provider.shell.search

    async def waits(*arguments: Any) -> Any:
        await gate.wait()
        return await real(*arguments)

    pipe.provider.shell.search = waits
    taking = asyncio.create_task(source.take(VISIBILITY_S, 0))

    async def is_searching() -> bool:
        return "search" in pipe.provider.calls

    await pipe.until(is_searching)
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    gate.set()

    event = await source.take(VISIBILITY_S, 20)
    assert event is not None
    assert event.prompt == "one"


async def test_the_time_of_a_taker_begins_when_the_related_files_are_known(pipe: Pipe, monkeypatch):
    """Else a slow search would have eaten it, and somebody else would get the event at once."""
    await saved(pipe, "one")
    real = pipe.provider.shell.search

    async def takes_four_seconds(*arguments: Any) -> Any:
        pipe.clock._now += 4
        return await real(*arguments)

    pipe.provider.shell.search = takes_four_seconds
    source = ActorEvents(pipe.emitter)
    assert await source.take(2, 0) is not None

    assert await source.take(2, 0) is None
    await pipe.clock.advance(2)
    assert await source.take(2, 0) is not None


async def test_a_subscriber_waits_for_a_daemon_that_does_not_run(pipe: Pipe, caplog):
    """One warning, however often it asks."""
    event: Any = object()

    class Source:
        """Is not there three times, then has an event."""

        failures = 3

        async def take(self, visibility_s: float, wait_s: float) -> SkillEvent | None:
            if self.failures:
                self.failures -= 1
                raise DaemonNotRunning("no daemon")
            return event

        async def acknowledge(self, event_id: str) -> bool:
            return True

    events = subscribe(Source(), clock=pipe.clock)
    first = asyncio.ensure_future(anext(events))
    await pipe.clock.advance(0.5 + 1 + 2)

    assert await asyncio.wait_for(first, 5) is event
    assert [record.getMessage() for record in caplog.records if record.name == "memory.events"] == [
        "waiting for events: no daemon"
    ]


async def test_without_a_daemon_files_are_read_and_saving_says_how_to_start_it(pipe: Pipe):
    pipe.write("wiki/alice.md", ALICE)
    tools = tools_over(LocalAccess(pipe.data / "none", pipe.settings, configured=pipe.root))

    read = await tools["memory_get"]({"path": "wiki/alice.md"})
    found = await tools["memory_search"]({"query": "alice"})
    save = await tools["memory_save"]({"content": "x"})

    assert "Alice lives in Atlanta." in read.text
    assert found.data == {"state": "not_indexed"}
    assert save.data == {"state": "not_running"}


async def test_a_refusal_and_an_answer_that_never_comes_are_errors(pipe: Pipe, data: Path):
    source = DaemonEvents(data)
    with pytest.raises(DaemonError, match="not understood"):
        await ask_daemon(data, "frobnicate", 5.0)
    for name in ("visibility_s", "wait_s"):
        with pytest.raises(DaemonError, match="seconds is finite"):
            await ask_daemon(data, "take", 5.0, **{name: float("nan")})
    with pytest.raises(DaemonError, match=r"did not answer within 0\.05 s"):
        await ask_daemon(data, "take", 0.05, wait_s=20.0)

    assert await source.take(VISIBILITY_S, 0) is None
