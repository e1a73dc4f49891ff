"""How do the figures of ``retrieval.py`` look to people?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusions import FUSIONS
from long_prompts import MEASURE, PLACES
from mode_indexes import FLOOR, MODES

from memory.evaluation.measures import MEASURES
from memory.evaluation.rendering import (
    MEMORIES_HEAD,
    memories_row,
    number,
    percentage,
    signed,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Figures = Mapping[str, Any]

_LENGTHS = ("short", "long", *PLACES)
_NOTHING = "\u2013"


def report(figures: Figures) -> Iterator[str]:
    """Yields the figures as lines of markdown; in brackets are intervals of 95 %."""
    sets = figures["sets"]
    parts = {
        "Each set in a workspace of its own": _modes(sets),
        f"{MEASURE} of hybrid and of its alternatives": _alternatives(sets),
        f"{MEASURE} of hybrid minus that of others": _differences(sets),
        "`# Memories` tables": _tables(sets),
        "Questions and prompts that get a row": _with_rows(sets),
        "Questions inside long prompts": _long(sets),
        "All in one workspace": _mixed(figures),
    }
    for title, lines in parts.items():
        yield from ("", f"## {title}", "", *lines)


def _modes(sets: Figures) -> Iterator[str]:
    yield from table(
        ("set, mode", "questions", *MEASURES),
        (
            (
                f"{name}, {mode}",
                f"{figure['questions']:,}",
                *(number(figure["modes"][mode][measure]) for measure in MEASURES),
            )
            for name, figure in sets.items()
            for mode in MODES
        ),
    )


def _alternatives(sets: Figures) -> Iterator[str]:
    yield from table(
        ("", *sets),
        (
            (
                mode,
                *(number(figure["modes"][mode][MEASURE]) for figure in sets.values()),
            )
            for mode in (*MODES, *FUSIONS)
        ),
    )


def _differences(sets: Figures) -> Iterator[str]:
    yield from table(
        ("hybrid minus", *sets),
        (
            (
                mode,
                *(signed(figure["hybrid minus"][mode][MEASURE]) for figure in sets.values()),
            )
            for mode in ("text", "vector", *FUSIONS)
        ),
    )


def _tables(sets: Figures) -> Iterator[str]:
    yield from table(
        MEMORIES_HEAD, (memories_row(name, figure["table"]) for name, figure in sets.items())
    )


def _with_rows(sets: Figures) -> Iterator[str]:
    asked = list(next(iter(sets.values()))["with rows"])
    yield from table(
        (f"rows above {FLOOR} in", *(f"for {name}" for name in asked), "for bare long prompts"),
        (
            (
                name,
                *(percentage(figure["with rows"][other]) for other in asked),
                percentage(figure["bare prompts"]["with rows"]),
            )
            for name, figure in sets.items()
        ),
    )


def _long(sets: Figures) -> Iterator[str]:
    if not any(figure["long prompts"] for figure in sets.values()):
        yield "Takes a set whose questions are asked so."
        return
    yield from table(
        ("", *_LENGTHS[:2], "long minus short", *(f"at the {place}" for place in PLACES)),
        (
            row
            for name, figure in sets.items()
            if figure["long prompts"]
            for row in _long_rows(name, figure["long prompts"])
        ),
    )


def _long_rows(name: str, figure: Figures) -> Iterator[tuple[str, ...]]:
    for mode, by_length in figure["modes"].items():
        cells = [number(by_length[each][MEASURE]) if each in by_length else "" for each in _LENGTHS]
        yield (f"{name}, {mode} {MEASURE}", *_with_difference(cells, by_length))
    tables = figure["table"]
    recall = [number(tables[each]["recall"]) if each in tables else "" for each in _LENGTHS]
    yield (f"{name}, recall of the table", *_with_difference(recall, tables))
    for title, key in (("with a row", "with_rows"), ("precision", "precision")):
        shares = [percentage(tables[each][key]) if each in tables else "" for each in _LENGTHS]
        yield (f"{name}, {title}", *shares[:2], "", *shares[2:])


def _with_difference(cells: list[str], by_length: Figures) -> tuple[str, ...]:
    return (*cells[:2], signed(by_length["long minus short"]), *cells[2:])


def _mixed(figures: Figures) -> Iterator[str]:
    mixed, alone = figures["mixed"], figures["sets"]
    if mixed is None:
        yield "Takes two sets or more."
        return
    yield f"{mixed['chunks']:,} chunks of {', '.join(mixed['sets'])}; {mixed['language']}"
    yield ""
    yield from table(
        (
            "questions, mode",
            f"{MEASURE} alone",
            MEASURE,
            "recall of the table",
            "of a table without floor",
            "with a row",
            "own file first",
            "file of another set first",
        ),
        (
            (
                f"{name}, {mode}",
                number(alone[name]["modes"][mode][MEASURE]),
                number(each["modes"][MEASURE]),
                number(each["table"]["recall"]),
                number(each["table"]["recall_unfiltered"]),
                percentage(each["table"]["with_rows"]),
                percentage(each["own file first"]),
                percentage(each["another set's file first"]),
            )
            for name, by_mode in mixed["sets"].items()
            for mode, each in by_mode.items()
        ),
    )
