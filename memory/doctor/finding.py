"""What was looked at, was it well, and what helps if not?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from memory.sanitizing import printable_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

State = Literal["ok", "note", "problem"]
_MAX_CHARACTERS = 600


class FindingPayload(TypedDict):
    """One thing that was looked at."""

    name: str
    state: State
    """``note`` says something worth knowing that is not wrong."""
    detail: str
    remedy: str
    """Empty if there is nothing to do."""


class DoctorPayload(TypedDict):
    """Answer to ``doctor``."""

    ok: bool
    """Whether there is no problem."""
    findings: list[FindingPayload]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    detail: str
    remedy: str = ""


def ok(name: str, detail: str) -> Finding:
    """Returns that a thing is well."""
    return Finding(name, "ok", detail)


def note(name: str, detail: str, remedy: str = "") -> Finding:
    """Returns something worth knowing."""
    return Finding(name, "note", detail, remedy)


def problem(name: str, detail: str, remedy: str) -> Finding:
    """Returns what is wrong, and what helps."""
    return Finding(name, "problem", detail, remedy)


def doctor_payload(findings: Iterable[Finding]) -> DoctorPayload:
    """Returns the answer to ``doctor``."""
    listed = list(findings)
    return {
        "ok": all(finding.state != "problem" for finding in listed),
        "findings": [
            {
                "name": finding.name,
                "state": finding.state,
                "detail": finding.detail,
                "remedy": finding.remedy,
            }
            for finding in listed
        ],
    }


def doctor_lines(answer: DoctorPayload) -> Iterator[str]:
    """Yields a line for each finding, fit for a terminal."""
    for each in answer["findings"]:
        text = each["detail"] + (f"; {each['remedy']}" if each["remedy"] else "")
        line = " ".join(printable_block(text).split())[:_MAX_CHARACTERS]
        yield f"{each['state']:<8}{each['name']}: {line}"
