"""``memory context PROMPT``: what would an agent read under ``# Memories``?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memory.commands.asking import ask
from memory.commands.printing import print_answer

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.payloads import ContextPayload


def run(options: Options) -> int:
    """Prints the section, and nothing else on stdout; a blank prompt has none."""
    answer, source = ask(options, lambda: _from_disk(options), prompt=options.subject)
    print_answer(options, answer, lambda: [answer["section"]])
    if not options.as_json:
        sys.stderr.write(f"{source}\n")
    return 0


def _from_disk(options: Options) -> ContextPayload:
    from memory.disk import context  # noqa: PLC0415 - not needed beside a daemon

    return context(options.data, options.settings(), options.subject)
