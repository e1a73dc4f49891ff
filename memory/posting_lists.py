"""What is a segment: which documents hold which terms, in arrays?"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

FIELDS = ("content", "context", "headlines", "meta", "path")
"""Names of the indexed fields, sorted as Whoosh stores them."""


@dataclass(frozen=True, slots=True)
class FieldPostings:
    """The terms of one field and their postings, one term after another."""

    terms: list[str]
    """Distinct, sorted."""
    starts: NDArray[np.int64]
    """Where the postings of each term begin, shape (len(terms) + 1,)."""
    docnums: NDArray[np.int32]
    """Document numbers, ascending within a term."""
    counts: NDArray[np.uint16]
    """Occurrences of the term in each of these documents."""

    def place(self, term: str) -> int | None:
        """Returns the position of a term in ``terms``, None if it is not there.

        A segment of an edit answers a few queries until it is merged; a dict of its terms takes
        longer to make than they do.
        """
        place = bisect_left(self.terms, term)
        return place if place < len(self.terms) and self.terms[place] == term else None


class Segment(Protocol):
    """Some rows, inverted; never changes. A document number is a row's position in ``rows``."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row ids by document number."""
        ...

    @property
    def lengths(self) -> Mapping[str, NDArray[np.float32]]:
        """Field to the number of its terms in each document, as Whoosh rounds it."""
        ...

    @property
    def total_lengths(self) -> Mapping[str, float]:
        """Field to the number of its terms in all documents."""
        ...

    def doc_frequency(self, field: str, term: str) -> int:
        """Returns how many documents hold a term, deleted ones included."""
        ...

    def postings(
        self, field: str, term: str
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Returns (document numbers, occurrences) of a term, None if it is not there."""
        ...

    def with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        ...

    def most_frequent(self, field: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that most documents hold."""
        ...

    def field_postings(self, field: str) -> FieldPostings:
        """Returns every term of a field."""
        ...
