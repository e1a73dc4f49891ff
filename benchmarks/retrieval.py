"""How well does a search find what is known to be relevant?

Prints, per set and through the product's own parser, index and search, R@5, R@10, nDCG@10 and MRR
of the text side, the vector side, both, and of plain fusion (``plain_fusion``), and whether the
product differs from it; what the ``# Memories`` table keeps of that; and how many questions get a
row in their own workspace, and in one that is about something else::

    python benchmarks/retrieval.py FOLDER [--sets NAME,…] [--model NAME] [--cache DIR] [--json FILE]

FOLDER holds one folder per set, see ``judged``. A set that judges sections ranks sections, else
files count, each with its best hit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding_cache import EmbeddingCache
from judged import built_index, questions
from measuring import save
from plain_fusion import PlainFusion

from memory.analysis import Analyzer
from memory.calibrating import calibrate_at_once
from memory.config import Settings
from memory.evaluation.asking import Asked, answer_measures
from memory.evaluation.measures import MEASURES, measures
from memory.evaluation.memories_table import MemoriesTable
from memory.evaluation.off_topic import off_topic_prompts
from memory.evaluation.rendering import (
    MEMORIES_HEAD,
    memories_row,
    number,
    percentage,
    signed,
    table,
)
from memory.evaluation.report import (
    measure_differences,
    measures_payload,
    share,
    table_payload,
)
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.providers.factory import model_info
from memory.providers.local import LOCAL, MINILM
from memory.snapshot import SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.evaluation.report import IntervalPayload, Measures
    from memory.providers.base import ModelInfo

    Prompts = Sequence[tuple[str, NDArray[np.float32]]]

MODES = {"text": Weights(1.0, 0.0), "vector": Weights(0.0, 1.0), "hybrid": Weights(0.5, 0.5)}
PLAIN = "max-normalised"
LANGUAGES = {"de": "german", "en": "english"}
"""Language by the end of a set's name; the product's default for all others."""
NUM_PROCESSES = 2
SETTINGS = Settings()
FLOOR = SETTINGS.memory.min_score_to_mention
EVERYDAY = "everyday prompts"


class JudgedSet:
    """A workspace with its questions, indexed once, searched in every mode."""

    def __init__(self, folder: Path, info: ModelInfo, cache: EmbeddingCache) -> None:
        self.name = folder.name
        asked = questions(folder, info)
        vectors = cache.queries([question.text for question in asked])
        self.prompts: Prompts = [
            (question.text, vector) for question, vector in zip(asked, vectors, strict=True)
        ]
        self._asked = [Asked(*pair) for pair in zip(asked, vectors, strict=True)]
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
                calibrate_at_once(self._indexes[mode].calibrate, cache.queries)
        self._table = MemoriesTable(self._indexes["hybrid"], SETTINGS)

    def figures(self) -> dict[str, Any]:
        """Returns the figures of every mode and of the table."""
        each: dict[str, list[Measures]] = {
            mode: [answer_measures(index, asked) for asked in self._asked]
            for mode, index in self._indexes.items()
        }
        each[PLAIN] = list(self._plain())
        return {
            "chunks": self.num_chunks,
            "questions": len(self._asked),
            "modes": {mode: measures_payload(values) for mode, values in each.items()},
            "hybrid minus plain": measure_differences(each["hybrid"], each[PLAIN]),
            "table": table_payload([self._table.figures(asked) for asked in self._asked]),
        }

    def share_with_rows(self, prompts: Prompts) -> IntervalPayload:
        """Returns the share of prompts that get a row in this workspace."""
        return share(self._table.has_rows(*prompt) for prompt in prompts)

    def _plain(self) -> Iterator[Measures]:
        fusion = PlainFusion(self._indexes["hybrid"])
        for asked in self._asked:
            assert asked.vector is not None
            ranking = fusion.ranking(asked.question, asked.vector)
            yield measures(ranking, asked.question.grades)


def evaluated(sets: Sequence[JudgedSet], everyday: Prompts) -> dict[str, dict[str, Any]]:
    """Returns the figures of every set, and the shares of all prompts with rows in each."""
    prompts = {one.name: one.prompts for one in sets} | {EVERYDAY: everyday}
    return {
        one.name: one.figures()
        | {"with rows": {name: one.share_with_rows(asked) for name, asked in prompts.items()}}
        for one in sets
    }


def report(figures: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Yields the figures as lines of markdown."""
    yield from table(
        ("set, mode", *MEASURES),
        (
            (f"{name}, {mode}", *(number(values[measure]) for measure in MEASURES))
            for name, figure in figures.items()
            for mode, values in figure["modes"].items()
        ),
    )
    yield ""
    yield from table(
        (f"hybrid minus {PLAIN}", *MEASURES),
        (
            (name, *(signed(figure["hybrid minus plain"][measure]) for measure in MEASURES))
            for name, figure in figures.items()
        ),
    )
    yield ""
    yield from table(
        MEMORIES_HEAD, (memories_row(name, figure["table"]) for name, figure in figures.items())
    )
    yield ""
    asked = list(next(iter(figures.values()))["with rows"])
    yield from table(
        (f"rows above {FLOOR} in", *(f"for {name}" for name in asked)),
        (
            (name, *(percentage(figure["with rows"][other]) for other in asked))
            for name, figure in figures.items()
        ),
    )


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
    sets = [JudgedSet(options.folder / name, info, cache) for name in options.sets.split(",")]
    everyday = off_topic_prompts()
    vectors = cache.queries(everyday)
    figures = evaluated(sets, list(zip(everyday, vectors, strict=True)))
    print("\n".join(report(figures)))
    if options.json:
        options.json.write_text(
            json.dumps({"model": options.model, "sets": figures}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
