"""What is the state of the whole system, in the words of ``memory status``?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from actors.loops import GONE
from actors.roster import Roster
from memory.clock import SystemClock
from memory.status_payloads import blank_status

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from actors.statuses import (
        ChunkerStatus,
        EmitterStatus,
        HandlerStatus,
        PersisterStatus,
        PoolStatus,
        ProviderStatus,
        WatcherStatus,
    )
    from actors.system import MemorySystem
    from memory.clock import Clock
    from memory.messages import IndexStatus
    from memory.providers.base import ModelInfo
    from memory.status_payloads import ModelCallsPayload, SavesPayload, State, StatusPayload

ANSWER_DEADLINE_S = 3.0

T = TypeVar("T")


class Reporter:
    """Joins the reports of the actors; one that restarts right now keeps its last report."""

    def __init__(
        self,
        system: MemorySystem,
        info: ModelInfo,
        clock: Clock | None = None,
        *,
        saves_off: str | None = None,
    ) -> None:
        """Asks nobody yet.

        Args:
            system: The actors.
            info: The configured model.
            clock: For ages.
            saves_off: Why saved facts are not handled here, if they are not.
        """
        self._system = system
        self._saves_off = saves_off or ""
        self._info = info
        self._clock = clock or SystemClock()
        self._roster = Roster(system.named())
        self._index: IndexStatus | None = None
        self._chunker: ChunkerStatus | None = None
        self._pool: PoolStatus | None = None
        self._persister: PersisterStatus | None = None
        self._watcher: WatcherStatus | None = None
        self._emitter: EmitterStatus | None = None
        self._handler: HandlerStatus | None = None
        self._provider: ProviderStatus | None = None
        self._embedded_before = self._tokens_before = 0
        """What pools that died since had counted when they were last asked."""

    async def status(self) -> StatusPayload:
        """Returns the status of the system; takes at most ANSWER_DEADLINE_S."""
        system = self._system
        (
            (actors, self._index, self._chunker, pool, self._persister, self._watcher),
            (self._emitter, self._handler, self._provider),
        ) = await asyncio.gather(
            asyncio.gather(
                self._roster.check(),
                latest(system.keeper.status.remote(), self._index),
                latest(system.chunker.status.remote(), self._chunker),
                latest(system.pool.status.remote(), self._pool),
                latest(system.persister.status.remote(), self._persister),
                latest(system.watcher.status.remote(), self._watcher),
            ),
            asyncio.gather(
                latest(system.emitter.status.remote(), self._emitter),
                latest(system.saver.status.remote() if system.saver else None, self._handler),
                latest(system.provider.status.remote(), self._provider),
            ),
        )
        self._note_pool(pool)
        status = blank_status(self._state())
        status["actors"] = actors
        status["ready"] = status["state"] == "ready"
        self._fill_index(status)
        self._fill_work(status)
        self._fill_saves(status["saves"])
        return status

    def restarted(self) -> list[tuple[str, int]]:
        """Returns name and process of each actor that was restarted since the last call."""
        return self._roster.restarted()

    def _note_pool(self, pool: PoolStatus | None) -> None:
        """Keeps the sums of the daemon's life: a fresh pool counts from zero again."""
        if self._pool is not None and pool is not None and pool.pid != self._pool.pid:
            self._embedded_before += self._pool.num_embedded
            self._tokens_before += self._pool.num_tokens
        self._pool = pool

    def _state(self) -> State:
        if self._chunker is None or self._index is None:
            return "starting"
        if self._chunker.workspace_missing:
            return "workspace_missing"
        return "ready" if self._chunker.ready else "indexing"

    def _fill_index(self, status: StatusPayload) -> None:
        index = self._index
        if index is not None:
            status["files"] = index.num_files
            status["chunks"] = index.num_chunks
            status["threshold"] = index.threshold
            status["embedding"] = {
                "provider": index.provider or self._info.provider,
                "model": index.model or self._info.model,
                "dimension": index.dim or self._info.dim,
            }
        if index is not None and index.building is not None:
            status["building"] = {
                "provider": index.building.provider,
                "model": index.building.model,
                "dimension": index.building.dim,
                "files": index.building.num_files,
                "chunks": index.building.num_chunks,
                "words_only": self._provider.former_trouble if self._provider else "",
            }
        if self._persister is not None:
            status["generation"] = max(0, self._persister.generation)
            status["snapshot_age_s"] = self._age(self._persister.saved_at)
            status["journal_bytes"] = self._persister.journal_bytes
            status["disk_error"] = self._persister.last_error

    def _fill_work(self, status: StatusPayload) -> None:
        if self._chunker is not None:
            status["pending"] = self._chunker.num_pending
            status["failed"] = [
                {
                    "path": failed.path,
                    "stage": failed.stage,
                    "reason": failed.reason,
                    "attempts": failed.attempts,
                    "retry_at": failed.retry_at,
                    "waiting": failed.waits,
                }
                for failed in self._chunker.failed
            ]
            status["skipped"] = [
                {"path": skipped.path, "reason": skipped.reason}
                for skipped in self._chunker.skipped
            ]
            status["last_reconcile_age_s"] = self._age(self._chunker.last_reconcile_at)
        if self._pool is not None:
            status["embedded_inputs"] = self._embedded_before + self._pool.num_embedded
            status["tokens"] = self._tokens_before + self._pool.num_tokens
            status["model_calls"] = _model_calls(self._pool)
        if self._watcher is not None:
            status["last_event_age_s"] = self._age(self._watcher.last_event_at)
            status["watching"] = {
                "mode": self._watcher.mode,
                "overflows": self._watcher.num_overflows,
                "restarts": self._watcher.num_restarts,
            }

    def _fill_saves(self, saves: SavesPayload) -> None:
        saves["problem"] = self._handler.problem if self._handler else self._saves_off
        if self._emitter is None:
            return
        saves["queued"] = self._emitter.num_pending
        saves["failed"] = [
            {
                "event_id": failed.event_id,
                "attempts": failed.attempts,
                "reason": failed.reason,
                "retry_at": failed.retry_at,
                "parked": failed.is_parked,
            }
            for failed in self._emitter.failed
        ]
        saves["results"] = [
            {"event_id": result.event_id, "result": result.line, "at": result.at}
            for result in self._emitter.results
        ]

    def _age(self, unix_time: float) -> float | None:
        return max(0.0, self._clock.time() - unix_time) if unix_time else None


def _model_calls(pool: PoolStatus) -> ModelCallsPayload:
    calls = pool.calls
    return {
        "requests": calls.num_requests,
        "failures": dict(calls.num_failures),
        "in_flight": calls.num_in_flight,
        "billed_tokens": calls.billed_tokens,
        "cost": calls.cost,
        "breaker": calls.breaker,
        "breaker_since": calls.breaker_since or None,
        "retry_at": calls.retry_at or None,
        "last_error": calls.last_error,
        "refused_texts": pool.num_quarantined,
        "learned_limits": pool.learned_limits,
        "token_budget": pool.token_budget,
        "token_room": pool.token_room,
    }


async def latest(answer: Awaitable[T] | None, last: T) -> T:
    """Returns what an actor answers; what it said last, if it does not answer within seconds."""
    if answer is None:
        return last
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            return await answer
    except (*GONE, TimeoutError):
        return last
