"""Is a question still answered when it stands inside the long prompt of an agent?"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged import with_vectors

from memory.evaluation.question import Question
from memory.evaluation.report import difference, measures_payload, share, table_payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedding_cache import EmbeddingCache
    from judged import JudgedSet
    from mode_indexes import ModeIndexes

    from memory.evaluation.report import Measures

PLACES = ("beginning", "middle", "end")
"""Where in a prompt the question stands."""
MEASURE = "nDCG@10"
_BETWEEN_PROMPTS = "\n%%\n"
_BETWEEN_PARAGRAPHS = "\n\n"


@lru_cache
def agent_prompts() -> tuple[str, ...]:
    """Returns prompts of about 300 words that ask nothing, to put questions into."""
    return _prompts("agent_prompts.txt")


@lru_cache
def off_topic_prompts() -> tuple[str, ...]:
    """Returns prompts as long that nothing in the sets answers, some of which ask something."""
    return _prompts("off_topic_prompts.txt")


def long_prompt(question: str, number: int) -> str:
    """Returns a question inside a prompt; its number decides in which one and where."""
    prompts = agent_prompts()
    paragraphs = prompts[number % len(prompts)].split(_BETWEEN_PARAGRAPHS)
    before = place_of(number) * len(paragraphs) // (len(PLACES) - 1)
    return _BETWEEN_PARAGRAPHS.join([*paragraphs[:before], question, *paragraphs[before:]])


def place_of(number: int) -> int:
    """Returns which of ``PLACES`` the question with this number has."""
    return number // len(agent_prompts()) % len(PLACES)


def long_figures(one: JudgedSet, indexes: ModeIndexes, cache: EmbeddingCache) -> dict[str, Any]:
    """Returns what is found for the questions of a set as they are, and inside prompts."""
    inside = [
        replace(asked.question, text=long_prompt(asked.question.text, number))
        for number, asked in enumerate(one.asked)
    ]
    long = with_vectors(inside, cache)
    table = indexes.tables["hybrid"]
    short_modes, long_modes = indexes.measures(one.asked), indexes.measures(long)
    short_tables, long_tables = (list(map(table.figures, each)) for each in (one.asked, long))
    return {
        "questions": len(long),
        "modes": {
            mode: _by_place(short_modes[mode], long_modes[mode], measures_payload)
            | {"long minus short": _difference(long_modes[mode], short_modes[mode])}
            for mode in short_modes
        },
        "table": _by_place(short_tables, long_tables, table_payload)
        | {
            "long minus short": difference(
                [each.recall for each in long_tables], [each.recall for each in short_tables]
            )
        },
    }


def bare_figures(indexes: ModeIndexes, cache: EmbeddingCache) -> dict[str, Any]:
    """Returns which share of the prompts gets a row although they ask nothing."""
    prompts, table = (*agent_prompts(), *off_topic_prompts()), indexes.tables["hybrid"]
    asked = with_vectors([Question(prompt, {}) for prompt in prompts], cache)
    return {
        "prompts": len(prompts),
        "with rows": share(
            table.has_rows(each.question.text, each.vector, each.parts) for each in asked
        ),
    }


def _prompts(name: str) -> tuple[str, ...]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return tuple(text.strip().split(_BETWEEN_PROMPTS))


def _by_place(short: Sequence[Any], long: Sequence[Any], payload: Any) -> dict[str, Any]:
    """Returns the figures of short and of long prompts, and of the long ones by place."""
    places: Mapping[str, list[Any]] = {name: [] for name in PLACES}
    for number, each in enumerate(long):
        places[PLACES[place_of(number)]].append(each)
    return {
        name: payload(each)
        for name, each in {"short": short, "long": long, **places}.items()
        if each
    }


def _difference(long: Sequence[Measures], short: Sequence[Measures]) -> Any:
    return difference([each[MEASURE] for each in long], [each[MEASURE] for each in short])
