"""``memory search QUERY``: which sections answer a question?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory.commands.asking import ask
from memory.commands.printing import print_answer
from memory.rendering import search_markdown

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.payloads import SearchPayload


def run(options: Options) -> int:
    """Prints every hit, whatever its score."""
    # Without a limit the answer has as many files as the configuration says.
    answer, _ = ask(
        options, lambda: _from_disk(options), query=options.subject, limit=options.limit
    )
    print_answer(options, answer, lambda: [search_markdown(answer, explain=options.explain)])
    return 0


def _from_disk(options: Options) -> SearchPayload:
    from memory.disk import search  # noqa: PLC0415 - not needed beside a daemon
    from memory.messages import Query  # noqa: PLC0415 - as above

    settings = options.settings()
    return search(
        options.data,
        settings,
        Query(options.subject, options.limit or settings.memory.max_tool_memory_results),
        workspace=Path(options.workspace).absolute() if options.workspace else None,
        now_s=options.now_s,
    )
