"""Saved facts and the actor that has them filed, over the real emitter and index."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import openai  # noqa: F401 - so that no test pays for the import
import pytest
from pydantic import SecretStr

from actors.save_handler import POLL_S, REJECTED_PAUSE_S, UNUSABLE_PAUSE_S, SaveHandler
from memory.agent_run.chat import Reply, ToolCall
from memory.agent_run.saving import connect
from memory.config import CustomProvider, InferenceSettings
from memory.errors import ChatRejected, ChatUnavailable
from memory.outbox import MAX_ATTEMPTS
from tests.chat_server import ChatServer, calls, says
from tests.inline.handles import InlineHandle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from tests.inline.conftest import Pipe

HANDLER = "---\ntools: fs_read, fs_write, memory_search\n---\nFile the snippet.\n"
FACT = "Alice moved to Atlanta"


def speaks(text: str) -> Reply:
    return Reply(text, (), 1, {"role": "assistant", "content": text})


def asks_for(name: str, **arguments: object) -> Reply:
    call = ToolCall("c1", name, json.dumps(arguments))
    return Reply("", (call,), 1, {"role": "assistant", "content": None})


class FakeChat:
    """A model that follows a script; its last reply, or error, is repeated."""

    provider = "fake"

    def __init__(self) -> None:
        self.script: Sequence[Reply | Exception] = (speaks("noop"),)
        self.conversations: list[Any] = []
        self.is_closed = threading.Event()

    def complete(self, messages: Sequence[Any], _tools: Sequence[Any], _timeout_s: float) -> Reply:
        self.conversations.append(list(messages))
        reply = self.script[min(len(self.conversations), len(self.script)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self) -> None:
        self.is_closed.set()


@pytest.fixture
def chat() -> FakeChat:
    return FakeChat()


@pytest.fixture
def handling(pipe: Pipe, chat: FakeChat) -> Iterator[Callable[..., InlineHandle]]:
    """Starts the actor."""
    running = []

    def start(url: str = "http://127.0.0.1:9/v1", **options: Any) -> InlineHandle:
        provider = CustomProvider(
            type="openai-compatible", base_url=url, api_key=SecretStr("sk-canary")
        )
        inference = InferenceSettings(
            custom_providers={"fake": provider}, default_model="fake/model"
        )
        settings = pipe.settings.model_copy(update={"inference": inference})
        options = {"connect": lambda _: chat} | options
        shell = SaveHandler(settings, pipe.root, pipe.emitter, pipe.provider, pipe.clock, **options)
        running.append(shell)
        return InlineHandle(shell)

    yield start
    for shell in running:
        shell._ending.set()
        shell._task.cancel()


async def saves(pipe: Pipe) -> Any:
    return await pipe.emitter.status.remote()


def has_results(pipe: Pipe, number: int = 1) -> Callable[[], Awaitable[bool]]:
    async def condition() -> bool:
        return len((await saves(pipe)).results) == number

    return condition


def has_attempts(pipe: Pipe, number: int) -> Callable[[], Awaitable[bool]]:
    async def condition() -> bool:
        failed = (await saves(pipe)).failed
        return bool(failed) and failed[0].attempts == number

    return condition


def is_problem(handler: InlineHandle, text: str) -> Callable[[], Awaitable[bool]]:
    async def condition() -> bool:
        return text in (await handler.status.remote()).problem

    return condition


async def test_a_fact_becomes_a_file_that_can_be_found(pipe: Pipe, handling, chat: FakeChat):
    """SPEC A6: and what it writes is no event (FAULTS 91)."""
    pipe.write("skills/memory/save.md", HANDLER)
    pipe.write("wiki/people/alice.md", "# Alice\n\nAlice is a PM.\n")
    await pipe.settle()
    chat.script = (
        asks_for("memory_search", query="Alice"),
        asks_for("fs_write", path="wiki/places/atlanta.md", content="# Atlanta\n\nAlice is here."),
        speaks("created wiki/places/atlanta.md"),
    )
    handling()

    receipt = await pipe.emitter.emit.remote(FACT, ("chat-1",))
    await pipe.until(has_results(pipe))
    await pipe.touched("wiki/places/atlanta.md")

    status = await saves(pipe)
    assert [(each.event_id, each.line) for each in status.results] == [
        (receipt.event_id, "created wiki/places/atlanta.md")
    ]
    assert status.num_pending == 0
    assert "wiki/places/atlanta.md" in await pipe.paths()
    system, user = (message["content"] for message in chat.conversations[0])
    assert FACT in user
    assert FACT not in system
    assert "wiki/people/alice.md" in user
    found = chat.conversations[1][-1]["content"]
    assert "wiki/people/alice.md" in found
    assert (await pipe.emitter.emit.remote(FACT, ())).state == "already saved"


async def test_facts_are_handled_oldest_first_and_one_at_a_time(pipe: Pipe, handling, chat):
    pipe.write("skills/memory/save.md", HANDLER)
    for fact in ("one", "two", "three"):
        await pipe.emitter.emit.remote(fact, ())
    handling()

    await pipe.until(has_results(pipe, 3))

    told = [conversation[1]["content"] for conversation in chat.conversations]
    order = [next(fact for fact in ("one", "two", "three") if fact in text) for text in told]
    assert order == ["one", "two", "three"]


async def test_through_the_real_sdk_a_fact_is_filed(pipe: Pipe, handling):
    pipe.write("skills/memory/save.md", HANDLER)
    server = ChatServer()
    server.script = (
        calls(("fs_write", {"path": "wiki/a.md", "content": "# A\n"})),
        says("created wiki/a.md"),
    )
    handling(f"{server.url}/v1", connect=connect)
    await pipe.emitter.emit.remote(FACT, ())

    try:
        assert await asyncio.to_thread(server.has_answered, 2)
        await pipe.until(has_results(pipe))
    finally:
        server.close()

    assert (pipe.root / "wiki/a.md").read_text() == "# A\n"


async def test_a_missing_handler_keeps_the_fact_queued_and_says_so(pipe: Pipe, handling, chat):
    handler = handling()
    await pipe.emitter.emit.remote(FACT, ())
    await pipe.until(is_problem(handler, "skills/memory/save.md is missing"))
    status = await saves(pipe)
    assert (status.num_pending, status.failed) == (1, ())
    assert chat.conversations == []

    pipe.write("skills/memory/save.md", HANDLER)
    await pipe.clock.advance(UNUSABLE_PAUSE_S)
    await pipe.until(has_results(pipe))

    assert (await handler.status.remote()).problem == ""


async def test_a_handler_without_a_model_keeps_the_fact_queued_and_says_so(pipe: Pipe, handling):
    pipe.write("skills/memory/save.md", HANDLER.replace("---\nFile", "model: openai/o\n---\nFile"))
    handler = handling()
    await pipe.emitter.emit.remote(FACT, ())

    await pipe.until(is_problem(handler, "provider openai has no key"))

    assert (await saves(pipe)).failed == ()


async def test_a_refused_key_is_no_failure_of_the_fact_and_is_asked_again_slowly(
    pipe: Pipe, handling, chat: FakeChat
):
    """FAULTS 52."""
    pipe.write("skills/memory/save.md", HANDLER)
    chat.script = (ChatRejected("fake", "the API key is refused, HTTP 401"), speaks("noop"))
    handler = handling()
    await pipe.emitter.emit.remote(FACT, ())
    await pipe.until(is_problem(handler, "the API key is refused"))
    await pipe.clock.advance(REJECTED_PAUSE_S - 60)
    assert len(chat.conversations) == 1

    await pipe.clock.advance(61)
    await pipe.until(has_results(pipe))

    assert len(chat.conversations) == 2


async def test_a_fact_that_keeps_failing_is_parked_and_holds_up_nobody(
    pipe: Pipe, handling, chat: FakeChat
):
    pipe.write("skills/memory/save.md", HANDLER)
    chat.script = (speaks("I extended wiki/people/alice.md"),)
    handling()
    await pipe.emitter.emit.remote(FACT, ())
    for attempt in range(1, MAX_ATTEMPTS):
        await pipe.until(has_attempts(pipe, attempt))
        pipe.clock.set_wall_clock_by(60 * 4 ** (attempt - 1))
        await pipe.clock.advance(POLL_S)
    await pipe.until(has_attempts(pipe, MAX_ATTEMPTS))
    pipe.clock.set_wall_clock_by(86_400)
    await pipe.clock.advance(POLL_S)

    assert len(chat.conversations) == MAX_ATTEMPTS
    (failed,) = (await saves(pipe)).failed
    assert (failed.is_parked, failed.reason) == (True, "failed \u2014 the model wrote nothing")

    chat.script = (speaks("noop"),)
    await pipe.emitter.emit.remote("another fact", ())
    await pipe.until(has_results(pipe))
    again = await pipe.emitter.emit.remote(FACT, ())
    await pipe.until(has_results(pipe, 2))

    assert again.state == "already queued"
    assert (await saves(pipe)).num_pending == 0


async def test_the_next_start_of_the_daemon_has_parked_facts_tried_again(
    pipe: Pipe, handling, chat
):
    pipe.write("skills/memory/save.md", HANDLER)
    receipt = await pipe.emitter.emit.remote(FACT, ())
    for _attempt in range(MAX_ATTEMPTS):
        await pipe.emitter.fail.remote(receipt.event_id, "failed")
    handling()
    await pipe.clock.advance(60)
    assert chat.conversations == []

    assert await pipe.emitter.retry_failed.remote() == 1

    await pipe.until(has_results(pipe))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ChatUnavailable("fake", "cannot be reached"), "failed \u2014 fake: cannot be reached"),
        (ZeroDivisionError("sk-canary"), "failed \u2014 internal error, see the log"),
    ],
)
async def test_a_run_that_breaks_off_is_a_failure_of_this_attempt(
    pipe: Pipe, handling, chat: FakeChat, monkeypatch, error, reason
):
    pipe.write("skills/memory/save.md", HANDLER)
    monkeypatch.setattr("memory.agent_run.patience.MAX_TRIES", 1)
    chat.script = (error, speaks("noop"))
    handling()
    await pipe.emitter.emit.remote(FACT, ())

    await pipe.until(has_attempts(pipe, 1))
    (failed,) = (await saves(pipe)).failed
    assert failed.reason.startswith(reason)
    assert "canary" not in failed.reason
    await pipe.clock.advance(90)

    await pipe.until(has_results(pipe))


async def test_an_answer_that_never_ends_is_left_alone(
    pipe: Pipe, handling, chat: FakeChat, monkeypatch
):
    pipe.write("skills/memory/save.md", HANDLER)
    monkeypatch.setattr("actors.save_handler.RUN_DEADLINE_S", 0.05)
    gate = threading.Event()

    def trickles(*_arguments: object) -> Reply:
        gate.wait(10)
        return asks_for("fs_write", path="wiki/late.md", content="# Late")

    chat.complete = trickles  # type: ignore[method-assign]
    handling()
    await pipe.emitter.emit.remote(FACT, ())

    await pipe.until(has_attempts(pipe, 1))
    gate.set()
    assert await asyncio.to_thread(chat.is_closed.wait, 10)

    assert (await saves(pipe)).failed[0].reason.startswith("failed \u2014 time limit")
    assert not (pipe.root / "wiki/late.md").exists()


async def test_a_restart_between_run_and_acknowledgement_handles_the_fact_again(
    pipe: Pipe, handling, chat: FakeChat
):
    """At least once: the second run finds what the first one wrote."""
    pipe.write("skills/memory/save.md", HANDLER)
    chat.script = (
        asks_for("fs_write", path="wiki/a.md", content="# A"),
        speaks("created wiki/a.md"),
        speaks("noop"),
    )
    real = pipe.emitter.shell.conclude

    async def dies(*_arguments: object) -> bool:
        raise ValueError("killed before it was written down")

    pipe.emitter.shell.conclude = dies
    first = handling()
    await pipe.emitter.emit.remote(FACT, ())

    async def has_written() -> bool:
        return (pipe.root / "wiki/a.md").exists() and len(chat.conversations) == 2

    await pipe.until(has_written)
    await first.stop.remote()
    pipe.emitter.shell.conclude = real
    handling()
    await pipe.until(has_results(pipe))

    assert (await saves(pipe)).results[0].line == "noop \u2014 already recorded"


async def test_a_memory_that_cannot_be_searched_is_told_to_the_model(
    pipe: Pipe, handling, chat: FakeChat, monkeypatch
):
    monkeypatch.setattr("actors.save_handler.SEARCH_DEADLINE_S", 0.05)
    monkeypatch.setattr("actors.event_emitter.RELATED_DEADLINE_S", 0.05)
    pipe.write("skills/memory/save.md", HANDLER)
    chat.script = (asks_for("memory_search", query="Alice"), speaks("noop"))
    await pipe.emitter.emit.remote(FACT, ())
    pipe.provider.dead = True
    handling()

    await pipe.until(has_results(pipe))

    assert "they could not be looked for in time" in chat.conversations[0][1]["content"]
    assert chat.conversations[1][-1]["content"] == "error: the memory cannot be searched now"


async def test_a_stopped_handler_leaves_the_fact_in_the_outbox(pipe: Pipe, handling, chat):
    pipe.write("skills/memory/save.md", HANDLER)
    handler = handling()
    await handler.stop.remote()

    await pipe.emitter.emit.remote(FACT, ())
    await pipe.clock.advance(100)

    assert chat.conversations == []
    assert (await saves(pipe)).num_pending == 1
