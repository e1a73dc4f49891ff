"""What was seen lately, in bounded memory?"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The last values that were put or asked for.

    Args:
        max_entries: Beyond it, what was not used for the longest time goes.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """Returns a value, which stays a while longer; None if it is not here."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        """Takes a value, which must not be None."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._max_entries:
            self._values.popitem(last=False)

    def pop(self, key: Key) -> Value | None:
        """Returns a value and forgets it; None if it is not here."""
        return self._values.pop(key, None)
