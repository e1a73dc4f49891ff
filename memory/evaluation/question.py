"""What is a question whose answer is known?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Document = tuple[str, str]
"""What is judged: (path, title of a section), the section empty where the whole file is."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what answers it."""

    text: str
    grades: Mapping[Document, float]
    """What is relevant, and how much, above zero; at least one document."""
    exclude: frozenset[str] = frozenset()
    """Paths that are left out of every answer, because they quote the question."""

    @property
    def by_section(self) -> bool:
        """Whether sections are judged, not files."""
        return any(section for _path, section in self.grades)

    @property
    def relevant_paths(self) -> frozenset[str]:
        """The files that answer the question, whole or with a section."""
        return frozenset(path for path, _section in self.grades)
