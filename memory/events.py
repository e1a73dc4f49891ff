"""How does a host receive ``skills:memory`` events and say that it handled them?

::

    events = DaemonEvents(data)
    async for event in subscribe(events):
        ...  # the prompt, the source ids and the related files are data
        await events.acknowledge(event.event_id)

Delivery is at least once: an event that is not acknowledged within ``visibility_s`` comes again, to
this subscriber or to another one. Within that time nobody else gets it, unless the actor that keeps
the events was restarted. Handlers must bear an event twice.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from memory.clock import SystemClock
from memory.daemon_calls import ask_daemon
from memory.errors import DaemonError
from memory.outbox import OUTBOX_NAME, event_from, read_pending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from memory.clock import Clock
    from memory.outbox import SkillEvent

logger = logging.getLogger(__name__)

VISIBILITY_S = 300.0
"""Seconds a handler has by default; an agent run takes minutes."""
POLL_S = 20.0
"""Longest silence between two questions to the daemon."""
_ANSWER_S = 10.0
_FIRST_RETRY_S = 0.5
_LONGEST_RETRY_S = 10.0


class EventSource(Protocol):
    """Where events come from.

    Raises:
        DaemonError: nobody answers for now; so do all methods.
    """

    async def take(self, visibility_s: float, wait_s: float) -> SkillEvent | None:
        """Returns the oldest event nobody works on, waiting for one; None if none comes."""
        ...

    async def acknowledge(self, event_id: str) -> bool:
        """Ends the redelivery of an event; returns False if there was none."""
        ...


class DaemonEvents:
    """The events of a running daemon, over its socket.

    Args:
        data: Data folder of the daemon.
    """

    def __init__(self, data: Path) -> None:
        self._data = data

    async def take(self, visibility_s: float, wait_s: float) -> SkillEvent | None:
        """Returns an event, see EventSource; cancelling it leaves the event to the others."""
        taken = await ask_daemon(
            self._data, "take", wait_s + _ANSWER_S, visibility_s=visibility_s, wait_s=wait_s
        )
        return event_from(taken) if taken else None

    async def acknowledge(self, event_id: str) -> bool:
        """Ends the redelivery of an event."""
        done = await ask_daemon(self._data, "acknowledge", _ANSWER_S, event_id=event_id)
        return bool(done["acknowledged"])


async def subscribe(
    source: EventSource, *, visibility_s: float = VISIBILITY_S, clock: Clock | None = None
) -> AsyncIterator[SkillEvent]:
    """Yields events as they come, one at a time, until the caller stops iterating.

    A daemon that does not run, or restarts, is waited for.

    Args:
        source: Where they come from.
        visibility_s: Seconds until an event that was not acknowledged is handed out again.
        clock: Time for the pauses.
    """
    clock = clock or SystemClock()
    pause_s = _FIRST_RETRY_S
    while True:
        try:
            event = await source.take(visibility_s, POLL_S)
        except DaemonError as error:
            if pause_s == _FIRST_RETRY_S:
                logger.warning("waiting for events: %s", error)
            await clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
            continue
        pause_s = _FIRST_RETRY_S
        if event is not None:
            yield event


def waiting_events(data: Path) -> tuple[SkillEvent, ...]:
    """Returns what waits in a data folder whose daemon does not run, oldest first; only reads.

    Raises:
        OSError: the outbox cannot be read.
    """
    return read_pending(data / OUTBOX_NAME)
