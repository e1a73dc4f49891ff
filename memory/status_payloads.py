"""Which shape has the status that programs are shown?

Stable like those of ``payloads``.
"""

from __future__ import annotations

from typing import Literal, TypedDict

State = Literal["stopped", "starting", "indexing", "ready", "workspace_missing", "disabled"]


class FailedPayload(TypedDict):
    """A file that could not be indexed for now, or waits for a provider that does not work."""

    path: str
    stage: str
    reason: str
    attempts: int
    retry_at: float
    """Unix time, seconds."""
    waiting: bool
    """Whether it waits for a provider that does not work for others either; then it is pending."""


class SkippedPayload(TypedDict):
    """A file of the workspace that is not indexed."""

    path: str
    reason: str


class EmbeddingPayload(TypedDict):
    """Which model made the vectors; empty and 0 while there are none."""

    provider: str
    model: str
    dimension: int


class ModelCallsPayload(TypedDict):
    """Requests to the provider of the embeddings since its pool started."""

    requests: int
    failures: dict[str, int]
    """Requests without usable vectors, by kind."""
    in_flight: int
    billed_tokens: int
    """Tokens the provider says it charges for; 0 if it does not tell."""
    cost: float | None
    """Price of all tokens; null without ``pricePerMillionTokens``."""
    breaker: Literal["closed", "open", "half-open"]
    breaker_since: float | None
    """Unix time since when the provider does not work, seconds; null while it does."""
    retry_at: float | None
    """Unix time of the next request at the earliest; null if the last one was answered."""
    last_error: str
    refused_texts: int
    """Texts that are not sent again, because the provider refuses them."""
    learned_limits: tuple[int, int] | None
    """Most texts and tokens of a request; null if the provider takes what it promises."""
    token_budget: int | None
    token_room: int | None
    """Tokens of the budget that are left."""


class BuildingPayload(TypedDict):
    """The index of the configured model, while that of another one answers."""

    provider: str
    model: str
    dimension: int
    files: int
    """Files that it holds already; the one that answers holds ``files`` of the status."""
    chunks: int
    words_only: str
    """Why searches find words only until then; empty if the old model gives them vectors."""


class WatchingPayload(TypedDict):
    """How changes of the workspace are noticed."""

    mode: str
    """``events`` or ``polling``; ``waiting`` without a workspace, empty without a daemon."""
    overflows: int
    """Times the kernel lost events, after each of which all files are compared."""
    restarts: int
    """Times the watching began anew because it had died, or had lost events or its folder."""


class ActorPayload(TypedDict):
    """One actor of the running daemon."""

    name: str
    pid: int
    restarts: int
    state: str


class FailedSavePayload(TypedDict):
    """A saved fact whose handler has failed so far."""

    event_id: str
    attempts: int
    reason: str
    retry_at: float
    """Unix time, seconds."""
    parked: bool
    """Whether it waits until the daemon starts again or the same text is saved again."""


class SaveResultPayload(TypedDict):
    """What became of a saved fact."""

    event_id: str
    result: str
    at: float
    """Unix time, seconds."""


class SavesPayload(TypedDict):
    """Facts on their way into the workspace; nothing is known of them while no daemon runs."""

    queued: int
    """Facts that wait, failed ones too."""
    problem: str
    """Why none is handled now; empty if nothing is in the way."""
    failed: list[FailedSavePayload]
    results: list[SaveResultPayload]
    """Of the facts handled last, newest first."""


class StatusPayload(TypedDict):
    """Answer to ``status``."""

    state: State
    ready: bool
    files: int
    chunks: int
    pending: int
    """Files still to be indexed: those that wait or are worked on, and those in ``failed`` that
    wait for the provider."""
    failed: list[FailedPayload]
    skipped: list[SkippedPayload]
    embedding: EmbeddingPayload
    building: BuildingPayload | None
    """What takes the place of the index that answers once it is complete; null if nothing does."""
    embedded_inputs: int
    """Texts sent to the model since the daemon started."""
    tokens: int
    model_calls: ModelCallsPayload
    generation: int
    snapshot_age_s: float | None
    """Seconds since the index was written to disk; None if it never was."""
    journal_bytes: int
    threshold: float | None
    """Level from which on an answer scores more than 0.55; null until scores are calibrated, and
    while no daemon runs."""
    config_error: str
    """Why the configuration cannot be read, as the caller of ``memory status`` sees it: the next
    start fails; empty if it can."""
    disk_error: str
    """Why the disk does not take the index, which stays in memory; empty if it does."""
    watching: WatchingPayload
    last_event_age_s: float | None
    last_reconcile_age_s: float | None
    saves: SavesPayload
    actors: list[ActorPayload]


def blank_status(state: State) -> StatusPayload:
    """Returns the answer to ``status`` of a memory that knows nothing yet."""
    return {
        "state": state,
        "ready": False,
        "files": 0,
        "chunks": 0,
        "pending": 0,
        "failed": [],
        "skipped": [],
        "embedding": {"provider": "", "model": "", "dimension": 0},
        "building": None,
        "embedded_inputs": 0,
        "tokens": 0,
        "model_calls": {
            "requests": 0,
            "failures": {},
            "in_flight": 0,
            "billed_tokens": 0,
            "cost": None,
            "breaker": "closed",
            "breaker_since": None,
            "retry_at": None,
            "last_error": "",
            "refused_texts": 0,
            "learned_limits": None,
            "token_budget": None,
            "token_room": None,
        },
        "generation": 0,
        "snapshot_age_s": None,
        "journal_bytes": 0,
        "threshold": None,
        "config_error": "",
        "disk_error": "",
        "watching": {"mode": "", "overflows": 0, "restarts": 0},
        "last_event_age_s": None,
        "last_reconcile_age_s": None,
        "saves": {"queued": 0, "problem": "", "failed": [], "results": []},
        "actors": [],
    }
