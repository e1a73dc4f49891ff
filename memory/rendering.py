"""How do answers look to people and agents?

Every function turns one payload into markdown; nothing from a file reaches it unsanitized. The tool
``memory_search`` and the command line show the same text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.sanitizing import printable_block, sanitize_cell, sanitize_code, sanitize_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memory.payloads import (
        HitPayload,
        ListItem,
        SavesPayload,
        SearchPayload,
        ShowPayload,
        Source,
        StatusPayload,
    )

_SNIPPET_CHARACTERS = 300
_HEADLINES_CHARACTERS = 300
_PROBLEM_CHARACTERS = 400
_SHOWN_RESULTS = 5
_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400


def search_markdown(answer: SearchPayload, *, explain: bool = False) -> str:
    """Returns the hits grouped by file, best file first, each with a citation and a snippet.

    Args:
        answer: Any number of hits, best first.
        explain: Shows what each side contributed to a score.
    """
    hits = answer["hits"]
    paths = list(dict.fromkeys(hit["path"] for hit in hits))
    lines = [f"{_count(len(hits), 'hit')} in {_count(len(paths), 'file')}"]
    lines[0] += f" \u2014 {source_line(answer['source'], answer['age_s'])}"
    if answer["degraded"]:
        lines += ["", f"Only part of the search ran: {sanitize_cell(answer['degraded'])}"]
    if explain:
        lines += ["", _calibration(answer["threshold"])]
    for path in paths:
        lines += ["", f"## `{sanitize_path(path)}`"]
        for hit in (hit for hit in hits if hit["path"] == path):
            lines += ["", *_hit_lines(hit, explain=explain)]
    return "\n".join(lines) + "\n"


def show_documents(answer: ShowPayload, source: str) -> Iterator[str]:
    """Yields one document per chunk of a file: where it stands, its headlines, its text.

    A fence or a comment that a chunk leaves open ends with its document.
    """
    path = sanitize_path(answer["path"])
    count = _count(len(answer["chunks"]), "chunk")
    yield f"`{path}` \u2014 {count}, last modified {answer['last_modified']} \u2014 {source}\n"
    for chunk in answer["chunks"]:
        place = f"{path}:{chunk['start_line']}-{chunk['end_line']}"
        part = f" (part {chunk['part']})" if chunk["part"] > 1 else ""
        headlines = sanitize_code(chunk["headlines"], _HEADLINES_CHARACTERS)
        content = printable_block(chunk["content"])
        yield f"---\n\nPath `{place}`{part}\n\n`{headlines}`\n\n{content}\n"


def list_markdown(files: Sequence[ListItem], source: str) -> str:
    """Returns a table of the indexed files, in the order given."""
    head = f"{_count(len(files), 'file')} \u2014 {source}\n"
    if not files:
        return head
    rows = "".join(
        f"| `{sanitize_path(file['path'])}` | {file['chunks']} | {file['last_modified']} |\n"
        for file in files
    )
    return f"{head}\n| File | Chunks | Last modified |\n| - | -: | - |\n{rows}"


def status_markdown(status: StatusPayload) -> str:
    """Returns what the memory is doing, then what failed, then the actors."""
    return "\n".join(_status_lines(status)) + "\n"


def source_line(source: Source, age_s: float) -> str:
    """Returns where an answer came from: ``source: disk, written 5 minutes ago``."""
    return f"source: {source}" + ("" if source == "daemon" else f", written {_age(age_s)} ago")


def _calibration(threshold: float | None) -> str:
    if threshold is None:
        return "Scores are not calibrated yet."
    return f"Calibrated: a level of {threshold:.3f}, noise or less, scores 0.55."


def _hit_lines(hit: HitPayload, *, explain: bool) -> Iterator[str]:
    place = f"{sanitize_path(hit['path'])}:{hit['start_line']}-{hit['end_line']}"
    stale = "" if hit["fresh"] else " (changed since it was indexed)"
    yield f"- **{hit['score']:.2f}** `{place}`{stale}"
    yield f"  `{sanitize_code(hit['headlines'], _HEADLINES_CHARACTERS)}`"
    if explain:
        vector = f"vector {hit['vector_score']:.3f} (noise {hit['noise']:.3f})"
        yield f"  text {hit['text_score']:.3f}, {vector},"
        yield f"  last modified {hit['last_modified']}"
    snippet = sanitize_cell(hit["snippet"], _SNIPPET_CHARACTERS)
    if snippet:
        yield f"  > {snippet}"


def _status_lines(status: StatusPayload) -> Iterator[str]:
    yield f"memory: {status['state']}"
    yield ""
    yield f"- {_count(status['files'], 'file')}, {_count(status['chunks'], 'chunk')} indexed"
    embedding = status["embedding"]
    if embedding["model"]:
        name = sanitize_cell(f"{embedding['provider']} / {embedding['model']}")
        yield f"- model: {name}, dimension {embedding['dimension']}"
    if status["state"] != "stopped":
        yield f"- pending: {_count(status['pending'], 'file')}"
        yield f"- embedded since the start: {_count(status['embedded_inputs'], 'text')}"
    if status["state"] == "ready":
        yield f"- scores: {'not ' if status['threshold'] is None else ''}calibrated"
    if status["state"] != "starting":
        yield f"- on disk: {_on_disk(status)}"
    if status["disk_error"]:
        yield f"- disk: {sanitize_cell(status['disk_error'])}; it is tried again"
    for failed in status["failed"]:
        reason = sanitize_cell(failed["reason"])
        yield f"- failed: `{sanitize_path(failed['path'])}` ({failed['stage']}): {reason}"
    for skipped in status["skipped"]:
        reason = sanitize_cell(skipped["reason"])
        yield f"- skipped: `{sanitize_path(skipped['path'])}`: {reason}"
    yield from _save_lines(status["saves"])
    for actor in status["actors"]:
        yield f"- actor {actor['name']}: {actor['state']}, pid {actor['pid']}"


def _save_lines(saves: SavesPayload) -> Iterator[str]:
    if saves["queued"]:
        problem = f": {sanitize_cell(saves['problem'], _PROBLEM_CHARACTERS)}"
        yield f"- saved facts waiting: {saves['queued']:,}{problem if saves['problem'] else ''}"
    for failed in saves["failed"]:
        fate = "parked" if failed["parked"] else "tried again"
        tries = _count(failed["attempts"], "attempt")
        reason = sanitize_cell(failed["reason"], _PROBLEM_CHARACTERS)
        yield f"- fact {sanitize_cell(failed['event_id'])}: {reason} ({tries}, {fate})"
    for result in saves["results"][:_SHOWN_RESULTS]:
        line = sanitize_cell(result["result"], _PROBLEM_CHARACTERS)
        yield f"- fact {sanitize_cell(result['event_id'])}: {line}"


def _on_disk(status: StatusPayload) -> str:
    age_s = status["snapshot_age_s"]
    if age_s is None:
        return "nothing yet"
    is_journaled = status["journal_bytes"] and not status["disk_error"]
    return f"written {_age(age_s)} ago" + (", and every change since" if is_journaled else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _age(seconds: float) -> str:
    for unit_s, noun in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        if seconds >= unit_s:
            return _count(int(seconds // unit_s), noun)
    return _count(max(0, int(seconds)), "second")
