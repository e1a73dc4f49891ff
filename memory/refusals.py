"""Which texts of a request are the ones that the provider refuses?"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memory.errors import EmbeddingError

T = TypeVar("T")


class RefusalSearch(Generic[T]):
    """Halves what is refused until single texts are left; everything else passes on the way.

    Level by level: both halves of a request go before a half of either, so a provider that refuses
    everything is told from one bad text early. One bad text among ``n``, a power of two, costs
    ``2 log2(n) + 1`` requests.

    Args:
        texts: Of one request, at least one.
    """

    def __init__(self, texts: Sequence[T]) -> None:
        self._groups: deque[tuple[T, ...]] = deque([tuple(texts)])
        self._max_refused = 2 * (len(texts) - 1).bit_length() + 1
        self._num_refused = 0
        self.has_passed = False
        """Whether the provider took any of them."""
        self.last_error: EmbeddingError
        """Of the last group that was refused."""
        self.suspects: list[tuple[T, EmbeddingError]] = []
        """Texts that were refused alone, and how."""

    def next_group(self, fitting: Callable[[Sequence[T]], int]) -> tuple[T, ...]:
        """Returns what goes into the next request; nothing at the end.

        Args:
            fitting: Tells how many of the first texts may go together by now.
        """
        if not self._groups or self.is_hopeless:
            return ()
        group = self._groups.popleft()
        size = fitting(group)
        if size < len(group):
            self._groups.appendleft(group[size:])
        return group[:size]

    def passed(self) -> None:
        """Notes that the last group was taken."""
        self.has_passed = True

    def refused(self, group: Sequence[T], error: EmbeddingError) -> None:
        """Notes that a group got no vectors."""
        self._num_refused += 1
        self.last_error = error
        if len(group) == 1:
            self.suspects.append((group[0], error))
            return
        middle = len(group) // 2
        self._groups += (tuple(group[:middle]), tuple(group[middle:]))

    @property
    def is_hopeless(self) -> bool:
        """Whether more was refused than one bad text explains, and nothing has passed."""
        return not self.has_passed and self._num_refused > self._max_refused
