"""How is it said what a rebuild costs, and what it did?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.sanitizing import sanitize_cell, sanitize_path
from memory.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.payloads import RebuildEstimatePayload, RebuildPayload


def estimate_markdown(answer: RebuildEstimatePayload) -> str:
    """Returns an estimate as a list of markdown."""
    return "\n".join(_lines(answer)) + "\n"


def rebuilt_line(answer: RebuildPayload) -> str:
    """Returns what was embedded, in one line."""
    files, chunks = counted(answer["files"], "file"), counted(answer["chunks"], "chunk")
    texts, tokens = counted(answer["embedded_inputs"], "text"), counted(answer["tokens"], "token")
    first = "the index that was being built is complete" if answer["resumed"] else "rebuilt"
    return f"{first}: {files} / {chunks}, {texts} embedded, {tokens}"


def _lines(answer: RebuildEstimatePayload) -> Iterator[str]:
    model = answer["embedding"]
    yield f"- model: {sanitize_cell(model['provider'] + ' / ' + model['model'])}"
    yield f"- workspace: {counted(answer['files'], 'file')}, {counted(answer['chunks'], 'chunk')}"
    left = (answer["left_to_embed"], answer["left_tokens"], answer["left_calls"])
    rest = _amount(*left, answer["left_cost"])
    reused = f"{counted(answer['reused'], 'text')} of `{answer['reused_from']}`"
    if answer["resumed"]:
        begun = "an index is being built already; `memory rebuild` or a start"
        yield f"- {begun} go on, reuse {reused} and embed {rest}"
    else:
        whole = (answer["to_embed"], answer["tokens"], answer["calls"])
        yield f"- a rebuild embeds {_amount(*whole, answer['cost'])}"
        reuses = f"reuses {reused} and" if answer["reused_from"] else "has nothing to reuse and"
        yield f"- a start {reuses} embeds {rest}"
    for skipped in answer["skipped"]:
        path = sanitize_path(skipped["path"], in_table=False)
        yield f"- skipped: `{path}`: {sanitize_cell(skipped['reason'])}"


def _amount(num_texts: int, num_tokens: int, num_calls: int, cost: float | None) -> str:
    texts, tokens = counted(num_texts, "text"), counted(num_tokens, "token")
    requests = f" in {counted(num_calls, 'request')}" if num_calls else ""
    price = "" if cost is None else f", for {cost:,.4f}"
    return f"{texts}, {tokens}{requests}{price}"
