"""Which actors run, under which process, and how often were they restarted?

Asked by ping, so that the answer also says whether an actor still answers.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from actors.loops import GONE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from memory.status_payloads import ActorPayload

PING_DEADLINE_S = 3.0


class _Ping(Protocol):
    def remote(self) -> Awaitable[int]: ...


class Pingable(Protocol):
    """A handle of any of our actors."""

    @property
    def ping(self) -> _Ping:
        """Returns the process id."""
        ...


class Roster:
    """Remembers the last process of each actor; a new process is a restart."""

    def __init__(self, handles: Mapping[str, Pingable]) -> None:
        self._handles = handles
        self._actors: dict[str, ActorPayload] = {
            name: {"name": name, "pid": 0, "restarts": 0, "state": "starting"} for name in handles
        }
        self._restarted: list[tuple[str, int]] = []

    def restarted(self) -> list[tuple[str, int]]:
        """Returns name and process of each actor that was restarted since the last call."""
        seen, self._restarted = self._restarted, []
        return seen

    async def check(self) -> list[ActorPayload]:
        """Pings every actor at once; takes at most PING_DEADLINE_S."""
        await asyncio.gather(*(self._check(name) for name in self._handles))
        return [dict(actor) for actor in self._actors.values()]  # type: ignore[misc]

    async def _check(self, name: str) -> None:
        actor = self._actors[name]
        try:
            async with asyncio.timeout(PING_DEADLINE_S):
                pid = await self._handles[name].ping.remote()
        except GONE:
            actor["state"] = "restarting" if actor["pid"] else "starting"
            return
        except TimeoutError:
            actor["state"] = "silent" if actor["pid"] else "starting"
            return
        if actor["pid"] not in (0, pid):
            actor["restarts"] += 1
            self._restarted.append((name, pid))
        actor["pid"], actor["state"] = pid, "alive"
