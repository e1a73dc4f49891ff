"""How well does a search find what is known to be relevant?

Prints R@5, R@10, nDCG@10 and MRR of the text side, the vector side and both, per set, through the
product's own parser, index and search::

    python benchmarks/retrieval.py FOLDER [--sets NAME,…] [--model NAME] [--cache DIR] [--json FILE]

FOLDER holds one folder per set, see ``judged``. A set that judges sections ranks sections, else
files count, each with its best hit. Also printed: the share of questions that get a row above
``memory.minScoreToMention``, in their own workspace and in one that is about something else.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding_cache import EmbeddingCache
from judged import Document, Question, built_index, questions
from measuring import save

from memory.analysis import Analyzer
from memory.calibrating import Calibration
from memory.config import MemorySettings
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import Query
from memory.providers.factory import model_info
from memory.providers.local import LOCAL, MINILM
from memory.snapshot import SnapshotFile
from memory.unrelated_prompts import unrelated_prompts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.messages import Hit
    from memory.providers.base import ModelInfo

MODES = {"text": Weights(1.0, 0.0), "vector": Weights(0.0, 1.0), "hybrid": Weights(0.5, 0.5)}
LANGUAGES = {"de": "german", "en": "english"}
"""Language by the end of a set's name; the product's default for all others."""
DEPTH = 50
"""Files a search is asked for; as in every answer, at most three hits of a file count."""
NUM_PROCESSES = 2
FLOOR = MemorySettings().min_score_to_mention
MEASURES = ("R@5", "R@10", "nDCG@10", "MRR")


class JudgedSet:
    """A workspace with its questions, indexed once, searched in every mode."""

    def __init__(self, folder: Path, info: ModelInfo, cache: EmbeddingCache) -> None:
        self.name = folder.name
        self.questions = questions(folder)
        self.vectors = cache.queries([question.text for question in self.questions])
        language = LANGUAGES.get(folder.name.rpartition("-")[2], "english")
        analyzer = Analyzer(language)
        index = built_index(folder, info, analyzer, cache)
        self.num_chunks = index.status().num_chunks
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "memory.msp"
            save(index, path)
            self._indexes = {}
            for mode, weights in MODES.items():
                with SnapshotFile(path) as snapshot:
                    self._indexes[mode] = MemoryIndex.restore(
                        snapshot, info, analyzer, IndexSettings(weights=weights), epoch=mode
                    )
                _calibrate(self._indexes[mode], cache)

    def hits(
        self, mode: str, text: str, vector: NDArray[np.float32], *, limit: int
    ) -> tuple[Hit, ...]:
        """Returns what the product answers to a question, from so many files at most."""
        return self._indexes[mode].search(Query(text, limit), vector).hits

    def measures(self, mode: str) -> dict[str, float]:
        """Returns the mean of each measure over all questions."""
        each = []
        for question, vector in zip(self.questions, self.vectors, strict=True):
            hits = self.hits(mode, question.text, vector, limit=DEPTH)
            each.append(_measures(_ranking(hits, question), question.grades))
        return {name: statistics.fmean(one[name] for one in each) for name in MEASURES}

    def share_with_rows(self, others: JudgedSet) -> float:
        """Returns the share of another set's questions that get a row in this workspace."""
        asked = zip(others.questions, others.vectors, strict=True)
        return statistics.fmean(
            any(hit.score > FLOOR for hit in self.hits("hybrid", question.text, vector, limit=1))
            for question, vector in asked
        )


def _calibrate(index: MemoryIndex, cache: EmbeddingCache) -> None:
    prompts = list(chain.from_iterable(unrelated_prompts()))
    need = index.calibrate(cache.queries(prompts))
    while need is Calibration.STEPS:
        need = index.calibrate()


def _ranking(hits: Iterable[Hit], question: Question) -> list[Document]:
    """Returns what the hits stand for, best first, each once."""
    documents = (
        (hit.path, _section(hit.headlines) if question.by_section else "")
        for hit in hits
        if hit.path not in question.exclude
    )
    return list(dict.fromkeys(documents))


def _section(headlines: str) -> str:
    return headlines.rpartition(" > ")[2].lstrip("#").strip()


def _measures(ranking: Sequence[Document], grades: dict[Document, float]) -> dict[str, float]:
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


def evaluated(sets: Sequence[JudgedSet]) -> dict[str, dict[str, Any]]:
    """Returns the figures of every set and mode, and the shares of questions with rows."""
    figures: dict[str, dict[str, Any]] = {}
    for one in sets:
        figures[one.name] = {
            "chunks": one.num_chunks,
            "questions": len(one.questions),
            **{mode: one.measures(mode) for mode in MODES},
            "with rows": {other.name: one.share_with_rows(other) for other in sets},
        }
    return figures


def table(figures: dict[str, dict[str, Any]]) -> str:
    """Returns the figures as markdown."""
    lines = [f"| set | mode | {' | '.join(MEASURES)} |", "| - | - |" + " -: |" * len(MEASURES)]
    for name, figure in figures.items():
        for mode in MODES:
            cells = " | ".join(f"{figure[mode][measure]:.3f}" for measure in MEASURES)
            lines.append(f"| {name} | {mode} | {cells} |")
    lines += ["", f"| workspace | {' | '.join(f'questions of {name}' for name in figures)} |"]
    lines.append("| - |" + " -: |" * len(figures))
    for name, figure in figures.items():
        cells = " | ".join(f"{figure['with rows'][other]:.0%}" for other in figures)
        lines.append(f"| {name}, rows above {FLOOR} for | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default="owasp,xquad-en,xquad-de,xquad-zh")
    parser.add_argument("--model", default=MINILM)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "memory-vectors"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    info = model_info(LOCAL, options.model)
    cache = EmbeddingCache(options.cache, info, num_processes=NUM_PROCESSES)
    names = options.sets.split(",")
    figures = evaluated([JudgedSet(options.folder / name, info, cache) for name in names])
    print(table(figures))
    if options.json:
        options.json.write_text(
            json.dumps({"model": options.model, "sets": figures}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
