"""What is a figure of the engine benchmark, and when is it good enough?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Target:
    """Bounds of a value and of its ratio to the anchor; all that are given must hold."""

    most: float | None = None
    least: float | None = None
    ratio_most: float | None = None
    ratio_least: float | None = None

    def __str__(self) -> str:
        bounds = (
            ("<= {:g}", self.most),
            (">= {:g}", self.least),
            ("<= {:.3g} x", self.ratio_most),
            (">= {:.3g} x", self.ratio_least),
        )
        return ", ".join(text.format(bound) for text, bound in bounds if bound is not None)

    def holds(self, value: float, ratio: float | None) -> bool | None:
        """Returns whether every bound holds; None if one cannot be told, or there is none."""
        ratio_matters = (self.ratio_most, self.ratio_least) != (None, None)
        if not str(self) or (ratio_matters and ratio is None):
            return None
        pairs = ((value, self.most, self.least), (ratio, self.ratio_most, self.ratio_least))
        return all(
            (most is None or number <= most) and (least is None or number >= least)
            for number, most, least in pairs
            if number is not None
        )


NO_TARGET = Target()


@dataclass(frozen=True, slots=True)
class Figure:
    """A value of ours beside what it is compared with in the same run."""

    measure: str
    value: float
    unit: str
    anchor: str
    """Name of the peer or limit; empty if there is none, or it is not installed."""
    anchor_value: float | None
    ratio: float | None
    """Value divided by the value of the anchor."""
    target: str
    ok: bool | None
    """None without a target, or without the anchor that it needs."""


def figure(
    measure: str,
    value: float,
    unit: str,
    *,
    anchor: tuple[str, float] | None = None,
    target: Target = NO_TARGET,
) -> Figure:
    """Returns a figure, judged.

    Args:
        measure: What was measured.
        value: Ours.
        unit: Of both values.
        anchor: Name and value of the peer or limit, above 0; None if it is missing.
        target: What is asked for.
    """
    name, other = anchor or ("", None)
    ratio = value / other if other else None
    return Figure(measure, value, unit, name, other, ratio, str(target), target.holds(value, ratio))


@dataclass(slots=True)
class Findings:
    """What the measures of one process found out."""

    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be measured, and why."""

    def add(self, measure: str, value: float, unit: str, **judged: Any) -> None:
        """Adds a figure, see ``figure``."""
        self.figures.append(figure(measure, value, unit, **judged))

    def extend(self, other: Findings) -> None:
        """Adds what another process found out."""
        self.figures += other.figures
        self.notes += other.notes

    def to_json(self) -> str:
        """Returns one line for ``from_json``."""
        return json.dumps({"figures": list(map(asdict, self.figures)), "notes": self.notes})

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Returns what ``to_json`` wrote."""
        raw = json.loads(line)
        return cls([Figure(**each) for each in raw["figures"]], raw["notes"])


def table(figures: Iterable[Figure]) -> str:
    """Returns figures as markdown."""
    lines = ["| measure | ours | anchor | its value | ratio | target | ok |"]
    lines.append("| - | -: | - | -: | -: | - | - |")
    lines += [
        f"| {each.measure} | {_number(each.value)} {each.unit} | {each.anchor}"
        f" | {_number(each.anchor_value)} | {_number(each.ratio)} | {each.target}"
        f" | {'' if each.ok is None else 'yes' if each.ok else '**no**'} |"
        for each in figures
    ]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
