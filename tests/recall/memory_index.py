"""What does the product find in the small memory beside this file?"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory.analysis import Analyzer
from memory.calibrating import calibrate_at_once
from memory.chunk_limits import chunk_limits
from memory.config import MemorySettings, Settings
from memory.embedding_input import compose
from memory.evaluation.asking import Asked, answer_measures, ask
from memory.evaluation.judged import read_questions
from memory.evaluation.memories_table import MemoriesTable
from memory.evaluation.off_topic import off_topic_prompts
from memory.evaluation.question import Question
from memory.globs import Globs
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.markdown import parse_file
from memory.messages import FileUpdate
from memory.providers.local import MINILM
from memory.workspace import SourceFile, Workspace
from tests.local_models import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memory.messages import Hit, ParsedFile

FOLDER = Path(__file__).parent
BENCHMARKS = FOLDER.parents[1] / "benchmarks"
AGENTS, OFF_TOPIC = (
    (BENCHMARKS / name).read_text("utf-8").strip().split("\n%%\n")
    for name in ("agent_prompts.txt", "off_topic_prompts.txt")
)
"""Prompts of about 300 words, in paragraphs."""
SETTINGS = Settings(memory=MemorySettings())
ROWS = SETTINGS.memory.max_system_prompt_memory_results


@dataclass(frozen=True)
class Memory:
    """An index of the workspace, calibrated, and the questions by kind with their vectors."""

    index: MemoryIndex
    asked: dict[str, list[Asked]]
    off_topic: dict[str, np.ndarray]
    """Vectors of prompts that nothing answers, by prompt."""

    embedded: Callable[[Iterable[str]], np.ndarray]

    @property
    def table(self) -> MemoriesTable:
        return MemoriesTable(self.index, SETTINGS)

    def ndcg(self, kind: str, *, with_vectors: bool = True) -> float:
        every = self.asked[kind]
        each = [one if with_vectors else replace(one, vector=None) for one in every]
        return sum(answer_measures(self.index, one)["nDCG@10"] for one in each) / len(each)

    def hits(self, asked: Asked) -> tuple[Hit, ...]:
        return self.index.search(asked.query(ROWS), asked.vector).hits

    def inside(self, asked: Asked, number: int) -> Asked:
        """Returns a question inside a long prompt; its number decides in which one and where."""
        paragraphs = AGENTS[number % len(AGENTS)].split("\n\n")
        paragraphs.insert(number % (len(paragraphs) + 1), asked.question.text)
        return self._ask(replace(asked.question, text="\n\n".join(paragraphs)))

    @property
    def long_off_topic(self) -> list[Asked]:
        # A workspace with a recipe for plum cake does answer who orders one.
        prompts = [each for each in (*AGENTS, *OFF_TOPIC) if "Pflaumen" not in each]
        return [self._ask(Question(prompt, {})) for prompt in prompts]

    def _ask(self, question: Question) -> Asked:
        return ask(question, lambda text: self.embedded([text])[0])

    def missed(self, kind: str) -> list[str]:
        """Returns the questions of a kind none of whose files has a row."""
        return [
            one.question.text
            for one in self.asked[kind]
            if one.question.relevant_paths.isdisjoint(self.table.rows(one))
        ]


def built() -> Memory:
    index, embedded = calibrated_index(FOLDER / "workspace")
    own = (FOLDER / "off_topic.txt").read_text("utf-8").splitlines()
    prompts = [*off_topic_prompts(), *own]
    off_topic = dict(zip(prompts, embedded(prompts), strict=True))
    return Memory(index, _asked(embedded), off_topic, embedded)


def calibrated_index(folder):
    """Returns the index of a workspace, and what embeds questions for it, shape (n, dim)."""
    model = loaded(MINILM)
    limits = chunk_limits(None, model.info)
    index = MemoryIndex(model.info, Analyzer("english"), IndexSettings(), epoch="recall")
    for file in _files(folder, limits):
        missing = index.plan(file).missing
        vectors = model.embed_documents([compose(chunk, limits) for chunk in missing])
        hashes = tuple(chunk.content_hash for chunk in missing)
        index.apply(FileUpdate(file.path, file, hashes, vectors))

    def embedded(prompts):
        return np.stack([model.embed_query(prompt) for prompt in prompts])

    calibrate_at_once(index.calibrate, embedded)
    return index, embedded


def _files(folder, limits) -> Iterator[ParsedFile]:
    workspace = Workspace(folder, exclude=Globs(()))
    for stamp in workspace.scan().files:
        source = workspace.read(stamp.raw_path)
        assert isinstance(source, SourceFile)
        yield parse_file(source, limits=limits)


def _asked(embedded) -> dict[str, list[Asked]]:
    file = FOLDER / "questions.jsonl"
    questions = read_questions(file)
    kinds = [json.loads(line)["kind"] for line in file.read_text("utf-8").splitlines()]
    by_kind: dict[str, list[Asked]] = {}
    for kind, question in zip(kinds, questions, strict=True):
        asked = ask(question, lambda text: embedded([text])[0])
        by_kind.setdefault(kind, []).append(asked)
    return by_kind
