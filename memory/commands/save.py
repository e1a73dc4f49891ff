"""``memory save TEXT``: how does a person or a script hand over a fact?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memory.commands.printing import complain, print_answer, say
from memory.daemon_client import request
from memory.sanitizing import printable_block

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.payloads import SavePayload

_TIMEOUT_S = 30.0
_STDIN = "-"
_MAX_UTF8_BYTES = 4


def run(options: Options) -> int:
    """Queues a fact, which is kept from then on; the same text again is no error.

    Raises:
        DaemonNotRunning: there is nobody who could keep it.
        DaemonError: the daemon broke off or refused.
    """
    from memory.tools import MAX_SAVE_CHARACTERS  # noqa: PLC0415 - loads asyncio

    # The rules of the tool ``memory_save``.
    text = options.subject
    if text == _STDIN:
        text = _read_stdin(MAX_SAVE_CHARACTERS)
    content = printable_block(text)
    if not content.strip() or len(content) > MAX_SAVE_CHARACTERS:
        complain(f"a fact has 1 to {MAX_SAVE_CHARACTERS:,} characters, not only blanks")
        return 1
    answer: SavePayload = request(options.data, "save", _TIMEOUT_S, content=content)
    if options.as_json:
        print_answer(options, answer, tuple)
    else:
        say(f"{answer['state']} (event {answer['event_id']})")
        if "problem" in answer:
            say(f"no agent run files it: {answer['problem']}")
    return 0


def _read_stdin(max_characters: int) -> str:
    """Returns standard input as UTF-8; a little more than allowed if it is too long."""
    data = sys.stdin.buffer.read(_MAX_UTF8_BYTES * max_characters + _MAX_UTF8_BYTES)
    return data.decode("utf-8", "replace")
