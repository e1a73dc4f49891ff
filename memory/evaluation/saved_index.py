"""How well does the index on disk answer, with this configuration and with another one?

Reads the snapshot and never writes. Only the model that made the vectors can be compared with them,
and only the language that made the terms finds them, so both are those of the index.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory.calibrating import calibrate_at_once
from memory.config import HybridWeights
from memory.embedding_config import access_to_model, model_of_index
from memory.errors import BadEmbedding, EvaluationError
from memory.evaluation.asking import answer_measures, ask
from memory.evaluation.judged import read_questions
from memory.evaluation.known_items import known_items
from memory.evaluation.memories_table import MemoriesTable
from memory.evaluation.off_topic import off_topic_prompts
from memory.evaluation.report import Outcome, difference, kind_payload, outcome_differences, share
from memory.providers.factory import open_embedder
from memory.reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from memory.config import MemorySettings, Settings
    from memory.evaluation.asking import Asked
    from memory.evaluation.question import Question
    from memory.evaluation.report import ComparisonPayload, EvalPayload, RulesPayload
    from memory.index import MemoryIndex
    from memory.providers.base import ModelInfo

    Kinds = Mapping[str, Sequence[Question]]

logger = logging.getLogger(__name__)

_ONE_SIDE = {"text": (1.0, 0.0), "vector": (0.0, 1.0)}
"""Weights of text and vectors."""
_ALL = "all"
_HOW_TO_ASK = (
    'give some with --queries FILE, one JSON object a line: {"query": "…", "relevant": [{"path":'
    ' "…"}]}'
)


@dataclass(frozen=True, slots=True)
class Request:
    """What shall be measured."""

    settings: Settings
    limit: int
    """Most questions of a kind that are made from the files."""
    queries: Path | None = None
    """A file of judged questions, see ``judged``; None makes them from the indexed files."""
    other: tuple[str, Settings] | None = None
    """Name and content of the configuration to compare with."""


def evaluate(data: Path, request: Request) -> EvalPayload:
    """Returns what is measured of the index in a data folder.

    Raises:
        EvaluationError: the index is empty, there is no question, or they cannot be read.
        ConfigError: the model of the index is not known, or no longer configured.
        EmbeddingError: the model cannot be loaded.
        StoreError: there is no index, or it cannot be read.
    """
    with SnapshotReader(data) as reader:
        files = reader.files()
        num_chunks = sum(file.num_chunks for file in files)
        if not num_chunks:
            raise EvaluationError(
                "the index is empty; `memory start` indexes a workspace that has files"
            )
        kinds = _questions(reader, request)
        run = _Run(reader, kinds, request.settings)
        outcome = run.outcome(request.settings, sides=True)
        comparison = run.comparison(outcome, *request.other) if request.other else None
        return {
            "files": len(files),
            "chunks": num_chunks,
            "model": run.model.model,
            "rules": _rules(request.settings.memory),
            "kinds": {
                kind: kind_payload(outcome.of_questions(*span))
                for kind, span in _spans(kinds).items()
            },
            "off_topic": {
                "prompts": len(outcome.off_topic),
                "with_rows": share(outcome.off_topic),
            },
            "comparison": comparison,
        }


def _questions(reader: SnapshotReader, request: Request) -> Kinds:
    """Returns the questions by kind, no kind without any."""
    if request.queries is not None:
        kinds: Kinds = {"judged": _read(request.queries, reader)}
        trouble = f"{request.queries} holds no question"
    else:
        kinds = known_items(reader.parsed_files(), limit=request.limit)
        trouble = (
            "no question can be made from the indexed files: none links to another one, has a"
            " heading of its own or a description in words"
        )
    kinds = {kind: questions for kind, questions in kinds.items() if questions}
    if not kinds:
        raise EvaluationError(f"{trouble}; {_HOW_TO_ASK}")
    return kinds


def _read(file: Path, reader: SnapshotReader) -> tuple[Question, ...]:
    questions = read_questions(file)
    known = {file.path for file in reader.files()}
    num_astray = sum(not question.relevant_paths <= known for question in questions)
    if num_astray:
        logger.warning(
            "%d of %d questions in %s name a file that is not indexed, which counts as not found",
            num_astray,
            len(questions),
            file,
        )
    return questions


def _spans(kinds: Kinds) -> dict[str, tuple[int, int]]:
    """Returns where the questions of each kind are among all, and if there are several, of all."""
    spans, start = {}, 0
    for kind, questions in kinds.items():
        spans[kind] = (start, start + len(questions))
        start += len(questions)
    return spans | ({_ALL: (0, start)} if len(spans) > 1 else {})


class _Run:
    """Questions with their vectors, to be asked with several settings."""

    def __init__(self, reader: SnapshotReader, kinds: Kinds, settings: Settings) -> None:
        info = reader.header.info
        self.model: ModelInfo = model_of_index(info.identity)
        self._language = info.language
        self._reader = reader
        self._kinds = kinds
        access = access_to_model(self.model, settings.inference)
        self._embedder = open_embedder(self.model, access)
        self._unrelated: NDArray[np.float32] | None = None
        self._vectors: dict[str, NDArray[np.float32] | None] = {}
        self._off_topic = [(prompt, self._vector(prompt)) for prompt in off_topic_prompts()]

    def outcome(self, settings: Settings, *, sides: bool) -> Outcome:
        """Returns what a configuration answers; ``sides`` asks each of its sides alone, too."""
        # One index at a time: each holds all vectors.
        modes = dict(self._sides(settings.memory)) if sides else {}
        index = self._index(settings.memory)
        table = MemoriesTable(index, settings)
        return Outcome(
            modes=modes | {"hybrid": self._measured(index, settings.memory.scoring)},
            tables=list(map(table.figures, self._asked(settings.memory.scoring))),
            off_topic=[table.has_rows(*prompt) for prompt in self._off_topic],
        )

    def comparison(self, outcome: Outcome, name: str, settings: Settings) -> ComparisonPayload:
        """Returns another configuration minus the one of an outcome."""
        other = self.outcome(settings, sides=False)
        return {
            "config": name,
            "rules": _rules(settings.memory),
            "kinds": {
                kind: outcome_differences(other.of_questions(*span), outcome.of_questions(*span))
                for kind, span in _spans(self._kinds).items()
            },
            "off_topic": difference(
                [float(each) for each in other.off_topic],
                [float(each) for each in outcome.off_topic],
            ),
        }

    def _sides(self, memory: MemorySettings) -> Iterator[tuple[str, list[dict[str, float]]]]:
        for mode, (text, vector) in _ONE_SIDE.items():
            # In Orama a weight of zero makes both sides even, so a side is that of our own scores.
            weights = HybridWeights(text=text, vector=vector)
            alone = {"hybrid_weights": weights, "scoring": "absolute"}
            index = self._index(memory.model_copy(update=alone))
            yield mode, self._measured(index, "absolute")

    def _index(self, memory: MemorySettings) -> MemoryIndex:
        update = {"language": self._language}
        index = self._reader.open_index(memory.model_copy(update=update), self.model)
        # What the daemon measured holds for its own weights only.
        calibrate_at_once(index.calibrate, self._embedded)
        return index

    def _embedded(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        if self._unrelated is None:
            self._unrelated = np.stack([self._embedder.embed_query(text) for text in prompts])
        return self._unrelated

    def _measured(self, index: MemoryIndex, scoring: str) -> list[dict[str, float]]:
        return [answer_measures(index, asked) for asked in self._asked(scoring)]

    def _asked(self, scoring: str) -> Iterator[Asked]:
        for questions in self._kinds.values():
            yield from (ask(question, self._vector, scoring) for question in questions)

    def _vector(self, text: str) -> NDArray[np.float32] | None:
        """Returns the vector of a text; None if the model has none for it, so that words answer."""
        if text not in self._vectors:
            try:
                self._vectors[text] = self._embedder.embed_query(text)
            except BadEmbedding:
                self._vectors[text] = None
        return self._vectors[text]


def _rules(memory: MemorySettings) -> RulesPayload:
    return {
        "text_weight": memory.hybrid_weights.text,
        "vector_weight": memory.hybrid_weights.vector,
        "scoring": memory.scoring,
        "min_score_to_mention": memory.min_score_to_mention,
    }
