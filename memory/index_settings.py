"""How does an index search, and how much does it keep?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memory.fusion import Weights
from memory.index_search import SearchRules
from memory.vector_cache import DEFAULT_MAX_BYTES

if TYPE_CHECKING:
    from memory.config import MemorySettings
    from memory.orama_ranking import OramaRanking

_EVEN = Weights()


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How an index searches, and how much it keeps."""

    weights: Weights = _EVEN
    min_similarity: float = 0.3
    """Least cosine of a hit that only the vector side found, unless the model asks for more."""
    scoring: Literal["absolute", "orama"] = "absolute"
    """Scores that mean the same for every query, or those of Orama (SPEC S5)."""
    max_cached_bytes: int = DEFAULT_MAX_BYTES
    """Memory for the vectors of removed chunks."""
    workspace: str = ""
    """Root of the paths; only noted in snapshots."""

    @classmethod
    def of(cls, memory: MemorySettings, *, workspace: str = "") -> IndexSettings:
        """Returns the settings that a configuration asks for."""
        return cls(
            weights=Weights(memory.hybrid_weights.text, memory.hybrid_weights.vector),
            min_similarity=memory.min_vector_similarity,
            scoring=memory.scoring,
            workspace=workspace,
        )

    def rules(self, language: str, *, floor: float) -> SearchRules:
        """Returns how the sides become one score.

        Args:
            language: Of the text index.
            floor: Least cosine that means anything with the model.
        """
        return SearchRules(self.weights, max(self.min_similarity, floor), self._orama(language))

    def _orama(self, language: str) -> OramaRanking | None:
        """Returns what ranks as Orama does; None with absolute scores."""
        if self.scoring != "orama":
            return None
        from memory.orama_ranking import OramaRanking  # noqa: PLC0415 - others need not wait for it

        return OramaRanking(language, self.weights, floor=self.min_similarity)
