"""What does each actor report about itself?

One frozen dataclass per actor, made of counters (``num_…``) and times; the composition root joins
them into the status of the system.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory.messages import FileFailed, SkippedFile
    from memory.outbox import FailedEvent, SaveResult
    from memory.provider_gate import BreakerState


@dataclass(frozen=True, slots=True)
class WatcherStatus:
    """Report of the Watcher."""

    pid: int
    mode: str
    """``events`` or ``polling``; ``waiting`` while the root is missing."""
    last_event_at: float
    """Unix time of the last event that mattered, seconds; 0 if none yet."""
    num_events: int
    num_overflows: int
    num_restarts: int
    """Times the observer was replaced because it, or the root, had died, or had lost events."""


@dataclass(frozen=True, slots=True)
class FileIndexed:
    """One line of the activity log: what indexing one file did."""

    number: int
    """Position in the log of this Chunker, growing by one."""
    path: str
    num_embedded: int
    """Texts sent to the model for it."""
    num_reused: int
    """New chunks whose vector was known already."""
    num_kept: int
    """Chunks that are as they were."""
    num_removed: int
    removed: bool
    """The file itself is gone."""


@dataclass(frozen=True, slots=True)
class ChunkerStatus:
    """Report of the Chunker."""

    pid: int
    workspace_missing: bool
    ready: bool
    """The initial batch has drained."""
    num_pending: int
    """Files waiting or being worked on, and those that an outage of the model holds up; files that
    failed by themselves and wait for their retry do not count."""
    num_initial: int
    """Files of the initial batch."""
    failed: tuple[FileFailed, ...]
    skipped: tuple[SkippedFile, ...]
    last_reconcile_at: float
    """Unix time of the last completed comparison of disk and index, seconds; 0 if none yet."""
    num_reconciles: int
    num_held_up: int = 0
    """Files that wait for the end of an outage."""


@dataclass(frozen=True, slots=True)
class ModelCallsStatus:
    """What the EmbedderPool tells about its requests to the provider since it started."""

    num_requests: int = 0
    num_failures: tuple[tuple[str, int], ...] = ()
    """Requests without usable vectors by kind, sorted."""
    num_in_flight: int = 0
    billed_tokens: int = 0
    """Tokens the provider says it charges for; 0 if it does not tell."""
    cost: float | None = None
    """Price of all tokens; None without a price."""
    breaker: BreakerState = "closed"
    breaker_since: float = 0.0
    """Unix time since when the breaker is not closed, seconds; 0 while it is."""
    retry_at: float = 0.0
    """Unix time of the next request at the earliest, seconds; 0 if the last one was answered."""
    last_error: str = ""
    """Of the last request that failed; may be over."""


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """Report of the EmbedderPool."""

    pid: int
    num_workers: int
    num_embedded: int
    """Document texts embedded since the pool started."""
    num_tokens: int
    """Tokens of those texts."""
    num_queries: int
    num_waiting: int
    """Texts not answered yet."""
    calls: ModelCallsStatus = field(default_factory=ModelCallsStatus)
    num_quarantined: int = 0
    """Texts that were refused and are not sent again."""
    learned_limits: tuple[int, int] | None = None
    """Most texts and most tokens of a request; None if the provider takes what it promises."""
    token_budget: int | None = None
    token_room: int | None = None
    """Tokens of the budget that are left."""


@dataclass(frozen=True, slots=True)
class PersisterStatus:
    """Report of the Persister."""

    pid: int
    dirty: bool
    saved_at: float
    """Unix time of the last snapshot on disk, seconds; 0 if there is none."""
    generation: int
    """Revision of the index in that snapshot; -1 if there is none."""
    journal_bytes: int
    """Length of the journal of changes since then; 0 if there is none."""
    num_flushes: int
    """Snapshots that were written."""
    last_error: str


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """Report of the ContextProvider."""

    pid: int
    num_sections: int
    num_searches: int
    num_degraded: int
    """Answers that had to do without the query embedding."""
    former_trouble: str = ""
    """Why questions to the index of another model have no vector; empty if they have."""


@dataclass(frozen=True, slots=True)
class EmitterStatus:
    """Report of the EventEmitter."""

    pid: int
    num_pending: int
    """Events that nobody has acknowledged yet."""
    failed: tuple[FailedEvent, ...] = ()
    """Those of them whose handler has failed so far."""
    results: tuple[SaveResult, ...] = ()
    """What became of the events handled last, newest first."""


@dataclass(frozen=True, slots=True)
class HandlerStatus:
    """Report of the SaveHandler."""

    pid: int
    problem: str
    """Why no event is handled now; empty if nothing is in the way."""
    num_runs: int
