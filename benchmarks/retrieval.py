"""How well does a search find what is known to be relevant, and would another fusion do better?

Prints, through the product's own parser, index and search, R@5, R@10, nDCG@10 and MRR of the text
side, the vector side and both; of well-known fusions (``fusions``), and whether the product differs
from them; what the ``# Memories`` table keeps of that; how many questions get a row in their own
workspace, and in one that is about something else; what is left when a question stands inside a
long prompt (``long_prompts``), or its files among those of other sets (``mixed_set``)::

    python benchmarks/retrieval.py FOLDER [--sets NAME,…] [--mixed NAME,…] [--long NAME,…]
        [--model NAME] [--cache DIR] [--json FILE] [--save]

FOLDER holds one folder per set, see ``judged``. A set that judges sections ranks sections, else
files count, each with its best hit.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding_cache import EmbeddingCache
from fusions import FUSIONS, Rankings
from judged import JudgedSet, judged_set
from long_prompts import bare_figures, long_figures
from measuring import machine
from mixed_set import mixed_figures
from mode_indexes import ModeIndexes
from retrieval_report import report

from memory.calibration import Reference
from memory.evaluation.measures import measures
from memory.evaluation.off_topic import off_topic_prompts
from memory.evaluation.report import measure_differences, measures_payload, share, table_payload
from memory.providers.factory import model_info
from memory.providers.local import LOCAL, MINILM
from memory.unrelated_prompts import unrelated_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.evaluation.report import Measures
    from memory.providers.base import ModelInfo

    Prompts = Sequence[tuple[str, NDArray[np.float32] | None, tuple[str, ...]]]

RESULTS = Path(__file__).with_name("results")
LANGUAGES = {"de": "german", "en": "english"}
"""Language by the end of a set's name; the product's default for all others."""
NUM_PROCESSES = 2
EVERYDAY = "everyday prompts"
PACKAGES = ("numpy", "faiss-cpu", "onnxruntime", "tokenizers", "PyStemmer")


class Evaluation:
    """Sets of questions, each in a workspace of its own.

    Args:
        sets: With distinct names.
        info: The model.
        cache: Its vectors.
    """

    def __init__(self, sets: Sequence[JudgedSet], info: ModelInfo, cache: EmbeddingCache) -> None:
        self._sets = sets
        self._info = info
        self._cache = cache
        unrelated = cache.queries(list(chain.from_iterable(unrelated_prompts())))
        self._reference = Reference(unrelated)
        everyday = off_topic_prompts()
        self._prompts: Mapping[str, Prompts] = {
            one.name: [(asked.question.text, asked.vector, asked.parts) for asked in one.asked]
            for one in sets
        } | {EVERYDAY: [(text, cache.queries([text])[0], ()) for text in everyday]}

    def figures(self, *, mixed: Sequence[str], long: Sequence[str]) -> dict[str, Any]:
        """Returns all figures.

        Args:
            mixed: Names of the sets that are put into one workspace, too.
            long: Names of the sets whose questions are asked inside long prompts, too.
        """
        together = [one for one in self._sets if one.name in mixed]
        return {
            "sets": {one.name: self._of_set(one, is_long=one.name in long) for one in self._sets},
            "mixed": (
                mixed_figures(together, self._info, self._cache) if len(together) > 1 else None
            ),
        }

    def _of_set(self, one: JudgedSet, *, is_long: bool) -> dict[str, Any]:
        language = LANGUAGES.get(one.name.rpartition("-")[2], "english")
        indexes = ModeIndexes(one.files, language, self._info, self._cache)
        each = indexes.measures(one.asked) | self._alternatives(one, indexes)
        table = indexes.tables["hybrid"]
        return {
            "chunks": indexes.num_chunks,
            "questions": len(one.asked),
            "modes": {mode: measures_payload(values) for mode, values in each.items()},
            "hybrid minus": {
                mode: measure_differences(each["hybrid"], values)
                for mode, values in each.items()
                if mode != "hybrid"
            },
            "table": table_payload(list(map(table.figures, one.asked))),
            "with rows": {
                name: share(table.has_rows(*prompt) for prompt in prompts)
                for name, prompts in self._prompts.items()
            },
            "bare prompts": bare_figures(indexes, self._cache),
            "long prompts": long_figures(one, indexes, self._cache) if is_long else None,
        }

    def _alternatives(self, one: JudgedSet, indexes: ModeIndexes) -> dict[str, list[Measures]]:
        rankings = Rankings(indexes.by_mode["hybrid"], self._reference)
        found: dict[str, list[Measures]] = {name: [] for name in FUSIONS}
        for asked in one.asked:
            for name, documents in rankings.of(asked).items():
                found[name].append(measures(documents, asked.question.grades))
        return found


def keep(about: Mapping[str, Any], figures: Mapping[str, Any], text: str) -> None:
    """Writes a run into the folder of results, once to be read and once to be computed with."""
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    head = (
        f"{about['date']}, {about['model']}, {about['processor']}, {about['cores']} cores,"
        f" {about['system']}, Python {about['python']}, {versions};"
        " in brackets intervals of 95 %\n"
    )
    path = RESULTS / f"{about['date']}-retrieval.md"
    path.write_text(head + text, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps({**about, **figures}, indent=2) + "\n")


def options_of() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default="owasp,kepano,xquad-en,xquad-de,xquad-zh")
    parser.add_argument("--mixed", default="owasp,xquad-en,xquad-de,xquad-zh", help="of the sets")
    parser.add_argument("--long", default="owasp,xquad-en,xquad-de,xquad-zh", help="of the sets")
    parser.add_argument("--model", default=MINILM)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "memory-vectors"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--save", action="store_true", help="keep them in benchmarks/results/ too")
    return parser.parse_args()


def main() -> None:
    options = options_of()
    about = machine(PACKAGES) | {"model": options.model}
    info = model_info(LOCAL, options.model)
    cache = EmbeddingCache(options.cache, info, num_processes=NUM_PROCESSES)
    names = options.sets.split(",")
    sets = [judged_set(options.folder / name, info, cache) for name in names]
    figures = Evaluation(sets, info, cache).figures(
        mixed=options.mixed.split(","), long=options.long.split(",")
    )
    about["load at the end"] = round(os.getloadavg()[1], 2)
    text = "\n".join(report(figures)) + "\n"
    print(text)
    if options.json:
        options.json.write_text(json.dumps({**about, **figures}, indent=2) + "\n")
    if options.save:
        keep(about, figures, text)


if __name__ == "__main__":
    main()
