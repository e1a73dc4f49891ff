"""Which workspaces come with questions whose answers are known?

A set is a folder with ``workspace/**.md`` and mostly ``queries.jsonl``, see
``memory.evaluation.judged``.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from memory.chunk_limits import chunk_limits
from memory.embedding_input import compose
from memory.evaluation.judged import read_questions
from memory.evaluation.known_items import known_items
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
    from memory.evaluation.question import Question
    from memory.messages import ParsedFile
    from memory.providers.base import ModelInfo

_LIMIT = 200


def questions(folder: Path, info: ModelInfo) -> tuple[Question, ...]:
    """Returns the judged questions of a set; one without any gets those its files answer."""
    judged = folder / "queries.jsonl"
    if judged.exists():
        return read_questions(judged)
    return tuple(
        chain.from_iterable(known_items(parsed_files(folder, info), limit=_LIMIT).values())
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
