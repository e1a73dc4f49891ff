"""Which of several threads may have a request on the wire?

A worker is handed one request more than it may make, so that the next one goes out as soon as an
answer has come in, and not when that has been checked, carried to the pool and stored. What waits
here when a request fails does not go out any more: a pause is meant for it, too.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from memory.errors import RequestHeldBack

if TYPE_CHECKING:
    from collections.abc import Iterator


@final
class RequestSlots:
    """Room for so many requests at once.

    Args:
        provider: Name for errors.
        number: At least 1.
    """

    def __init__(self, provider: str, number: int) -> None:
        self._provider = provider
        self._free = threading.Semaphore(number)
        self._num_failures = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Holds the room for one request, as soon as there is some.

        Raises:
            RequestHeldBack: ``hold_back`` was called meanwhile.
        """
        num_failures = self._num_failures
        with self._free:
            if num_failures != self._num_failures:
                raise RequestHeldBack(self._provider, "another request has failed")
            yield

    def hold_back(self) -> None:
        """Turns away all that wait for room at this moment."""
        self._num_failures += 1
