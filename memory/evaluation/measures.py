"""How good is one ranking?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memory.evaluation.question import Document

MEASURES = ("R@5", "R@10", "nDCG@10", "MRR")


def measures(ranking: Sequence[Document], grades: Mapping[Document, float]) -> dict[str, float]:
    """Returns the measures of a ranking, each in [0, 1].

    R@k is the share of all relevant documents among the first k; it cannot reach 1 if more than k
    are relevant. MRR of one ranking is the reciprocal rank of its first relevant document.

    Args:
        ranking: Distinct documents, best first.
        grades: Gains of the relevant ones, above zero; at least one.

    Source:
        Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, with the
        gain as it is and a discount of log2(rank + 1).
    """
    gains = [grades.get(document, 0.0) for document in ranking]
    ideal = sorted(grades.values(), reverse=True)
    first = next((rank for rank, gain in enumerate(gains, 1) if gain), None)
    return {
        "R@5": sum(map(bool, gains[:5])) / len(grades),
        "R@10": sum(map(bool, gains[:10])) / len(grades),
        "nDCG@10": _dcg(gains[:10]) / _dcg(ideal[:10]),
        "MRR": 1 / first if first else 0.0,
    }


def _dcg(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
