"""Which figures does an evaluation report?

The shapes are stable: fields may be added, none is renamed (SPEC K4). Every interval is of 95 %.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from memory.evaluation.intervals import mean_interval, paired_difference, rate_interval
from memory.evaluation.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memory.evaluation.intervals import Interval
    from memory.evaluation.memories_table import TableFigures

Measures = dict[str, float]
"""Of one question, by the names in ``MEASURES``."""


class IntervalPayload(TypedDict):
    """A mean or a rate."""

    value: float
    low: float
    high: float


class DifferencePayload(TypedDict):
    """A difference of two means over the same questions."""

    difference: float
    low: float
    high: float
    within_noise: bool
    """Whether the interval holds 0."""


class TablePayload(TypedDict):
    """The ``# Memories`` tables of some questions."""

    recall: IntervalPayload
    recall_unfiltered: IntervalPayload
    """Recall of the first files that a search finds, as many as may have a row."""
    recall_kept: float | None
    """The first divided by the second; None if that is 0."""
    precision: IntervalPayload | None
    """Mean share of relevant rows; None if no question gets a row."""
    with_rows: IntervalPayload
    """Share of the questions that get a row."""


class KindPayload(TypedDict):
    """The questions of one kind."""

    questions: int
    modes: dict[str, dict[str, IntervalPayload]]
    """By mode (``text``, ``vector``, ``hybrid``) and measure."""
    table: TablePayload


class OffTopicPayload(TypedDict):
    """The bundled prompts that have nothing to do with a workspace."""

    prompts: int
    with_rows: IntervalPayload
    """Share of the prompts that get a row nevertheless."""


class RulesPayload(TypedDict):
    """What a configuration says about scores."""

    text_weight: float
    vector_weight: float
    scoring: str
    min_score_to_mention: float


class ComparisonPayload(TypedDict):
    """Another configuration minus this one."""

    config: str
    rules: RulesPayload
    kinds: dict[str, dict[str, DifferencePayload]]
    """By kind of question and measure of ``hybrid`` or of the table."""
    off_topic: DifferencePayload


class EvalPayload(TypedDict):
    """Answer to ``eval``."""

    files: int
    chunks: int
    model: str
    rules: RulesPayload
    kinds: dict[str, KindPayload]
    """``all`` is the last of several."""
    off_topic: OffTopicPayload
    comparison: ComparisonPayload | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one configuration answered; all lists are in the order of the questions."""

    modes: Mapping[str, Sequence[Measures]]
    """The measures of each question, by mode; ``hybrid`` is the configuration's own."""
    tables: Sequence[TableFigures]
    off_topic: Sequence[bool]
    """Whether each prompt of that list gets a row."""

    def of_questions(self, start: int, end: int) -> Outcome:
        """Returns what concerns some of the questions."""
        return Outcome(
            modes={mode: each[start:end] for mode, each in self.modes.items()},
            tables=self.tables[start:end],
            off_topic=self.off_topic,
        )


def kind_payload(outcome: Outcome) -> KindPayload:
    """Returns the figures of at least one question."""
    return {
        "questions": len(outcome.tables),
        "modes": {mode: measures_payload(each) for mode, each in outcome.modes.items()},
        "table": table_payload(outcome.tables),
    }


def measures_payload(each: Sequence[Measures]) -> dict[str, IntervalPayload]:
    """Returns the mean of each measure over at least one question."""
    return {name: _mean(one[name] for one in each) for name in MEASURES}


def table_payload(tables: Sequence[TableFigures]) -> TablePayload:
    """Returns the figures of at least one table."""
    precisions = [table.precision for table in tables if table.precision is not None]
    recall = statistics.fmean(table.recall for table in tables)
    unfiltered = statistics.fmean(table.recall_unfiltered for table in tables)
    return {
        "recall": _mean(table.recall for table in tables),
        "recall_unfiltered": _mean(table.recall_unfiltered for table in tables),
        "recall_kept": recall / unfiltered if unfiltered else None,
        "precision": _mean(precisions) if precisions else None,
        "with_rows": share(table.num_rows > 0 for table in tables),
    }


def share(each: Iterable[bool]) -> IntervalPayload:
    """Returns the share of what is true of at least one thing."""
    known = tuple(each)
    return _payload(rate_interval(sum(known), len(known)))


def difference(values: Sequence[float], others: Sequence[float]) -> DifferencePayload:
    """Returns the mean of ``values`` minus that of ``others``, question by question."""
    found = paired_difference(values, others)
    return {
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "within_noise": found.within_noise,
    }


def measure_differences(
    values: Sequence[Measures], others: Sequence[Measures]
) -> dict[str, DifferencePayload]:
    """Returns ``values`` minus ``others`` for each measure of at least one question."""
    return {
        name: difference([one[name] for one in values], [one[name] for one in others])
        for name in MEASURES
    }


def outcome_differences(outcome: Outcome, other: Outcome) -> dict[str, DifferencePayload]:
    """Returns the first minus the second for the hybrid mode and the table.

    Precision is compared over the questions to which both give a row, and left out if there are
    none.
    """
    pairs = list(zip(outcome.tables, other.tables, strict=True))
    columns = {
        "table recall": [(one.recall, two.recall) for one, two in pairs],
        "table precision": [
            (one.precision, two.precision)
            for one, two in pairs
            if one.precision is not None and two.precision is not None
        ],
        "with rows": [(float(one.num_rows > 0), float(two.num_rows > 0)) for one, two in pairs],
    }
    return measure_differences(outcome.modes["hybrid"], other.modes["hybrid"]) | {
        name: difference(*zip(*column, strict=True)) for name, column in columns.items() if column
    }


def _mean(values: Iterable[float]) -> IntervalPayload:
    return _payload(mean_interval(tuple(values)))


def _payload(interval: Interval) -> IntervalPayload:
    return {"value": interval.value, "low": interval.low, "high": interval.high}
