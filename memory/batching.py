"""Which texts go into the next request?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memory.providers.base import RequestLimits


def first_request(sizes: Iterable[int], *, max_inputs: int, max_tokens: int) -> int:
    """Returns how many of the first texts go into one request: as many as both limits let.

    A text that is longer than a whole request may be goes alone: the provider decides about it.

    Args:
        sizes: Tokens of each waiting text.
        max_inputs: Most texts, at least 1.
        max_tokens: Most tokens of all texts together.
    """
    count = total = 0
    for size in sizes:
        total += size
        if count == max_inputs or (count and total > max_tokens):
            break
        count += 1
    return count


def share(num_texts: int, num_workers: int) -> int:
    """Returns how many texts each worker gets, so that few texts still use every worker."""
    return max(1, -(-num_texts // num_workers))


class LearnedLimits:
    """What the provider takes at once: what it says, and less once it has refused that.

    A request that is too large halves what later ones may hold. What was learned stays until the
    process ends: limits of a provider change with its version or its price list, not by the hour,
    and finding one again costs refused requests.

    Args:
        stated: What is known about the provider beforehand.
    """

    def __init__(self, stated: RequestLimits) -> None:
        self.max_inputs = stated.max_inputs
        self.max_tokens = stated.max_tokens
        self._stated = (stated.max_inputs, stated.max_tokens)

    @property
    def is_learned(self) -> bool:
        """Whether the provider takes less than was known beforehand."""
        return (self.max_inputs, self.max_tokens) != self._stated

    def too_large(self, num_inputs: int, num_tokens: int) -> None:
        """Notes that a request of several texts was too large: half of it is tried next."""
        self.max_inputs = min(self.max_inputs, max(1, num_inputs // 2))
        self.max_tokens = min(self.max_tokens, max(1, num_tokens // 2))

    def first_request(self, sizes: Iterable[int]) -> int:
        """Returns how many of the first texts go into one request."""
        return first_request(sizes, max_inputs=self.max_inputs, max_tokens=self.max_tokens)

    def saved(self) -> tuple[int, int]:
        """Returns the limits as they are, for ``restore``."""
        return self.max_inputs, self.max_tokens

    def restore(self, saved: tuple[int, int]) -> None:
        """Takes back what was learned since: one long text was to blame, not their number."""
        self.max_inputs, self.max_tokens = saved
