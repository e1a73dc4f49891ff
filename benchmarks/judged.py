"""Which workspaces come with questions whose answers are known?

A set is a folder with ``workspace/**.md`` and mostly ``queries.jsonl``, see
``memory.evaluation.judged``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from memory.chunk_limits import chunk_limits
from memory.evaluation.asking import ask
from memory.evaluation.judged import read_questions
from memory.evaluation.known_items import known_items
from memory.globs import Globs
from memory.markdown import parse_file
from memory.prompt_parts import prompt_parts
from memory.workspace import SourceFile, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from embedding_cache import EmbeddingCache

    from memory.evaluation.asking import Asked
    from memory.evaluation.question import Question
    from memory.messages import ParsedFile
    from memory.providers.base import ModelInfo

_LIMIT = 200


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """A workspace and its questions."""

    name: str
    files: Sequence[ParsedFile]
    asked: Sequence[Asked]

    def inside(self, folder: str) -> JudgedSet:
        """Returns the same set when its workspace is a folder of another one."""

        def moved(path: str) -> str:
            return f"{folder}/{path}"

        def of_moved(question: Question) -> Question:
            grades = {(moved(path), title): each for (path, title), each in question.grades.items()}
            return replace(question, grades=grades, exclude=frozenset(map(moved, question.exclude)))

        return JudgedSet(
            self.name,
            [replace(file, path=moved(file.path)) for file in self.files],
            [replace(each, question=of_moved(each.question)) for each in self.asked],
        )


def judged_set(folder: Path, info: ModelInfo, cache: EmbeddingCache) -> JudgedSet:
    """Reads a set; one without judged questions gets those that its files answer."""
    files, judged = list(_parsed_files(folder, info)), folder / "queries.jsonl"
    questions = (
        read_questions(judged)
        if judged.exists()
        else tuple(chain.from_iterable(known_items(files, limit=_LIMIT).values()))
    )
    return JudgedSet(folder.name, files, with_vectors(questions, cache))


def with_vectors(questions: Sequence[Question], cache: EmbeddingCache) -> list[Asked]:
    """Returns questions, ready to be asked."""
    texts = list(
        chain.from_iterable(
            prompt_parts(question.text) or (question.text,) for question in questions
        )
    )
    vectors = dict(zip(texts, cache.queries(texts), strict=True))
    return [ask(question, vectors.__getitem__) for question in questions]


def _parsed_files(folder: Path, info: ModelInfo) -> Iterator[ParsedFile]:
    """Yields the files of a set as the product would index them."""
    workspace = Workspace(folder / "workspace", exclude=Globs(()))
    limits = chunk_limits(None, info)
    for stamp in workspace.scan().files:
        source = workspace.read(stamp.raw_path)
        if isinstance(source, SourceFile):
            yield parse_file(source, limits=limits)
