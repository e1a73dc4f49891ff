"""The EventEmitter actor: hands facts to whoever handles ``skills:memory``."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING, final

import ray
from ray.exceptions import RayError

from actors.loops import call, end_process
from actors.statuses import EmitterStatus
from memory.clock import SystemClock
from memory.errors import MemoryPluginError
from memory.leases import Leases
from memory.messages import SaveReceipt
from memory.outbox import OUTBOX_NAME, Outbox, SaveResult, SkillEvent, event_id

if TYPE_CHECKING:
    from pathlib import Path

    from ray.actor import ActorProxy

    from actors.context_provider import ContextProvider
    from memory.clock import Clock
    from memory.outbox import FailedEvent

logger = logging.getLogger(__name__)

MAX_PROMPT_CHARACTERS = 100_000
MAX_RELATED = 5
RELATED_DEADLINE_S = 5.0
"""Longest time a taker waits for the related files."""


@final
class EventEmitter:
    """Emits a ``skills:memory`` event per saved fact; handlers take and acknowledge.

    Owns: the outbox file in the data folder, and who works on which event.
    Survives a crash: every event whose ``emit`` was answered, but not who works on it.
    Ordering: events are delivered oldest first, again and again until acknowledged; one that was
    taken is given to nobody else until its visibility timeout is over.
    Called by: the composition root and every holder of its handle. Calls: ContextProvider.
    """

    def __init__(
        self, data: Path, provider: ActorProxy[ContextProvider], clock: Clock | None = None
    ) -> None:
        self._provider = provider
        self._clock = clock or SystemClock()
        try:
            self._outbox = Outbox(data / OUTBOX_NAME)
        except OSError as error:
            # Ray starts an actor afresh whose process ended, not one whose constructor raised.
            end_process("EventEmitter", error)
        self._leases = Leases()
        self._emitted = asyncio.Event()

    def __repr__(self) -> str:
        return "EventEmitter"

    @ray.method
    async def emit(self, prompt: str, source_ids: tuple[str, ...]) -> SaveReceipt:
        """Stores an event durably and returns its id; the same text twice is one event.

        Nothing is searched here: the caller waits for the disk alone. An event whose handler failed
        is delivered again at once when its text comes again.

        Raises:
            ValueError: the text is blank or longer than MAX_PROMPT_CHARACTERS.
            OSError: the disk refused.
            StoreError: too many facts wait already.
        """
        if not prompt.strip() or len(prompt) > MAX_PROMPT_CHARACTERS:
            raise ValueError(f"a fact has 1 to {MAX_PROMPT_CHARACTERS} characters")
        identity = event_id(prompt)
        if (state := self._outbox.state(identity)) != "unknown":
            if self._outbox.retry(identity):
                self._emitted.set()
            return SaveReceipt(identity, f"already {state}")
        self._outbox.add(
            SkillEvent(
                event_id=identity,
                prompt=prompt,
                source_ids=source_ids,
                related=(),
                created_at=self._clock.time(),
            )
        )
        self._emitted.set()
        return SaveReceipt(identity, "queued")

    @ray.method
    async def pending(self, timeout_s: float) -> tuple[SkillEvent, ...]:
        """Returns the events nobody acknowledged, oldest first; waits for one if there is none.

        Without those whose handler failed and that are not due again. Their related files are not
        looked for.
        """
        if not self._outbox.due(self._clock.time()):
            self._emitted.clear()
            await self._clock.wait(self._emitted, timeout_s)
        return self._outbox.due(self._clock.time())

    @ray.method
    async def wait(self, timeout_s: float) -> bool:
        """Returns True as soon as an event can be taken, False if none can after the timeout.

        Takes nothing, so a caller that is gone when it returns keeps no event from the others.
        """
        end = self._clock.monotonic() + timeout_s
        while True:
            now = self._clock.monotonic()
            free_in_s = self._leases.next_free_s(self._outbox.due(self._clock.time()), now_s=now)
            if free_in_s == 0:
                return True
            if now >= end:
                return False
            self._emitted.clear()
            rest_s = end - now
            await self._clock.wait(
                self._emitted, rest_s if free_in_s is None else min(rest_s, free_in_s)
            )

    @ray.method
    async def take(self, visibility_s: float, owner: str) -> SkillEvent | None:
        """Returns the oldest event nobody works on, or None; does not wait for one.

        It belongs to the caller for so many seconds, and comes again if it is not acknowledged.
        ``owner`` is for ``release_all``, and may be empty. Related files are looked for now, so
        those that earlier events became are among them.
        """
        event = self._leases.take(
            self._outbox.due(self._clock.time()),
            now_s=self._clock.monotonic(),
            visibility_s=visibility_s + RELATED_DEADLINE_S,
            owner=owner,
        )
        if event is None:
            return None
        known = await self._with_related(event)
        self._leases.renew(event.event_id, now_s=self._clock.monotonic(), visibility_s=visibility_s)
        return known

    @ray.method
    async def release(self, identity: str) -> None:
        """Lets others take an event that the caller took and does not work on any more."""
        self._leases.release(identity)
        self._emitted.set()

    @ray.method
    async def release_all(self, owner: str) -> None:
        """Lets others take what an owner took before it was restarted."""
        self._leases.release_all(owner)
        self._emitted.set()

    @ray.method
    async def acknowledge(self, identity: str) -> bool:
        """Ends the redelivery of an event, once or again; returns False if there was none."""
        return self._outbox.acknowledge(identity) or self._outbox.state(identity) == "saved"

    @ray.method
    async def conclude(self, identity: str, result: str) -> bool:
        """Acknowledges an event and keeps one line, for ``memory status``, of what was done.

        As often as it is told, the first line stays; returns False if there was no such event.

        Raises:
            OSError: the disk refused; the event stays pending.
        """
        told = SaveResult(identity, result, self._clock.time())
        return self._outbox.acknowledge(identity, told) or self._outbox.state(identity) == "saved"

    @ray.method
    async def fail(self, identity: str, reason: str) -> FailedEvent | None:
        """Has an event delivered again later; after MAX_ATTEMPTS it is parked.

        Args:
            identity: The event.
            reason: One line for ``memory status``.

        Returns:
            What is known of its failures; None if it was not pending.

        Raises:
            OSError: the disk refused; the event stays as it was.
        """
        self._leases.release(identity)
        return self._outbox.fail(identity, reason, self._clock.time())

    @ray.method
    async def retry_failed(self) -> int:
        """Has every event that failed delivered at once, parked ones too; returns how many."""
        num_retried = sum(self._outbox.retry(failed.event_id) for failed in self._outbox.failed)
        if num_retried:
            self._emitted.set()
        return num_retried

    @ray.method
    async def status(self) -> EmitterStatus:
        """Returns what waits, what failed, and what became of the last ones."""
        return EmitterStatus(
            pid=os.getpid(),
            num_pending=len(self._outbox.pending),
            failed=self._outbox.failed,
            results=self._outbox.results,
        )

    @ray.method
    async def ping(self) -> int:
        """Returns the process id."""
        return os.getpid()

    async def _with_related(self, event: SkillEvent) -> SkillEvent:
        try:
            result = await call(
                lambda: self._provider.search.remote(event.prompt, MAX_RELATED),
                clock=self._clock,
                deadline_s=RELATED_DEADLINE_S,
            )
        except (MemoryPluginError, RayError, OSError) as error:  # a TimeoutError is an OSError
            # The fact counts, its neighbours are a help only.
            logger.warning("no related files: %s", type(error).__name__)
            return event
        related = tuple(dict.fromkeys(hit.path for hit in result.hits))
        return replace(event, related=related, is_related_known=True)
