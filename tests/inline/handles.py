"""Actor handles without a cluster.

An ``InlineHandle`` runs the real shell in the test's own event loop. Arguments and results are
pickled and arrays arrive read-only, so it fails where Ray would.
"""

from __future__ import annotations

import asyncio
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.exceptions import ActorUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def freeze(value: Any) -> Any:
    """Returns a pickled copy whose arrays cannot be written to, as Ray hands them over."""
    copy = pickle.loads(pickle.dumps(value))
    _freeze_arrays(copy)
    return copy


def _freeze_arrays(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple | list):
        for item in value:
            _freeze_arrays(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            _freeze_arrays(getattr(value, name))


class _Method:
    def __init__(self, handle: InlineHandle, name: str) -> None:
        self._handle = handle
        self._name = name

    def remote(self, *args: Any) -> asyncio.Task[Any]:
        given = [arg if isinstance(arg, asyncio.Future) else freeze(arg) for arg in args]
        return asyncio.get_running_loop().create_task(self._run(given))

    async def _run(self, args: Sequence[Any]) -> Any:
        await asyncio.sleep(0)
        # As Ray, which hands over what a reference stands for.
        args = [await arg if isinstance(arg, asyncio.Future) else arg for arg in args]
        if self._handle.dead:
            raise ActorUnavailableError("the actor is restarting", b"0" * 16)
        self._handle.calls.append(self._name)
        try:
            result = getattr(self._handle.shell, self._name)(*args)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:  # noqa: BLE001 - as Ray, which hands over every error
            raise freeze(error) from None
        if self._handle.loses(self._name):
            raise ActorUnavailableError("the actor ended before it answered", b"0" * 16)
        return freeze(result)


class InlineHandle:
    """``handle.method.remote(...)`` on a shell in this process."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.dead = False
        """True makes every call fail like that of an actor that restarts."""
        self.calls: list[str] = []
        self.loses: Callable[[str], bool] = lambda _name: False
        """Tells of a method that has run whether its answer gets lost; may replace the shell."""

    def __reduce__(self) -> Any:
        raise TypeError("handles are passed to constructors, not pickled in messages")

    def __getattr__(self, name: str) -> _Method:
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(type(self.shell), name):
            raise AttributeError(f"{type(self.shell).__name__} has no method {name}")
        return _Method(self, name)
