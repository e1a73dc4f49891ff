"""Which texts wait for a vector, and what becomes of each?"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from memory.batching import first_request
from memory.errors import InputRejected, ProviderUnavailable, TextsUnanswered
from memory.messages import Embedded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from memory.errors import ProviderAwaited, ProviderRejected


@dataclass(slots=True, eq=False)
class WaitingText:
    """One text of one caller."""

    text: str
    num_tokens: int
    is_query: bool
    failure: str = ""
    """Why the last request it was part of failed; empty if none has."""
    row: asyncio.Future[NDArray[np.float32]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Unit vector, shape (dim,), or why there is none."""

    @property
    def name(self) -> bytes:
        """Identity of what is asked for."""
        digest = hashlib.sha256(b"q" if self.is_query else b"d")
        digest.update(self.text.encode("utf-8", "surrogatepass"))
        return digest.digest()

    def fail(self, error: Exception) -> None:
        """Tells who waits that there is no vector; does nothing once there is an outcome."""
        if not self.row.done():
            self.row.set_exception(error)


class WaitingTexts:
    """The texts of all callers that no request has, first come, first served."""

    def __init__(self) -> None:
        self._texts: deque[WaitingText] = deque()

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def first(self) -> WaitingText:
        """The next one; there must be one."""
        return self._texts[0]

    def add(self, texts: Iterable[WaitingText]) -> None:
        """Puts those at the end that have no outcome yet."""
        self._texts.extend(each for each in texts if not each.row.done())

    def put_back(self, batch: Sequence[WaitingText]) -> None:
        """Puts those of a request to the front again that have no outcome."""
        self._texts.extendleft(each for each in reversed(batch) if not each.row.done())

    def forget_done(self) -> None:
        """Drops those whose callers have gone."""
        self._texts = deque(each for each in self._texts if not each.row.done())

    def take(self, max_inputs: int, max_tokens: int) -> list[WaitingText]:
        """Returns the next ones of one kind that fit in a request, at least one."""
        is_query = self.first.is_query
        alike = takewhile(lambda each: each.is_query == is_query, self._texts)
        sizes = (each.num_tokens for each in alike)
        number = first_request(sizes, max_inputs=max_inputs, max_tokens=max_tokens)
        return [self._texts.popleft() for _ in range(number)]

    def turn_all_away(self, error: ProviderAwaited, *, is_vouched: bool) -> None:
        """Tells all callers that there are no vectors for now.

        Args:
            error: What those are told that were not tried.
            is_vouched: Whether the provider is known to work for other texts.
        """
        own = TextsUnanswered if is_vouched else ProviderUnavailable
        while self._texts:
            each = self._texts.popleft()
            if each.failure:
                each.fail(own(error.provider, each.failure, error.retry_after_s))
            else:
                each.fail(error)


def embedded(texts: Sequence[WaitingText], dim: int) -> Embedded:
    """Returns the rows of texts that all have an outcome; those of refused texts are zero.

    Raises:
        Exception: what keeps one of them, which is not refused, from a vector.
    """
    rows, refused = np.zeros((len(texts), dim), np.float32), []
    for number, each in enumerate(texts):
        match each.row.exception():
            case None:
                rows[number] = each.row.result()
            case InputRejected() as error:
                refused.append((number, error.reason))
            case error:
                raise error
    return Embedded(rows, tuple(refused))


def note_failure(
    texts: Iterable[WaitingText], error: ProviderUnavailable | ProviderRejected
) -> None:
    """Notes why the request of these texts has failed."""
    for each in texts:
        each.failure = error.reason
