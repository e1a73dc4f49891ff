"""Which prompts have nothing to do with what a workspace holds?

Everyday requests, the same ones in each of several languages. What they have in common with a
chunk, and what the best chunk of a workspace reaches for them, is noise, see ``calibration``.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

VERSION = 2
"""To be raised when the list or what is measured with it changes: what was measured is void."""


@cache
def unrelated_prompts() -> tuple[tuple[str, ...], ...]:
    """Returns the prompts of each language, as many in each, the same ones in the same order."""
    lines = (resources.files("memory") / "unrelated_prompts.txt").read_text(encoding="utf-8")
    languages = lines.split("# ")[1:]
    # The first line of each names the language.
    return tuple(tuple(language.splitlines()[1:]) for language in languages)
