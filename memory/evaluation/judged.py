"""Which questions does a file of judged questions hold?

One JSON object a line, blank lines between them are skipped::

    {"query": …, "relevant": [{"path": …, "section"?: …, "grade"?: …}], "exclude"?: [path, …]}

``section`` is the title of a section without its ``#``; ``grade`` is a number, 1 by default, and
what has a grade of zero or less is not relevant. Other keys are ignored.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memory.errors import EvaluationError
from memory.evaluation.question import Question

if TYPE_CHECKING:
    from pathlib import Path


def _key(path: object) -> object:
    """Returns a path as the index spells it."""
    if not isinstance(path, str):
        return path
    return unicodedata.normalize("NFC", path.removeprefix("./"))


_PathKey = Annotated[str, BeforeValidator(_key)]


class _Relevant(BaseModel):
    path: _PathKey
    section: str = ""
    grade: float = Field(default=1.0, allow_inf_nan=False)


class _Line(BaseModel):
    model_config = ConfigDict(strict=True)

    query: str
    relevant: list[_Relevant]
    exclude: list[_PathKey] = []


def read_questions(file: Path) -> tuple[Question, ...]:
    """Reads the questions of a file, in their order.

    Raises:
        EvaluationError: the file cannot be read, or a line is no question; the message names it.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise EvaluationError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{file}: not UTF-8 at byte {error.start}") from None
    return tuple(
        _question(line, f"{file}:{number}") for number, line in enumerate(lines, 1) if line.strip()
    )


def _question(text: str, where: str) -> Question:
    try:
        line = _Line.model_validate(json.loads(text))
    except (json.JSONDecodeError, RecursionError):
        raise EvaluationError(f"{where}: not a JSON object on one line") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        keys = ".".join(map(str, first["loc"])) or "the line"
        raise EvaluationError(f"{where}: {keys}: {first['msg'].lower()}") from None
    grades = {(each.path, each.section): each.grade for each in line.relevant if each.grade > 0}
    if not line.query.strip():
        raise EvaluationError(f"{where}: query is blank")
    if not grades:
        raise EvaluationError(f"{where}: relevant names nothing with a grade above 0")
    return Question(line.query, grades, frozenset(line.exclude))
