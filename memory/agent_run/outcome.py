"""How did a run end, in one line?

The line says what was really written, whatever the model claims: a model that names a file it did
not write has failed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.sanitizing import sanitize_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_REASON_CHARACTERS = 120
MAX_LINE_CHARACTERS = 400
_SAID = re.compile(r"[\s*`_\"'>#-]*(noop|failed)\b[\s*`_:.\u2013\u2014-]*", re.IGNORECASE)
_RECORDED = "already recorded"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one run."""

    line: str
    """``extended wiki/people/alice.md``, or begins with ``created``, ``noop`` or ``failed``."""
    is_done: bool
    """Whether the event needs no other run."""
    num_steps: int = 0
    """Times the model was asked."""
    num_tokens: int = 0
    num_tool_errors: int = 0


def failed(reason: str, written: Sequence[tuple[str, str]] = ()) -> tuple[str, bool]:
    """Returns the line of a run that must be tried again, and False.

    Args:
        reason: Anything; it is cut and made inert.
        written: What it wrote before.
    """
    after = f" (after: {_written(written)})" if written else ""
    return f"failed \u2014 {_one_line(reason)}{after}", False


def concluded(
    said: str, written: Sequence[tuple[str, str]], refused_write: str
) -> tuple[str, bool]:
    """Returns the line of a run whose model says that it is done, and whether it is.

    Args:
        said: The model's last message.
        written: (``created`` or ``extended``, path) of each file it wrote.
        refused_write: Why its last refused write was; empty if none was.
    """
    match = _SAID.match(said)
    claim = match[1].lower() if match else ""
    reason = said[match.end() :].strip().partition("\n")[0] if match else ""
    if claim == "failed":
        return failed(reason or "the model gave up", written)
    if written:
        return _written(written), True
    if refused_write:
        return failed(f"nothing could be written: {refused_write}")
    if claim == "noop":
        return f"noop \u2014 {_one_line(reason) or _RECORDED}", True
    if not said.strip():
        return failed("the model's answer was empty")
    return failed("the model wrote nothing")


def _written(written: Sequence[tuple[str, str]]) -> str:
    listed = ", ".join(f"{verb} {path}" for verb, path in written)
    return sanitize_cell(listed, MAX_LINE_CHARACTERS)


def _one_line(text: str) -> str:
    return sanitize_cell(text, MAX_REASON_CHARACTERS)
