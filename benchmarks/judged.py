"""Which workspaces come with questions whose answers are known?

A set is a folder with ``workspace/**.md`` and ``queries.jsonl``, one question a line::

    {"id": …, "query": …, "relevant": [{"path": …, "section"?: …, "grade"?: …}], "exclude"?: […]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.chunk_limits import chunk_limits
from memory.embedding_input import compose
from memory.globs import Globs
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.markdown import parse_file
from memory.messages import FileUpdate
from memory.workspace import SourceFile, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from embedding_cache import EmbeddingCache

    from memory.analysis import Analyzer
    from memory.messages import ParsedFile
    from memory.providers.base import ModelInfo

Document = tuple[str, str]
"""What a set judges: (path, section), the section empty where whole files are judged."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what answers it."""

    text: str
    grades: dict[Document, float]
    """What is relevant, and how much."""
    exclude: frozenset[str]
    """Paths that are left out of the ranking."""

    @property
    def by_section(self) -> bool:
        """Whether sections are judged, not files."""
        return any(section for _path, section in self.grades)


def questions(folder: Path) -> list[Question]:
    """Reads the questions of a set."""
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [_question(json.loads(line)) for line in lines if line.strip()]


def _question(raw: dict[str, Any]) -> Question:
    return Question(
        text=raw["query"],
        grades={
            (each["path"], each.get("section", "")): float(each.get("grade", 1))
            for each in raw["relevant"]
        },
        exclude=frozenset(raw.get("exclude", ())),
    )


def parsed_files(folder: Path, info: ModelInfo) -> Iterator[ParsedFile]:
    """Yields the files of a set as the product would index them."""
    workspace = Workspace(folder / "workspace", exclude=Globs(()))
    limits = chunk_limits(None, info)
    for stamp in workspace.scan().files:
        source = workspace.read(stamp.raw_path)
        if isinstance(source, SourceFile):
            yield parse_file(source, limits=limits)


def built_index(
    folder: Path, info: ModelInfo, analyzer: Analyzer, cache: EmbeddingCache
) -> MemoryIndex:
    """Returns the index of a set, with every vector taken from the cache."""
    limits = chunk_limits(None, info)
    index = MemoryIndex(info, analyzer, IndexSettings(), epoch="benchmark")
    files = list(parsed_files(folder, info))
    chunks = {chunk.content_hash: chunk for parsed in files for chunk in parsed.chunks}
    vectors = cache.documents([compose(chunk, limits) for chunk in chunks.values()])
    rows = {name: vectors[number] for number, name in enumerate(chunks)}
    for parsed in files:
        hashes = tuple(chunk.content_hash for chunk in index.plan(parsed).missing)
        block = np.stack([rows[name] for name in hashes]) if hashes else vectors[:0]
        index.apply(FileUpdate(parsed.path, parsed, hashes, block))
    return index
