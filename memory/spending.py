"""What did the model cost since the start, and may more be spent?"""

from __future__ import annotations

from collections import Counter

_MILLION = 1_000_000


class Spending:
    """Counts requests and tokens, and holds a budget.

    A request takes its estimate from the budget when it begins, so that requests in flight cannot
    overdraw it together; what the provider charged replaces the estimate at the end.

    Args:
        token_budget: Most tokens to be spent; None for no limit.
        price_per_million: Of tokens, in whatever currency; None if it is not known.
    """

    def __init__(
        self, token_budget: int | None = None, price_per_million: float | None = None
    ) -> None:
        self.token_budget = token_budget
        self._price = price_per_million
        self.num_requests = 0
        self.num_failures: Counter[str] = Counter()
        """Requests without usable vectors, by the name of their error."""
        self.billed_tokens = 0
        """What the provider says it charges for; 0 if it does not tell."""
        self._spent = self._reserved = 0

    @property
    def cost(self) -> float | None:
        """Price of the tokens so far; None without a price."""
        return price_of(self._spent, self._price)

    @property
    def room(self) -> int | None:
        """Tokens that may still be spent, at least 0; None without a budget."""
        if self.token_budget is None:
            return None
        return max(0, self.token_budget - self._spent - self._reserved)

    @property
    def spent(self) -> int:
        """Tokens of all requests that were answered."""
        return self._spent

    def recall(self, num_tokens: int) -> None:
        """Adds what was spent by somebody whose place this takes."""
        self._spent += num_tokens

    def begin(self, num_tokens: int) -> None:
        """Notes a request that goes out with so many tokens, estimated."""
        self.num_requests += 1
        self._reserved += num_tokens

    def done(self, num_tokens: int, billed_tokens: int) -> None:
        """Notes that the request was answered.

        Args:
            num_tokens: As in ``begin``.
            billed_tokens: What the provider charged; 0 counts the estimate.
        """
        self._reserved -= num_tokens
        self.billed_tokens += billed_tokens
        self._spent += billed_tokens or num_tokens

    def held_back(self, num_tokens: int) -> None:
        """Notes that the request, see ``begin``, was not sent after all."""
        self._reserved -= num_tokens
        self.num_requests -= 1

    def failed(self, num_tokens: int, kind: str) -> None:
        """Notes that the request, see ``begin``, gave nothing, which costs nothing."""
        self._reserved -= num_tokens
        self.num_failures[kind] += 1


def price_of(num_tokens: int, price_per_million: float | None) -> float | None:
    """Returns what tokens cost; None without a price."""
    return num_tokens * price_per_million / _MILLION if price_per_million is not None else None
