"""``memory show PATH``: what does the index hold of one file?

Answers from the index alone: no path that a person types is ever opened (FAULTS 86).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.commands.asking import ask
from memory.commands.printing import print_answer
from memory.rendering import show_documents

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.payloads import ShowPayload


def run(options: Options) -> int:
    """Prints every chunk of a file."""
    answer, source = ask(options, lambda: _from_disk(options), path=options.subject)
    print_answer(options, answer, lambda: show_documents(answer, source))
    return 0


def _from_disk(options: Options) -> ShowPayload:
    from memory.disk import show  # noqa: PLC0415 - not needed beside a daemon

    return show(options.data, options.subject)
