"""``memory list``: which files are indexed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.commands.asking import ask
from memory.commands.printing import print_answer
from memory.rendering import list_markdown

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.payloads import ListItem


def run(options: Options) -> int:
    """Prints the indexed files, sorted by path."""
    answer, source = ask(options, lambda: _from_disk(options))
    print_answer(options, answer, lambda: [list_markdown(answer, source)])
    return 0


def _from_disk(options: Options) -> list[ListItem]:
    from memory.disk import list_files  # noqa: PLC0415 - not needed beside a daemon

    return list_files(options.data)
