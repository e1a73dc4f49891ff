"""When may one request go, and what does its outcome mean for the next ones?

Bulk work and questions come through here, so that there is one gate to the provider and one book
about what it cost.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from actors.statuses import ModelCallsStatus
from actors.worker_calls import Unreachable, WorkerCalls
from memory.errors import (
    BadEmbedding,
    InputRejected,
    ProviderAwaited,
    ProviderRejected,
    ProviderUnavailable,
    RequestHeldBack,
)
from memory.provider_gate import REJECTED_DELAY_S, ProviderGate

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from ray.actor import ActorProxy

    from actors.embedder import EmbedderWorker, Vectors
    from actors.worker_calls import Ask
    from memory.clock import Clock
    from memory.provider_gate import Ticket
    from memory.providers.base import ModelInfo
    from memory.spending import Spending

logger = logging.getLogger(__name__)

QUERY_PATIENCE_S = 0.5
"""Seconds that a question waits for the end of a pause; text alone answers faster than that."""


class ModelCalls:
    """Sends requests to the workers of one provider; one event loop.

    Args:
        info: The model.
        workers: At least one.
        spending: The book.
        clock: Time for pauses.
        rng: For their jitter.
    """

    def __init__(
        self,
        info: ModelInfo,
        workers: Sequence[ActorProxy[EmbedderWorker]],
        spending: Spending,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._provider = info.provider
        self.workers = WorkerCalls(info, workers, clock)
        self._spending = spending
        self._clock = clock
        self._gate = ProviderGate(rng)
        self._changed = asyncio.Event()
        self._last_error = ""
        self.on_change: Callable[[], None] = _nothing
        """Called whenever a request has ended."""

    async def documents(self, texts: tuple[str, ...], num_tokens: int) -> NDArray[np.float32]:
        """Returns one unit vector per text, of one request; waits for the end of a pause.

        Raises:
            ProviderUnavailable: it failed, or the breaker is open.
            ProviderRejected: only a person can help.
            InputRejected: these texts were refused.
            BadEmbedding: the answer was wrong.
        """
        return await self._patient(texts, num_tokens, lambda worker: worker.embed.remote(texts))

    async def queries(self, texts: tuple[str, ...], num_tokens: int) -> NDArray[np.float32]:
        """Returns the unit vectors of questions that nobody waits for; errors as above."""
        return await self._patient(
            texts, num_tokens, lambda worker: worker.embed_queries.remote(texts)
        )

    async def questions(self, texts: tuple[str, ...], num_tokens: int) -> NDArray[np.float32]:
        """Returns the unit vectors of questions, shape (len(texts), dim), or fails soon.

        Raises:
            EmbeddingError: as above, or no worker can be reached.
        """
        ticket = await self._admitted_soon()
        return await self._run(ticket, num_tokens, self.workers.ask_any(texts))

    def turned_away(self) -> ProviderAwaited | None:
        """Returns what everybody is told while the breaker is open; None while it is not."""
        now = self._clock.monotonic()
        return self._awaited() if self._gate.state(now) == "open" else None

    def wait_s(self) -> float:
        """Returns the seconds until the end of a pause."""
        return self._gate.wait_s(self._clock.monotonic())

    @property
    def is_probing(self) -> bool:
        """Whether everything waits for the outcome of one request."""
        return self._gate.has_probe

    def refuses_everything(self, reason: str) -> ProviderUnavailable:
        """Notes that the provider refuses any text, as one whose model does not exist does.

        Returns:
            What to tell those who wait: that it is asked again when a person may have acted.
        """
        ticket = self._gate.begin(self._clock.monotonic())
        if ticket is not None:
            self._reject(ticket, reason)
        return self._blamed(reason)

    def answers_wrongly(self, reason: str) -> ProviderUnavailable:
        """Notes that the provider answers any text wrongly, an outage that ends by itself.

        Returns:
            What to tell those who wait.
        """
        ticket = self._gate.begin(self._clock.monotonic())
        if ticket is not None:
            self._fail(ticket, ProviderUnavailable(self._provider, reason))
        return self._blamed(reason)

    def _blamed(self, reason: str) -> ProviderUnavailable:
        error = ProviderUnavailable(self._provider, reason, self.wait_s())
        self._last_error = str(error)
        return error

    def status(self) -> ModelCallsStatus:
        """Returns the counters."""
        now = self._clock.monotonic()
        open_for_s = self._gate.open_for_s(now)
        return ModelCallsStatus(
            num_requests=self._spending.num_requests,
            num_failures=tuple(sorted(self._spending.num_failures.items())),
            num_in_flight=self.workers.num_in_flight,
            billed_tokens=self._spending.billed_tokens,
            cost=self._spending.cost,
            breaker=self._gate.state(now),
            breaker_since=self._clock.time() - open_for_s if open_for_s is not None else 0.0,
            retry_at=self._clock.time() + self._gate.wait_s(now) if self._gate.reason else 0.0,
            last_error=self._last_error,
        )

    async def _patient(
        self, texts: tuple[str, ...], num_tokens: int, ask: Ask
    ) -> NDArray[np.float32]:
        number = self.workers.take()
        try:
            ticket = await self._admitted()
            request = self.workers.survived(number, ask, len(texts))
            return await self._run(ticket, num_tokens, request)
        finally:
            self.workers.give_back(number)

    async def _admitted(self) -> Ticket:
        while True:
            ticket = self._gate.begin(self._clock.monotonic())
            if ticket is not None:
                return ticket
            if (error := self.turned_away()) is not None:
                raise error
            await self._clock.wait(self._changed, self.wait_s() or None)

    async def _admitted_soon(self) -> Ticket:
        if self.turned_away() is None and 0 < self.wait_s() <= QUERY_PATIENCE_S:
            await self._clock.sleep(self.wait_s())
        ticket = self._gate.begin(self._clock.monotonic())
        if ticket is None:
            raise self._awaited()
        return ticket

    def _awaited(self) -> ProviderAwaited:
        return ProviderAwaited(self._provider, self._gate.reason, self.wait_s())

    async def _run(
        self, ticket: Ticket, num_tokens: int, request: Awaitable[Vectors]
    ) -> NDArray[np.float32]:
        """Waits for the outcome of one request and tells everybody whom it concerns."""
        self._spending.begin(num_tokens)
        try:
            vectors = await request
        except RequestHeldBack:
            self._spending.held_back(num_tokens)
            self._gate.abandoned(ticket)
            raise
        except BaseException as error:
            self._spending.failed(num_tokens, _kind(error))
            meaning = self._learn(ticket, error)
            if meaning is error:
                raise
            raise meaning from None
        else:
            self._spending.done(num_tokens, vectors.num_tokens)
            if self._gate.answered(ticket):
                logger.info("%s answers again", self._provider)
            return vectors.rows
        finally:
            self._changed.set()
            self._changed = asyncio.Event()
            self.on_change()

    def _learn(self, ticket: Ticket, error: BaseException) -> BaseException:
        """Tells the gate what an error means for later requests; returns what the caller gets."""
        match error:
            case ProviderRejected():
                self._reject(ticket, error.reason)
            case ProviderUnavailable():
                self._fail(ticket, error)
            case TimeoutError():
                error = ProviderUnavailable(self._provider, "no answer in time")
                self._fail(ticket, error)
            case Unreachable():
                # A process of ours restarts, which says nothing about the provider.
                self._gate.abandoned(ticket)
                error = ProviderUnavailable(self._provider, f"no embedder is reachable ({error})")
            case _:
                # A refused text says neither that the provider works nor that it does not.
                self._gate.abandoned(ticket)
        if isinstance(error, Exception):
            self._last_error = str(error)
        return error

    def _fail(self, ticket: Ticket, error: ProviderUnavailable) -> None:
        now = self._clock.monotonic()
        is_news = self._gate.failed(ticket, now, error.reason, error.retry_after_s)
        self.workers.hold_back()
        if is_news:
            logger.warning("%s; search goes on without vectors until it answers", error)

    def _reject(self, ticket: Ticket, reason: str) -> None:
        is_news = self._gate.rejected(ticket, self._clock.monotonic(), reason)
        self.workers.hold_back()
        if is_news:
            logger.error(
                "%s: %s; it is asked again once every %.0f minutes, and search goes on without"
                " vectors",
                self._provider,
                reason,
                REJECTED_DELAY_S / 60,
            )


def _nothing() -> None:
    """Does nothing."""


def _kind(error: BaseException) -> str:
    """Returns the name under which a failure is counted."""
    match error:
        case TimeoutError():
            return "timeout"
        case ProviderUnavailable():
            return "unavailable"
        case ProviderRejected():
            return "rejected"
        case InputRejected():
            return "too large" if error.too_large else "refused text"
        case BadEmbedding():
            return "bad answer"
        case _:
            return "internal"
