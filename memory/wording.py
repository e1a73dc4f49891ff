"""How is a number of things said in a line for people?"""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, an "s" behind it unless it is one thing."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
