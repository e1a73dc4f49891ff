"""Which words of a language say nothing about the subject of a text?

The lists are short on purpose: only function words (articles, pronouns, particles, common
prepositions, auxiliaries), never nouns or full verbs such as *system*, *work* or *name*, which the
long public lists contain and which people do search for. One UTF-8 file a language, one word a
line, written as the language writes it.
"""

from __future__ import annotations

from importlib import resources


def load_stop_words(language: str) -> frozenset[str]:
    """Returns the function words of a language, lower-case, accents kept.

    Args:
        language: One of ``memory.analysis.LANGUAGES``.
    """
    path = resources.files("memory") / "languages" / f"{language}.txt"
    return frozenset(path.read_text(encoding="utf-8").split())
