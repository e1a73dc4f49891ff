"""``memory eval``: how well does the memory find what is known to be relevant?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory.commands.printing import print_answer

if TYPE_CHECKING:
    from memory.commands import Options

_LIMIT = 200


def run(options: Options) -> int:
    """Prints the figures of the index on disk, also beside a running daemon.

    Raises:
        EvaluationError: there is nothing to measure.
        ConfigError: a configuration is wrong.
    """
    settings = options.settings()
    from memory.config import load  # noqa: PLC0415 - as in ``settings``
    from memory.evaluation.rendering import eval_markdown  # noqa: PLC0415 - as below
    from memory.evaluation.saved_index import Request, evaluate  # noqa: PLC0415 - loads numpy

    compared = options.compare
    request = Request(
        settings=settings,
        limit=options.limit or _LIMIT,
        queries=_absolute(options.queries) if options.queries else None,
        other=(compared, load(_absolute(compared))) if compared else None,
    )
    answer = evaluate(options.data, request)
    print_answer(options, answer, lambda: [eval_markdown(answer)])
    return 0


def _absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()
