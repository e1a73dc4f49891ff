"""Does a question find its own files in a workspace that holds those of other sets too?

Each set is a folder of one workspace, indexed with the product's default language. Translations of
a file have its name in another folder, and are not what a question asks for.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from mode_indexes import SETTINGS, ModeIndexes

from memory.evaluation.asking import ranking
from memory.evaluation.measures import measures
from memory.evaluation.report import measures_payload, share, table_payload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedding_cache import EmbeddingCache
    from judged import JudgedSet

    from memory.evaluation.asking import Asked
    from memory.evaluation.memories_table import MemoriesTable
    from memory.evaluation.question import Document
    from memory.index import MemoryIndex
    from memory.providers.base import ModelInfo

_DEPTH = 50
"""Files a search is asked for, as in ``memory.evaluation.asking``."""


def mixed_figures(
    sets: Sequence[JudgedSet], info: ModelInfo, cache: EmbeddingCache
) -> dict[str, Any]:
    """Returns the figures of every set's questions over the files of all sets."""
    folders = [one.inside(one.name) for one in sorted(sets, key=lambda one: one.name)]
    files = list(chain.from_iterable(folder.files for folder in folders))
    indexes = ModeIndexes(files, SETTINGS.memory.language, info, cache)
    return {
        "chunks": indexes.num_chunks,
        "language": SETTINGS.memory.language,
        "sets": {
            one.name: {
                mode: _figures(one.inside(one.name).asked, index, indexes.tables[mode])
                for mode, index in indexes.by_mode.items()
            }
            for one in sets
        },
    }


def _figures(asked: Sequence[Asked], index: MemoryIndex, table: MemoriesTable) -> dict[str, Any]:
    found = [_documents(index, each) for each in asked]
    pairs = list(zip(asked, found, strict=True))
    tables = [table.figures(each) for each in asked]
    return {
        "modes": measures_payload([measures(each, one.question.grades) for one, each in pairs]),
        "table": table_payload(tables),
        "own file first": share(
            bool(each) and each[0][0] in one.question.relevant_paths for one, each in pairs
        ),
        "another set's file first": share(
            bool(each) and _set_of(each[0][0]) not in map(_set_of, one.question.relevant_paths)
            for one, each in pairs
        ),
    }


def _documents(index: MemoryIndex, asked: Asked) -> list[Document]:
    question = asked.question
    query = asked.query(_DEPTH + len(question.exclude))
    return ranking(index.search(query, asked.vector).hits, question)


def _set_of(path: str) -> str:
    return path.partition("/")[0]
