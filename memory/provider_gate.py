"""May a request go to the provider now?

One answer for all workers: after a failure everybody waits, because a limit of requests belongs to
the key and an outage to the server. States:

- *closed*: requests go, or wait for the end of a short pause after a failure;
- *open*: after MAX_FAILURES failures in a row, or a refusal that only a person can end, nothing
  goes for a while and nobody is kept waiting;
- *half-open*: that while is over; one request goes, and its outcome decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import random

BreakerState = Literal["closed", "open", "half-open"]

MAX_FAILURES = 3
BASE_DELAY_S = 1.0
MAX_DELAY_S = 60.0
"""Longest pause after a failure, whatever the provider asks for: each probe is one request."""
REJECTED_DELAY_S = 600.0
"""Pause after a refusal of the key, the quota, the model or of any text (one request in ten
minutes): it lasts until a person acts. Wrong answers to any text are a failure like others."""
_MAX_DOUBLINGS = 16
_GRAIN_S = 1e-3
"""Less is no pause: a sleep may end a rounding error too early."""


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """Permission for one request; its outcome must be told to the gate."""

    round: int
    is_probe: bool


class ProviderGate:
    """Pause, exponential back-off and circuit breaker in one; ``now`` is monotonic seconds.

    Requests that fail together count as one failure: only those that began after the last one say
    something new. For the same reason a late success ends no pause.

    Args:
        rng: For the jitter.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._round = self._num_failures = 0
        self._resume_at = float("-inf")
        self._is_open = False
        self.has_probe = False
        """Whether one request decides what becomes of all others."""
        self._since: float | None = None
        self.reason = ""
        """Why the last request failed; empty once one was answered."""

    def state(self, now: float) -> BreakerState:
        """Returns the state of the breaker."""
        if not self._is_open:
            return "closed"
        return "open" if self.wait_s(now) else "half-open"

    def open_for_s(self, now: float) -> float | None:
        """Returns for how long the breaker has not been closed, seconds; None while it is."""
        return now - self._since if self._since is not None else None

    def wait_s(self, now: float) -> float:
        """Returns the seconds until a request may go, as far as that is a matter of time."""
        rest_s = self._resume_at - now
        return rest_s if rest_s > _GRAIN_S else 0.0

    def begin(self, now: float) -> Ticket | None:
        """Returns permission for a request; None if it must not go now."""
        if self.wait_s(now) or self.has_probe:
            return None
        self.has_probe = self._is_open
        return Ticket(self._round, is_probe=self._is_open)

    def answered(self, ticket: Ticket) -> bool:
        """Notes that the provider works, whatever it said; returns whether that is news."""
        self.abandoned(ticket)
        if ticket.round != self._round:
            return False
        was_open, self._is_open = self._is_open, False
        self._num_failures, self.reason, self._since = 0, "", None
        return was_open

    def failed(
        self, ticket: Ticket, now: float, reason: str, retry_after_s: float | None = None
    ) -> bool:
        """Notes that the provider did not work; returns whether the breaker opened.

        Args:
            ticket: Of the request.
            now: Monotonic seconds.
            reason: One line for people.
            retry_after_s: The pause that the provider asked for, if it did.
        Source:
            Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        self.abandoned(ticket)
        delay_s = min(MAX_DELAY_S, max(0.0, retry_after_s or 0.0))
        if ticket.round != self._round:
            self._resume_at = max(self._resume_at, now + delay_s)
            return False
        self._num_failures += 1
        doublings = min(self._num_failures - 1, _MAX_DOUBLINGS)
        ceiling_s = min(MAX_DELAY_S, BASE_DELAY_S * 2**doublings)
        delay_s = max(delay_s, self._rng.uniform(0, ceiling_s))
        was_open, opens = self._is_open, self._num_failures >= MAX_FAILURES
        self._pause(now, delay_s, reason, opens=opens)
        return opens and not was_open

    def rejected(self, ticket: Ticket, now: float, reason: str) -> bool:
        """Notes that the provider refuses until somebody acts; returns whether that is news."""
        self.abandoned(ticket)
        is_news = not self._is_open or reason != self.reason
        self._pause(now, REJECTED_DELAY_S, reason, opens=True)
        return is_news

    def abandoned(self, ticket: Ticket) -> None:
        """Notes that a request will have no outcome."""
        if ticket.is_probe:
            self.has_probe = False

    def _pause(self, now: float, delay_s: float, reason: str, *, opens: bool) -> None:
        self._round += 1
        self._resume_at = max(self._resume_at, now + delay_s)
        self._is_open = self._is_open or opens
        if self._is_open and self._since is None:
            self._since = now
        self.reason = reason
