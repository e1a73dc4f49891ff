"""The status of the system, whoever of its actors is away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors import reporting
from actors.reporting import Reporter, latest
from actors.statuses import (
    ChunkerStatus,
    EmitterStatus,
    HandlerStatus,
    ModelCallsStatus,
    PersisterStatus,
    PoolStatus,
    ProviderStatus,
    WatcherStatus,
)
from memory.messages import FileFailed, IndexStatus, SkippedFile
from memory.outbox import FailedEvent, SaveResult
from tests.doubles import FakeClock
from tests.inline.conftest import INFO
from tests.inline.handles import InlineHandle

CHUNKER = ChunkerStatus(
    pid=2,
    workspace_missing=False,
    ready=True,
    num_pending=3,
    num_initial=9,
    failed=(FileFailed("a.md", "embed", "local: down", 2, 1_000_050.0),),
    skipped=(SkippedFile("b.md", "binary"),),
    last_reconcile_at=1_000_000.0 - 7,
    num_reconciles=1,
)

EMITTER = EmitterStatus(
    pid=6,
    num_pending=2,
    failed=(FailedEvent("ab", 5, "failed", 7.0),),
    results=(SaveResult("cd", "created wiki/a.md", 8.0),),
)


@dataclass
class Reporting:
    """Any actor: answers with what the test put here."""

    report: Any

    async def status(self) -> Any:
        return self.report

    async def ping(self) -> int:
        return self.report.pid


def pool(pid: int, num_embedded: int, num_tokens: int) -> PoolStatus:
    return PoolStatus(pid, 2, num_embedded, num_tokens, 0, 0)


@dataclass
class System:
    keeper: InlineHandle = field(
        default_factory=lambda: InlineHandle(Reporting(IndexStatus("e", 5, 4, 6, 384, 1)))
    )
    chunker: InlineHandle = field(default_factory=lambda: InlineHandle(Reporting(CHUNKER)))
    pool: InlineHandle = field(default_factory=lambda: InlineHandle(Reporting(pool(3, 10, 100))))
    persister: InlineHandle = field(
        default_factory=lambda: InlineHandle(
            Reporting(PersisterStatus(4, False, 1_000_000.0 - 5, 7, 56, 1, ""))
        )
    )
    watcher: InlineHandle = field(
        default_factory=lambda: InlineHandle(Reporting(WatcherStatus(5, "events", 0.0, 9, 2, 1)))
    )
    emitter: InlineHandle = field(default_factory=lambda: InlineHandle(Reporting(EMITTER)))
    provider: InlineHandle = field(
        default_factory=lambda: InlineHandle(Reporting(ProviderStatus(8, 0, 0, 0, "no key")))
    )
    saver: InlineHandle | None = None

    def named(self) -> dict[str, InlineHandle]:
        return {"IndexKeeper": self.keeper, "EmbedderPool": self.pool}


@pytest.fixture
def system() -> System:
    return System()


def reporter(system: System) -> Reporter:
    return Reporter(system, INFO, FakeClock(), saves_off="no model")  # type: ignore[arg-type]


async def test_every_actor_contributes_its_part(system: System):
    status = await reporter(system).status()

    assert status["state"] == "ready"
    assert status["ready"]
    assert (status["files"], status["chunks"], status["pending"]) == (4, 6, 3)
    assert status["embedding"] == {
        "provider": INFO.provider,
        "model": INFO.model,
        "dimension": 384,
    }
    assert (status["embedded_inputs"], status["tokens"]) == (10, 100)
    assert (status["generation"], status["snapshot_age_s"]) == (7, 5.0)
    assert (status["last_reconcile_age_s"], status["last_event_age_s"]) == (7.0, None)
    assert status["watching"] == {"mode": "events", "overflows": 2, "restarts": 1}
    assert status["failed"][0]["retry_at"] == 1_000_050.0
    assert status["skipped"] == [{"path": "b.md", "reason": "binary"}]
    assert [actor["name"] for actor in status["actors"]] == ["IndexKeeper", "EmbedderPool"]


async def test_who_is_away_keeps_the_last_report(system: System):
    asked = reporter(system)
    before = await asked.status()
    for handle in (system.keeper, system.chunker, system.pool, system.persister, system.watcher):
        handle.dead = True

    after = await asked.status()

    assert {actor["state"] for actor in after["actors"]} == {"restarting"}
    assert after | {"actors": []} == before | {"actors": []}


@pytest.mark.parametrize("absent", ["chunker", "keeper"])
async def test_before_the_first_answer_of_both_the_system_is_starting(system: System, absent: str):
    getattr(system, absent).dead = True

    status = await reporter(system).status()

    assert status["state"] == "starting"
    assert not status["ready"]


@pytest.mark.parametrize(
    ("changed", "state"),
    [({"ready": False}, "indexing"), ({"workspace_missing": True}, "workspace_missing")],
)
async def test_only_a_drained_first_batch_on_a_present_workspace_is_ready(
    system: System, changed: dict[str, bool], state: str
):
    fields = {name: getattr(CHUNKER, name) for name in ChunkerStatus.__slots__}
    system.chunker.shell.report = ChunkerStatus(**(fields | changed))

    status = await reporter(system).status()

    assert status["state"] == state
    assert not status["ready"]


async def test_a_restarted_pool_does_not_make_the_daemon_forget_what_was_embedded(system: System):
    """SPEC K4: the sums count since the daemon started."""
    asked = reporter(system)
    await asked.status()
    system.pool.dead = True
    await asked.status()
    system.pool.dead = False
    system.pool.shell.report = pool(33, 1, 9)

    statuses = await asyncio.gather(asked.status(), asked.status())
    system.pool.shell.report = pool(33, 2, 18)
    last = await asked.status()

    assert [status["embedded_inputs"] for status in statuses] == [11, 11]
    assert (last["embedded_inputs"], last["tokens"]) == (12, 118)
    assert asked.restarted() == [("EmbedderPool", 33)]


async def test_the_status_tells_what_the_provider_did(system: System):
    calls = ModelCallsStatus(
        num_requests=9,
        num_failures=(("rejected", 1), ("timeout", 2)),
        billed_tokens=80,
        breaker="open",
        breaker_since=999_990.0,
        retry_at=1_000_590.0,
        last_error="far: the key is refused",
    )
    system.pool.shell.report = PoolStatus(3, 2, 10, 100, 0, 0, calls, 4, (8, 500), 1_000, 900)

    told = (await reporter(system).status())["model_calls"]

    assert told["failures"] == {"rejected": 1, "timeout": 2}
    assert (told["breaker"], told["breaker_since"], told["retry_at"]) == (
        "open",
        999_990.0,
        1_000_590.0,
    )
    assert (told["refused_texts"], told["learned_limits"]) == (4, (8, 500))
    assert (told["token_budget"], told["token_room"]) == (1_000, 900)


async def test_while_another_model_is_built_both_are_told(system: System):
    newest = IndexStatus("n", 2, 1, 2, 8, 1, None, "local", "new")
    system.keeper.shell.report = IndexStatus("e", 5, 4, 6, 384, 1, 0.5, "local", "old", newest)

    status = await reporter(system).status()

    assert status["embedding"] == {"provider": "local", "model": "old", "dimension": 384}
    assert (status["files"], status["chunks"]) == (4, 6)
    assert status["building"] == {
        "provider": "local",
        "model": "new",
        "dimension": 8,
        "files": 1,
        "chunks": 2,
        "words_only": "no key",
    }


async def test_saved_facts_are_told_with_what_is_in_their_way(system: System):
    off = await reporter(system).status()
    system.saver = InlineHandle(Reporting(HandlerStatus(7, "no handler", 0)))
    on = await reporter(system).status()

    assert off["saves"]["problem"] == "no model"
    assert on["saves"] == {
        "queued": 2,
        "problem": "no handler",
        "failed": [
            {"event_id": "ab", "attempts": 5, "reason": "failed", "retry_at": 7.0, "parked": True}
        ],
        "results": [{"event_id": "cd", "result": "created wiki/a.md", "at": 8.0}],
    }


async def test_an_actor_that_never_answers_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reporting, "ANSWER_DEADLINE_S", 0.01)
    never: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()

    assert await latest(never, (1,)) == (1,)
    assert never.cancelled()
