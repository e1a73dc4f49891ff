"""What do people ask that has nothing to do with a workspace?

Everyday prompts in eight languages. They are kept apart from whatever scores are calibrated with,
which would otherwise be measured with its own yardstick.
"""

from __future__ import annotations

from importlib import resources


def off_topic_prompts() -> tuple[str, ...]:
    """Returns the bundled prompts, one on a line of ``off_topic.txt``."""
    path = resources.files("memory") / "evaluation" / "off_topic.txt"
    return tuple(path.read_text(encoding="utf-8").splitlines())
