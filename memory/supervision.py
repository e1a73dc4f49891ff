"""When does a host start the daemon of a data folder, and when does it leave that alone?

One daemon a data folder: if somebody else runs one it is used, and once it is gone one is started
here. A child that ends is started again after a pause that doubles with every short life, and one
that says that it cannot work as it is configured, much later.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from memory.clock import Clock

UNUSABLE = 78
"""Exit code of a child that would fail the same way again: EX_CONFIG of sysexits.h."""
INTERRUPTED = 130
"""Exit code of a rebuild that Ctrl-C ended before it was done."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
HEALTHY_S = 120.0
"""A child that lived so long has its failures forgiven."""
UNUSABLE_PAUSE_S = 600.0
"""Until somebody may have mended the configuration."""
LOOK_S = 1.0
"""Between two looks at a daemon that somebody else runs."""

Occupant = Literal["nobody", "serving", "busy"]
"""Who has the data folder: a daemon that answers, or one that starts or ends."""


class Child(Protocol):
    """A daemon that was started here."""

    async def wait(self) -> int:
        """Returns its exit code once it has ended; negative is the signal that ended it."""
        ...

    async def stop(self, deadline_s: float) -> None:
        """Has it save and end, ends it after the deadline, and with it all that it started."""
        ...

    async def sweep(self) -> None:
        """Ends what an ended child left behind."""
        ...

    @property
    def last_words(self) -> str:
        """The last line it printed; complete after ``sweep``."""
        ...


@dataclass
class Backoff:
    """Pauses between the starts of a child."""

    _failures: int = 0

    def pause_s(self, lived_s: float) -> float:
        """Returns how long to wait after a child that lived so long, seconds."""
        self._failures = 0 if lived_s >= HEALTHY_S else self._failures
        self._failures += 1
        return min(FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 10), LONGEST_PAUSE_S)


class Supervisor:
    """Keeps one daemon running for a data folder.

    Args:
        launch: Starts a daemon.
        occupant: Tells who has the data folder.
        clock: Time.
        say: Takes a line for the log of the host.
    """

    def __init__(
        self,
        launch: Callable[[], Awaitable[Child]],
        occupant: Callable[[], Awaitable[Occupant]],
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self._launch = launch
        self._occupant = occupant
        self._clock = clock
        self._say = say
        self._backoff = Backoff()
        self._stopping = asyncio.Event()
        self._child: Child | None = None
        self._told = ""
        self.is_down = False
        """Whether the child has ended, and nobody has taken its place yet."""

    async def run(self) -> None:
        """Supervises until ``stop``."""
        is_attached = False
        while not self._stopping.is_set():
            occupant = await self._occupant()
            self.is_down = self.is_down and occupant != "serving"
            if occupant == "nobody":
                await self._one_life()
                is_attached = False
                continue
            if occupant == "serving" and not is_attached:
                self._say("memory: another process runs the daemon of this data folder; it is used")
                is_attached = True
            await self._clock.wait(self._stopping, LOOK_S)

    async def stop(self, deadline_s: float) -> None:
        """Ends the child, if there is one; ``run`` returns then.

        Args:
            deadline_s: Seconds until the child is ended by force.
        """
        self._stopping.set()
        if self._child is not None:
            await self._child.stop(deadline_s)

    async def _one_life(self) -> None:
        """Starts a child, waits for its end, and then for the moment of the next start."""
        began_s = self._clock.monotonic()
        code, last_words = await self._started_and_ended()
        if self._stopping.is_set():
            return
        pause_s = self._backoff.pause_s(self._clock.monotonic() - began_s)
        if code == UNUSABLE:
            pause_s = UNUSABLE_PAUSE_S
        self._tell(code, last_words, pause_s)
        await self._clock.wait(self._stopping, pause_s)

    async def _started_and_ended(self) -> tuple[int, str]:
        """Returns the exit code of a child and the last it said."""
        try:
            child = await self._launch()
        except OSError as error:
            return 1, error.strerror or str(error)
        self._child, self.is_down = child, False
        if self._stopping.is_set():  # while the child was on its way
            await child.stop(0.0)
        code = await child.wait()
        self.is_down = True
        await child.sweep()
        self._child = None
        return code, child.last_words

    def _tell(self, code: int, last_words: str, pause_s: float) -> None:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        reason = f"{how} (its last line: {last_words})" if last_words and code > 0 else how
        # A Ray that cannot start is one line, not one a minute.
        if code <= 0 or reason != self._told:
            self._say(f"memory: the daemon {reason}; it is started again in {pause_s:.0f} s")
        self._told = reason
