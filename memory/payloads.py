"""Which JSON objects does the memory answer with?

The shapes are stable: fields may be added, none is renamed (SPEC K4). The daemon and the command
line build them here, so each shape exists once. Text in them is raw; who shows it sanitizes it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from memory.messages import Chunk, ContextSection, FileSummary, SearchResult
    from memory.outbox import SkillEvent

Source = Literal["daemon", "disk"]
State = Literal["stopped", "starting", "indexing", "ready", "workspace_missing", "disabled"]

_NS_PER_S = 1_000_000_000


class HitPayload(TypedDict):
    """One chunk that answers a query."""

    path: str
    headlines: str
    start_line: int
    end_line: int
    score: float
    text_score: float
    vector_score: float
    noise: float
    part: str
    """Of a long query, what the chunk answers best; empty if the query was asked whole."""
    snippet: str
    last_modified: str
    fresh: bool
    """Whether the file on disk still is what was indexed."""


class SearchPayload(TypedDict):
    """Answer to ``search``."""

    query: str
    source: Source
    age_s: float
    """Seconds since the index was written to disk; 0 if the daemon answered."""
    degraded: str
    """Why only one side answered; empty if both did."""
    threshold: float | None
    """Level from which on an answer scores more than 0.55; null if not measured yet."""
    hits: list[HitPayload]
    ready: NotRequired[bool]
    """Whether everything was indexed once; missing where no daemon answers."""
    pending: NotRequired[int]
    """Files that still wait to be indexed; missing where no daemon answers."""


class ListItem(TypedDict):
    """One indexed file."""

    path: str
    chunks: int
    last_modified: str


class ChunkPayload(TypedDict):
    """One section of a file, as it was indexed."""

    headlines: str
    context: str
    content: str
    content_hash: str
    part: int
    start_line: int
    end_line: int


class ShowPayload(TypedDict):
    """Answer to ``show``."""

    path: str
    last_modified: str
    chunks: list[ChunkPayload]


class ExcerptPayload(TypedDict):
    """Answer to ``get``: some lines of a file as it is on disk."""

    path: str
    text: str
    """The lines, joined by newlines."""
    start_line: int
    end_line: int
    """1-based and inclusive, as in citations; less than ``start_line`` if there is no such line."""
    num_lines: int
    """Of the whole file."""
    is_cut: bool
    """Whether the last line is longer than an answer may be, and ends early."""
    last_modified: str


class SavePayload(TypedDict):
    """Answer to ``save``."""

    event_id: str
    state: str
    """``queued``, ``already queued`` or ``already saved``."""


class EventPayload(TypedDict):
    """A ``skills:memory`` event; everything in it is data."""

    event_id: str
    skill: str
    prompt: str
    source_ids: list[str]
    related: list[str]
    created_at: float
    """Unix time, seconds."""


class RowPayload(TypedDict):
    """One row of the ``# Memories`` table."""

    path: str
    score: float
    description: str


class ContextPayload(TypedDict):
    """Answer to ``context``."""

    section: str
    rows: list[RowPayload]
    degraded: str


class FailedPayload(TypedDict):
    """A file that could not be indexed for now."""

    path: str
    stage: str
    reason: str
    attempts: int
    retry_at: float
    """Unix time, seconds."""


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
    disk_error: str
    """Why the disk does not take the index, which stays in memory; empty if it does."""
    last_event_age_s: float | None
    last_reconcile_age_s: float | None
    saves: SavesPayload
    actors: list[ActorPayload]


def search_payload(
    query: str,
    result: SearchResult,
    *,
    source: Source,
    age_s: float,
    fresh_paths: Collection[str],
) -> SearchPayload:
    """Returns the answer to ``search``; ``fresh_paths`` are the files unchanged since indexing."""
    hits: list[HitPayload] = [
        {
            "path": hit.path,
            "headlines": hit.headlines,
            "start_line": hit.start_line,
            "end_line": hit.end_line,
            "score": float(hit.score),
            "text_score": float(hit.text_score),
            "vector_score": float(hit.vector_score),
            "noise": float(hit.noise),
            "part": hit.part,
            "snippet": hit.snippet,
            "last_modified": iso_time(hit.mtime_ns),
            "fresh": hit.path in fresh_paths,
        }
        for hit in result.hits
    ]
    return {
        "query": query,
        "source": source,
        "age_s": age_s,
        "degraded": result.degraded,
        "threshold": result.threshold,
        "hits": hits,
    }


def list_payload(files: Iterable[FileSummary]) -> list[ListItem]:
    """Returns the answer to ``list``, sorted by path."""
    return [
        {
            "path": file.path,
            "chunks": file.num_chunks,
            "last_modified": iso_time(file.mtime_ns),
        }
        for file in sorted(files, key=lambda file: file.path)
    ]


def show_payload(file: FileSummary, chunks: Sequence[Chunk]) -> ShowPayload:
    """Returns the answer to ``show``, chunks in file order."""
    return {
        "path": file.path,
        "last_modified": iso_time(file.mtime_ns),
        "chunks": [
            {
                "headlines": chunk.headlines,
                "context": chunk.context,
                "content": chunk.content,
                "content_hash": chunk.content_hash,
                "part": chunk.part,
                "start_line": chunk.start_line,
                "end_line": chunk.end_line,
            }
            for chunk in chunks
        ],
    }


def context_payload(section: ContextSection) -> ContextPayload:
    """Returns the answer to ``context``."""
    return {
        "section": section.text,
        "rows": [
            {"path": row.path, "score": float(row.score), "description": row.description}
            for row in section.rows
        ],
        "degraded": section.degraded,
    }


def event_payload(event: SkillEvent) -> EventPayload:
    """Returns a waiting event."""
    return {
        "event_id": event.event_id,
        "skill": event.skill,
        "prompt": event.prompt,
        "source_ids": list(event.source_ids),
        "related": list(event.related),
        "created_at": event.created_at,
    }


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
        "disk_error": "",
        "last_event_age_s": None,
        "last_reconcile_age_s": None,
        "saves": {"queued": 0, "problem": "", "failed": [], "results": []},
        "actors": [],
    }


def iso_time(mtime_ns: int) -> str:
    """Returns a modification time as ISO 8601 in UTC, to the second.

    A time outside the years 1-9999, which file systems can hold, is shown as the epoch.
    """
    try:
        moment = datetime.fromtimestamp(mtime_ns // _NS_PER_S, UTC)
    except (OverflowError, OSError, ValueError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat().replace("+00:00", "Z")
