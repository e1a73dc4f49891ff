"""Which waiting texts go to the model together, and what becomes of each?

Texts of all callers wait in one queue, and a request takes its share from the front when there is
room for it: what waits at the same time goes together. Each text has an outcome of its own, so one
that the provider refuses harms none of its neighbours.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from actors.waiting_texts import WaitingText, WaitingTexts, embedded, note_failure
from memory.batching import LearnedLimits, share
from memory.errors import (
    BadEmbedding,
    InputRejected,
    ProviderAwaited,
    ProviderRejected,
    ProviderUnavailable,
)
from memory.recent import Recent
from memory.refusals import RefusalSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from actors.model_calls import ModelCalls
    from memory.clock import Clock
    from memory.errors import EmbeddingError
    from memory.messages import Embedded
    from memory.providers.base import ModelInfo, TokenCounter
    from memory.spending import Spending

logger = logging.getLogger(__name__)

CONTROL_TEXT = "memory"
"""What any provider takes: refuses it this, too, it is not the text that is wrong."""
MAX_QUARANTINED = 1_024
MAX_KEPT = 2_048
"""Vectors that are kept for callers who ask again after a failure: paid for, not yet stored."""
BUDGET_RETRY_S = 600.0


class BulkEmbedding:
    """Embeds what nobody waits for in person; one event loop.

    Memory is bounded by what callers wait for: while the provider is away they get an error at
    once and come again.

    Args:
        info: The model.
        calls: Sends one request.
        spending: Knows the budget.
        count: Counts the tokens of a text.
        clock: Time for pauses.
    """

    def __init__(
        self,
        info: ModelInfo,
        calls: ModelCalls,
        spending: Spending,
        *,
        count: TokenCounter,
        clock: Clock,
    ) -> None:
        self._info = info
        self._calls = calls
        self._spending = spending
        self._count = count
        self._clock = clock
        self._spreads = not info.limits.max_concurrent
        self._dim = info.dim
        self._in_doubt = False
        """Whether the provider may not work at all: then a text of ours is tried first."""
        self._vouched = False
        """Whether that text got a vector, and none of somebody else has since."""
        self._waiting = WaitingTexts()
        self._running: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.Task[None] | None = None
        self._kept: Recent[bytes, NDArray[np.float32]] = Recent(MAX_KEPT)
        self.quarantine: Recent[bytes, str] = Recent(MAX_QUARANTINED)
        """Why a text was refused, so that it is not paid for again."""
        self.limits = LearnedLimits(info.limits)
        self.num_embedded = self.num_tokens = self.num_waiting = 0
        calls.on_change = self._pump

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Embedded:
        """Returns one row per text; those of refused texts are zero.

        Raises:
            ProviderUnavailable: no vectors for now; what was embedded meanwhile is kept.
        """
        items = [self._item(text, is_query=is_query) for text in texts]
        self._waiting.add(items)
        self.num_waiting += len(items)
        self._pump()
        try:
            if items:
                await asyncio.wait([item.row for item in items])
        except asyncio.CancelledError:
            for item in items:
                item.row.cancel()
            self._waiting.forget_done()
            raise
        finally:
            self.num_waiting -= len(items)
        try:
            return embedded(items, self._dim)
        except Exception:
            self._keep(items)
            raise

    def _item(self, text: str, *, is_query: bool) -> WaitingText:
        item = WaitingText(text, self._count(text), is_query)
        if self.quarantine and (reason := self.quarantine.get(item.name)) is not None:
            item.fail(InputRejected(self._info.provider, reason))
        elif self._kept and (row := self._kept.pop(item.name)) is not None:
            item.row.set_result(row)
        return item

    def _keep(self, items: Sequence[WaitingText]) -> None:
        for item in items:
            if item.row.exception() is None:
                self._kept.put(item.name, item.row.result().copy())

    def _pump(self) -> None:
        """Starts as many requests as may run now; called whenever that may have changed."""
        while self._waiting:
            if (error := self._calls.turned_away()) is not None:
                self._waiting.turn_all_away(error, is_vouched=self._vouched)
                self._in_doubt, self._vouched = True, False
                return
            if (error := self._over_budget()) is not None:
                self._waiting.turn_all_away(error, is_vouched=self._vouched)
                return
            if (wait_s := self._calls.wait_s()) > 0:
                self._pump_in(wait_s)
                return
            if self._calls.is_probing or not self._has_room():
                return
            self._start(self._next_batch())

    def _has_room(self) -> bool:
        room, first = self._spending.room, self._waiting.first
        # What is under way may cost less than it reserved.
        is_affordable = room is None or first.num_tokens <= room
        most = self._calls.workers.num_handed_over(is_query=first.is_query)
        return len(self._running) < most and is_affordable

    def _over_budget(self) -> ProviderAwaited | None:
        room = self._spending.room
        if room is None or self._running or self._waiting.first.num_tokens <= room:
            return None
        reason = f"token budget of {self._spending.token_budget:,} used up"
        return ProviderAwaited(self._info.provider, reason, BUDGET_RETRY_S)

    def _pump_in(self, seconds: float) -> None:
        async def alarm() -> None:
            await self._clock.sleep(seconds)
            self._alarm = None
            self._pump()

        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().create_task(alarm())

    def _next_batch(self) -> list[WaitingText]:
        max_inputs, max_tokens = self.limits.saved()
        if self._spreads:
            free = self._calls.workers.num_at_once - len(self._running)
            max_inputs = min(max_inputs, share(len(self._waiting), free))
            if self._waiting.first.is_query:
                max_inputs = 1  # a real question waits for one of them at most
        if self._spending.room is not None:
            max_tokens = min(max_tokens, self._spending.room)
        return self._waiting.take(max_inputs, max_tokens)

    def _start(self, batch: Sequence[WaitingText]) -> None:
        task = asyncio.get_running_loop().create_task(self._run(batch))
        self._running.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._running.discard(task)
            self._pump()

        task.add_done_callback(ended)

    async def _run(self, batch: Sequence[WaitingText]) -> None:
        try:
            await self._embed(batch)
        except (ProviderUnavailable, ProviderRejected):
            # They wait for the end of the pause, or are told at once if there is none in sight.
            self._waiting.put_back(batch)
        except Exception as error:  # noqa: BLE001 - for whoever waits
            for item in batch:
                item.fail(error)

    async def _embed(self, batch: Sequence[WaitingText]) -> None:
        """Gives every text its row or its refusal.

        Raises:
            ProviderUnavailable: or ProviderRejected, some have none yet.
        """
        if self._in_doubt:
            await self._take_control_text()
        search, before = RefusalSearch(batch), self.limits.saved()
        while group := search.next_group(self._fitting):
            try:
                rows = await self._request(group, repeats=len(group) in {1, len(batch)})
            except (InputRejected, BadEmbedding) as error:
                search.refused(group, error)
                if isinstance(error, InputRejected) and error.too_large:
                    self._learn(group, before)
            else:
                search.passed()
                self._settle(group, rows)
        if search.is_hopeless or search.suspects:
            try:
                await self._judge(search)
            except (ProviderUnavailable, ProviderRejected) as error:
                note_failure(batch, error)
                raise

    async def _request(self, group: Sequence[WaitingText], *, repeats: bool) -> NDArray[np.float32]:
        num_tokens = sum(item.num_tokens for item in group)
        try:
            embed = self._calls.queries if group[0].is_query else self._calls.documents
            return await embed(tuple(item.text for item in group), num_tokens)
        except BadEmbedding:
            if not repeats:
                raise
        except ProviderAwaited:
            raise
        except (ProviderUnavailable, ProviderRejected) as error:
            note_failure(group, error)
            raise
        return await self._request(group, repeats=False)

    def _fitting(self, group: Sequence[WaitingText]) -> int:
        return self.limits.first_request(item.num_tokens for item in group)

    def _learn(self, group: Sequence[WaitingText], before: tuple[int, int]) -> None:
        if len(group) == 1:
            self.limits.restore(before)
        else:
            self.limits.too_large(len(group), sum(item.num_tokens for item in group))

    def _settle(self, group: Sequence[WaitingText], rows: NDArray[np.float32]) -> None:
        self._dim, self._vouched = rows.shape[1], False
        for item, row in zip(group, rows, strict=True):
            if not item.row.done():
                item.row.set_result(row)
            if not item.is_query:
                self.num_embedded += 1
                self.num_tokens += item.num_tokens

    async def _judge(self, search: RefusalSearch[WaitingText]) -> None:
        """Decides whether the texts are to blame or the provider.

        Raises:
            ProviderUnavailable: the provider.
        """
        if search.is_hopeless:
            raise self._blamed(search.last_error)
        if not search.has_passed:
            await self._take_control_text()
        for item, error in search.suspects:
            logger.warning(
                "%s refuses a text, which is not sent again: %s",
                self._info.provider,
                error.reason,
            )
            self.quarantine.put(item.name, error.reason)
            item.fail(InputRejected(self._info.provider, error.reason))

    async def _take_control_text(self) -> None:
        """Has a text embedded that any provider takes.

        Raises:
            ProviderUnavailable: or ProviderRejected, this one gives no vector for it.
        """
        try:
            rows = await self._calls.documents((CONTROL_TEXT,), self._count(CONTROL_TEXT))
        except (InputRejected, BadEmbedding) as error:
            raise self._blamed(error) from None
        self._in_doubt, self._vouched = False, True
        self._dim = rows.shape[1]

    def _blamed(self, error: EmbeddingError) -> ProviderUnavailable:
        """Notes that no text at all gets a vector; returns what that is for the texts."""
        self._in_doubt = True
        if isinstance(error, BadEmbedding):
            return self._calls.answers_wrongly(f"every answer is wrong: {error.reason}")
        return self._calls.refuses_everything(f"it takes no text at all: {error.reason}")
