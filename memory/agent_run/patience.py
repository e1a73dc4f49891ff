"""How is a model asked that may be busy, without asking for ever?

Both SDKs would retry for themselves, but neither within the time of a run.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory.errors import ChatUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memory.agent_run.chat import ChatClient, Message, Reply
    from memory.clock import Clock

logger = logging.getLogger(__name__)

MAX_TRIES = 5
FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
LONGEST_REQUEST_S = 300.0


@dataclass(slots=True)
class PatientChat:
    """Asks a model again while it is unavailable, with full jitter, up to a deadline."""

    client: ChatClient
    clock: Clock
    wait: Callable[[float], bool]
    """Returns after so many seconds, or at once and True when the run must end."""
    draw: Callable[[float, float], float] = field(default=random.uniform)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Message], deadline: float
    ) -> Reply:
        """Returns the next message of a conversation.

        Args:
            messages: The conversation so far.
            tools: What the model may call.
            deadline: Moment of ``clock.monotonic()``; no wait ends later.

        Raises:
            ChatError: there is no answer; ChatUnavailable after MAX_TRIES, or if the next try would
                come too late.
        """
        num_tries = 0
        while True:
            left_s = deadline - self.clock.monotonic()
            if left_s <= 0:
                raise ChatUnavailable(self.client.provider, "no time is left")
            try:
                return self.client.complete(messages, tools, min(left_s, LONGEST_REQUEST_S))
            except ChatUnavailable as error:
                num_tries += 1
                delay_s = self._delay_s(num_tries, error.retry_after_s)
                is_late = self.clock.monotonic() + delay_s >= deadline
                if num_tries >= MAX_TRIES or is_late:
                    raise
                logger.info("%s; asked again in %.1f s", error, delay_s)
                if self.wait(delay_s):
                    raise

    def _delay_s(self, num_tries: int, retry_after_s: float | None) -> float:
        """Returns a random delay, longer each time; at least what the server asks for, capped."""
        longest = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2**num_tries)
        asked = min(retry_after_s or 0.0, LONGEST_DELAY_S)
        return asked + self.draw(0, longest)
