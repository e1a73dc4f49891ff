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
    problem: NotRequired[str]
    """Why no agent run can file it as the memory is configured; missing if one can."""


class ConfiguredModelPayload(TypedDict):
    """The model that would embed."""

    provider: str
    model: str
    dimension: int
    """0 if only a call could tell."""


class NotIndexedPayload(TypedDict):
    """A file of the workspace that would not be indexed."""

    path: str
    reason: str


class RebuildEstimatePayload(TypedDict):
    """Answer to ``rebuild --dry-run``: what it costs to embed every file with the model."""

    embedding: ConfiguredModelPayload
    files: int
    chunks: int
    to_embed: int
    """Distinct texts; equal ones are embedded once."""
    tokens: int
    """Of these texts, counted as for the requests: never fewer than the model sees."""
    calls: int
    """Requests, if each is as full as the provider lets it be; 0 with a model that runs here."""
    cost: float | None
    """Price of the tokens; null without ``pricePerMillionTokens``."""
    resumed: bool
    """Whether an index of this model is being built: a rebuild goes on with it, as a start does."""
    reused_from: str
    """Which index has vectors of this model: ``memory.msp``, ``next`` or ``previous``; empty if
    none has. What follows is what a start costs, which reuses them, as opposed to a rebuild that
    begins."""
    reused: int
    """Texts of ``to_embed`` that have a vector there."""
    left_to_embed: int
    left_tokens: int
    left_calls: int
    left_cost: float | None
    skipped: list[NotIndexedPayload]


class RebuildBegunPayload(TypedDict):
    """What the daemon answers to ``rebuild`` at once."""

    begun: bool
    """Whether it was begun now."""
    resumed: bool
    """Whether what was being built already is to be waited for."""
    rebuild: int
    """Number of the rebuild that is to be complete."""


class RebuildPayload(TypedDict):
    """Answer to ``rebuild``, once the new index answers."""

    begun: bool
    """Whether a rebuild was begun now."""
    resumed: bool
    """Whether an index that was being built already was waited for: a rebuild that was killed or
    that runs, or the index of another model. With neither, there was nothing to embed anew yet."""
    files: int
    chunks: int
    embedded_inputs: int
    """Texts that were embedded while it was waited for; not what was embedded before that."""
    tokens: int
    failed: list[str]
    """Paths of files that were left behind, and are tried again."""


class EventPayload(TypedDict):
    """A ``skills:memory`` event; everything in it is data."""

    event_id: str
    skill: str
    prompt: str
    source_ids: list[str]
    related: list[str]
    """Best first; looked for when the event is taken."""
    created_at: float
    """Unix time, seconds."""
    is_related_known: bool
    """False while it waits, and if its related files could not be found in time."""


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
        "is_related_known": event.is_related_known,
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
