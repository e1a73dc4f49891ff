"""How does what a provider says about a failure become fit to be shown?

Providers repeat the key ("Incorrect API key provided: sk-...") and the texts they refuse. Neither
may reach a log, an error or a screen.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING
from urllib.parse import unquote

from memory.sanitizing import sanitize_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_CHARS = 200
_MAX_READ_CHARS = 600
"""Every place of a message is looked up in all texts of the request, 1 ms a MB."""
_KEY_RUN = 8
_TEXT_RUN = 12
_MIN_TEXT = 4
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_ESCAPE = re.compile(r"\\[nrtbf\"\\]|\\u[0-9a-fA-F]{4}")


def presentable(message: str, *, key: str, texts: Sequence[str] = ()) -> str:
    """Returns a message as one short line without the key and the texts of a request.

    Args:
        message: Anything; only its beginning is read.
        key: No run of 8 characters of it stays, percent-encoded or not; a shorter key goes whole.
        texts: No run of 12 characters of them stays, and none that is shorter but whole.

    Returns:
        At most 200 characters, harmless in a terminal.
    """
    # What is encoded for an address or for JSON would look different from the key or the texts.
    head = _ESCAPE.sub(" ", unquote(message[:_MAX_READ_CHARS]).replace("\\/", "/"))
    head = masked(head, (key,), run=_KEY_RUN, mask="[key]")
    pieces = [text for text in texts if len(text.strip()) >= _MIN_TEXT]
    head = masked(head, pieces, run=_TEXT_RUN, mask="[text]")
    return sanitize_cell(head, MAX_CHARS)


def masked(message: str, secrets: Iterable[str], *, run: int, mask: str) -> str:
    """Replaces what a message has in common with secrets, whatever the case of its letters.

    Args:
        message: The text to clean.
        secrets: A secret shorter than ``run`` is replaced where it stands whole.
        run: Least number of successive characters that give a secret away.
        mask: What stands in the place of each replaced stretch.
    """
    folded = message.translate(_LOWER)
    known = [secret.strip().translate(_LOWER) for secret in secrets]
    haystack = "\0".join(secret for secret in known if len(secret) >= run)
    covered = bytearray(len(folded))
    for start in range(len(folded) - run + 1):
        if "\0" not in (piece := folded[start : start + run]) and piece in haystack:
            covered[start : start + run] = b"\1" * run
    for secret in {secret for secret in known if 0 < len(secret) < run}:
        for found in re.finditer(re.escape(secret), folded):
            covered[found.start() : found.end()] = b"\1" * len(secret)
    stretches = re.finditer(rb"\x01+|\x00+", covered)
    return "".join(
        mask if covered[each.start()] else message[each.start() : each.end()] for each in stretches
    )
