"""How do the figures of an evaluation look to people?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.evaluation.intervals import FEW
from memory.evaluation.measures import MEASURES
from memory.sanitizing import sanitize_cell
from memory.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memory.evaluation.report import (
        ComparisonPayload,
        DifferencePayload,
        EvalPayload,
        IntervalPayload,
        KindPayload,
        RulesPayload,
        TablePayload,
    )

MEMORIES_HEAD = (
    "questions",
    "recall",
    "of a table without floor",
    "kept",
    "precision",
    "with a row",
)
"""Head of the columns of ``memories_row``."""
_NOTHING = "\u2013"


def eval_markdown(answer: EvalPayload) -> str:
    """Returns a table for each kind of question, one of the ``# Memories`` tables, and the rest."""
    size = f"{counted(answer['files'], 'file')}, {counted(answer['chunks'], 'chunk')}"
    model = sanitize_cell(answer["model"])
    lines = [f"{size}, {model}; {_rules(answer['rules'])}; in brackets intervals of 95 %"]
    for kind, figures in answer["kinds"].items():
        few = ", too few to rely on" if figures["questions"] < FEW else ""
        lines += ["", f"## {kind}: {counted(figures['questions'], 'question')}{few}", ""]
        lines += _measures(figures)
    lines += ["", "## `# Memories` tables", "", *_tables(answer)]
    if answer["comparison"] is not None:
        lines += ["", *_comparison(answer["comparison"])]
    return "\n".join(lines) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a markdown table whose first column is text and the others numbers."""
    yield f"| {' | '.join(head)} |"
    yield "| - |" + " -: |" * (len(head) - 1)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def number(interval: IntervalPayload) -> str:
    """Returns a mean with its interval: ``0.812 (0.771-0.850)``."""
    value, low, high = interval["value"], interval["low"], interval["high"]
    return f"{value:.3f} ({low:.3f}\u2013{high:.3f})"


def percentage(interval: IntervalPayload | None) -> str:
    """Returns a share with its interval: ``5 % (2-13)``."""
    if interval is None:
        return _NOTHING
    value, low, high = (100 * interval[key] for key in ("value", "low", "high"))
    return f"{value:.0f} % ({low:.0f}\u2013{high:.0f})"


def signed(difference: DifferencePayload) -> str:
    """Returns a difference with its interval, and whether it may be chance."""
    value, low, high = (difference[key] for key in ("difference", "low", "high"))
    noise = " within noise" if difference["within_noise"] else ""
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f}){noise}"


def memories_row(name: str, memories: TablePayload) -> tuple[str, ...]:
    """Returns the cells of the ``# Memories`` tables of some questions."""
    kept = memories["recall_kept"]
    return (
        name,
        number(memories["recall"]),
        number(memories["recall_unfiltered"]),
        _NOTHING if kept is None else f"{100 * kept:.0f} %",
        percentage(memories["precision"]),
        percentage(memories["with_rows"]),
    )


def _rules(rules: RulesPayload) -> str:
    return (
        f"{rules['scoring']} scores, weights text {rules['text_weight']:g} and vector"
        f" {rules['vector_weight']:g}, floor {rules['min_score_to_mention']:g}"
    )


def _measures(figures: KindPayload) -> Iterator[str]:
    rows = (
        (mode, *(number(measures[name]) for name in MEASURES))
        for mode, measures in figures["modes"].items()
    )
    yield from table(("mode", *MEASURES), rows)


def _tables(answer: EvalPayload) -> Iterator[str]:
    kinds = answer["kinds"].items()
    yield from table(MEMORIES_HEAD, (memories_row(name, kind["table"]) for name, kind in kinds))
    off_topic = answer["off_topic"]
    yield ""
    yield (
        f"Off topic: {percentage(off_topic['with_rows'])} of {off_topic['prompts']} everyday"
        f" prompts get a row above {answer['rules']['min_score_to_mention']:g}."
    )


def _comparison(comparison: ComparisonPayload) -> Iterator[str]:
    yield f"## {sanitize_cell(comparison['config'])} minus this configuration"
    yield ""
    yield f"There: {_rules(comparison['rules'])}"
    for kind, differences in comparison["kinds"].items():
        yield ""
        rows = ((name, signed(each)) for name, each in differences.items())
        yield from table((kind, "difference"), rows)
    yield ""
    yield f"Off topic with a row: {signed(comparison['off_topic'])}"
