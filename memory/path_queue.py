"""Which file is worked on next, and when is a failed one tried again?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from memory.messages import FileFailed

if TYPE_CHECKING:
    import random

BASE_DELAY_S = 1.0
MAX_DELAY_S = 60.0
_MAX_DOUBLINGS = 16


class Lane(IntEnum):
    """Who asks; lower ones go first."""

    LIVE = 0
    """Somebody saw it happen."""
    SCAN = 1
    """A scan found that answers do not show it."""
    ANEW = 2
    """Answers show it; an index that is being built lacks it."""


class Fault(Enum):
    """What is to blame for a failure."""

    OWN = "own"
    """The path itself, as far as is known."""
    OUTAGE = "outage"
    """What it needs from outside did not work, which may be so for all."""
    UNTRIED = "untried"
    """That was not even asked for, since it does not work for others."""


@dataclass(frozen=True, slots=True)
class Work:
    """A path handed to one worker, which must answer with ``done`` or ``failed``."""

    path: str
    raw_path: str
    """Spelling of the latest event, only good for opening."""
    attempts: int
    """Attempts that failed before this one."""


@dataclass(slots=True)
class _Failure:
    work: Work
    lane: Lane
    stage: str
    reason: str
    retry_at: float
    fault: Fault


class PathQueue:
    """Coalesces events into at most one entry a path, and gives a path to one worker at a time.

    A path that failed goes on to be pending while an outage is to blame.

    Pure state: ``now`` is monotonic seconds. Memory is bounded by the number of distinct paths. An
    event for a path that is being worked on is kept and comes after ``done`` or ``failed``.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._waiting: dict[Lane, dict[str, str]] = {lane: {} for lane in Lane}
        self._working: dict[str, tuple[Work, Lane]] = {}
        self._touched: dict[str, tuple[str, Lane]] = {}
        self._failures: dict[str, _Failure] = {}
        self._attempts: dict[str, int] = {}
        self._held_up: set[str] = set()
        """Failures that an outage is to blame for."""

    @property
    def pending(self) -> int:
        """Number of paths that wait, are worked on or are held up by an outage."""
        waiting = sum(len(paths) for paths in self._waiting.values())
        return waiting + len(self._working.keys() | self._touched.keys()) + self.num_held_up

    @property
    def num_held_up(self) -> int:
        """Number of paths whose next attempt waits for the end of an outage."""
        return len(self._held_up)

    @property
    def drained(self) -> bool:
        """True if nothing is pending; paths that fail by themselves do not keep it busy."""
        return self.pending == 0

    def put(self, path: str, raw_path: str, *, lane: Lane = Lane.LIVE) -> None:
        """Notes that a path may have changed.

        A live event ends the back-off of a failed path, since its owner may just have repaired it;
        another one does not.
        """
        if path in self._working:
            first = self._touched.get(path, (raw_path, lane))[1]
            self._touched[path] = (raw_path, min(first, lane))
        elif path in self._failures and lane is not Lane.LIVE:
            failure = self._failures[path]
            failure.work = Work(path, raw_path, failure.work.attempts)
            failure.lane = min(failure.lane, lane)
        else:
            self._failures.pop(path, None)
            self._held_up.discard(path)
            self._enqueue(path, raw_path, lane)

    def take(self, now: float) -> Work | None:
        """Returns the next path that nobody works on: by lane, oldest first; None if none."""
        self._requeue_due(now)
        for lane, paths in self._waiting.items():
            if paths:
                path = next(iter(paths))
                work = Work(path, paths.pop(path), self._attempts.get(path, 0))
                self._working[path] = (work, lane)
                return work
        return None

    def done(self, path: str) -> None:
        """Ends the work on a path with success; events that came meanwhile are due now."""
        del self._working[path]
        self._attempts.pop(path, None)
        self._enqueue_touched(path)

    def failed(
        self,
        path: str,
        *,
        stage: str,
        reason: str,
        now: float,
        retry_after_s: float = 0.0,
        fault: Fault = Fault.OWN,
    ) -> None:
        """Ends the work on a path with a failure, which is tried again later.

        Args:
            path: A path that ``take`` handed out.
            stage: See FileFailed.stage.
            reason: One line for people; no content.
            now: Monotonic seconds.
            retry_after_s: The least delay, if the other side named one.
            fault: What is to blame, as far as the path can tell.
        Source:
            Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        work, lane = self._working.pop(path)
        attempts = work.attempts + 1
        self._attempts[path] = attempts
        if self._enqueue_touched(path):
            return
        ceiling = min(MAX_DELAY_S, BASE_DELAY_S * 2 ** min(attempts - 1, _MAX_DOUBLINGS))
        retry_at = now + max(retry_after_s, self._rng.uniform(0, ceiling))
        self._failures[path] = _Failure(
            Work(path, work.raw_path, attempts), lane, stage, reason, retry_at, fault
        )
        if fault is not Fault.OWN:
            self._held_up.add(path)

    def outage_is_over(self) -> bool:
        """Notes that what paths wait for has worked: those that were not tried are due now.

        Returns:
            Whether there are any.
        """
        is_due = False
        for path in self._held_up:
            failure = self._failures[path]
            if failure.fault is Fault.UNTRIED:
                failure.retry_at, is_due = float("-inf"), True
        return is_due

    def failures(self, *, now: float, unix_now: float) -> tuple[FileFailed, ...]:
        """Returns the paths that wait for another attempt, sorted by path."""
        return tuple(
            FileFailed(
                path=path,
                stage=failure.stage,
                reason=failure.reason,
                attempts=failure.work.attempts,
                retry_at=unix_now + max(0.0, failure.retry_at - now),
                waits=failure.fault is not Fault.OWN,
            )
            for path, failure in sorted(self._failures.items())
        )

    def retry_in(self, now: float) -> float | None:
        """Returns the seconds until the next retry is due, None if nothing failed."""
        if not self._failures:
            return None
        return max(0.0, min(failure.retry_at for failure in self._failures.values()) - now)

    def _requeue_due(self, now: float) -> None:
        due = [path for path, failure in self._failures.items() if failure.retry_at <= now]
        for path in due:
            failure = self._failures.pop(path)
            self._held_up.discard(path)
            self._enqueue(path, failure.work.raw_path, failure.lane)

    def _enqueue(self, path: str, raw_path: str, lane: Lane) -> None:
        """Keeps the place of a path that waits already, or moves it up to a better lane."""
        for other in Lane:
            if other < lane and path in self._waiting[other]:
                lane = other
            elif other > lane:
                self._waiting[other].pop(path, None)
        self._waiting[lane][path] = raw_path

    def _enqueue_touched(self, path: str) -> bool:
        if path not in self._touched:
            return False
        raw_path, lane = self._touched.pop(path)
        self._enqueue(path, raw_path, lane)
        return True
