"""Which waiting event may be handed out, while somebody may still be working on it?

Who takes an event has it for a while; nobody else gets it meanwhile. When the time is over without
an acknowledgement, the event is handed out again. Leases are kept in memory only: after a restart
everything that waits is handed out at once, so a handler must expect an event twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memory.outbox import SkillEvent


class Leases:
    """Until when each event belongs to whoever took it; times are monotonic seconds."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._owners: dict[str, str] = {}

    def take(
        self,
        pending: Iterable[SkillEvent],
        *,
        now_s: float,
        visibility_s: float,
        owner: str = "",
    ) -> SkillEvent | None:
        """Returns the oldest event that nobody has, and gives it to the caller for a while.

        Args:
            pending: Events that were not acknowledged, oldest first.
            now_s: The time.
            visibility_s: Seconds until it is handed out again.
            owner: Who takes it; for ``release_all``.
        """
        waiting = tuple(pending)
        self._forget_all_but({event.event_id for event in waiting})
        free = (event for event in waiting if self._until.get(event.event_id, now_s) <= now_s)
        event = next(free, None)
        if event is not None:
            self._until[event.event_id] = now_s + visibility_s
            self._owners[event.event_id] = owner
        return event

    def next_free_s(self, pending: Iterable[SkillEvent], *, now_s: float) -> float | None:
        """Returns in how many seconds one can be taken, 0 for at once; None if none waits."""
        times = (self._until.get(event.event_id, now_s) for event in pending)
        soonest = min(times, default=None)
        return None if soonest is None else max(0.0, soonest - now_s)

    def renew(self, identity: str, *, now_s: float, visibility_s: float) -> None:
        """Lets the time of whoever has an event begin anew; nothing happens if nobody has it."""
        if identity in self._until:
            self._until[identity] = now_s + visibility_s

    def release(self, identity: str) -> None:
        """Ends the time of whoever has an event; nothing happens if nobody has it."""
        self._until.pop(identity, None)

    def release_all(self, owner: str) -> None:
        """Ends the time of all events that an owner has: it starts anew and remembers none."""
        for identity in [key for key, name in self._owners.items() if name == owner]:
            self.release(identity)

    def _forget_all_but(self, identities: set[str]) -> None:
        self._until = {key: until for key, until in self._until.items() if key in identities}
        self._owners = {key: name for key, name in self._owners.items() if key in identities}
