"""What time is it, and how does an actor wait?

The only place of the product that asks the operating system for the time. Everything else takes a
``Clock`` or a number, so that tests decide how time passes.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Time as an object."""

    def time(self) -> float:
        """Returns Unix time in seconds; may jump when somebody sets the clock."""
        ...

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""
        ...

    async def wait(self, event: asyncio.Event, timeout_s: float | None) -> bool:
        """Returns True as soon as the event is set, False after ``timeout_s`` without it."""
        ...


class SystemClock:
    """The clock of the machine."""

    def time(self) -> float:
        """Returns Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Returns seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, timeout_s: float | None) -> bool:
        """Returns True as soon as the event is set, False after ``timeout_s`` without it."""
        try:
            async with asyncio.timeout(timeout_s):
                return await event.wait()
        except TimeoutError:
            return False
