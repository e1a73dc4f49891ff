"""How is the engine filled, saved and opened by the measures?

The only place of the engine benchmark that knows which calls do this.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import corpus
import engine_corpus
import measuring
from engine_corpus import ENGLISH, INFO
from measuring import seconds

from memory.analysis import Analyzer
from memory.config import MemorySettings
from memory.identity import journal_identity
from memory.index import MemoryIndex
from memory.index_opening import open_or_create
from memory.index_settings import IndexSettings
from memory.journal_writer import JournalWriter
from memory.messages import FileUpdate, Query
from memory.snapshot import SNAPSHOT_NAME, read_header
from memory.storage import IndexStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine_corpus import Material

    from memory.messages import ParsedFile

LIMIT = 10
_EPOCH = "benchmark"


def empty() -> MemoryIndex:
    """Returns an index without a file."""
    return MemoryIndex(INFO, Analyzer(ENGLISH), IndexSettings(), epoch=_EPOCH)


def built(material: Material) -> tuple[MemoryIndex, float]:
    """Returns an index filled file by file, vectors given, and the seconds it took."""
    updates = list(material.updates())
    index = empty()
    return index, seconds(lambda: [index.apply(update) for update in updates])


def save(folder: Path, index: MemoryIndex) -> None:
    """Writes a whole index, durably."""
    measuring.save(index, folder / SNAPSHOT_NAME)


def keep(folder: Path, index: MemoryIndex) -> None:
    """Writes a whole index as the keeper does, who merges segments before."""
    folder.mkdir(exist_ok=True)
    storage = stored(folder, index)
    storage.save(0.0)
    storage.stop_logging()


def saved_bytes(folder: Path) -> bytes:
    """Returns what ``save`` wrote."""
    return (folder / SNAPSHOT_NAME).read_bytes()


def saved(folder: Path, material: Material) -> Path:
    """Returns a data folder that holds the material; made by the first measure that asks."""
    data = folder / f"data-{material.num_chunks}"
    if not (data / SNAPSHOT_NAME).exists():
        keep(data, built(material)[0])
    return data


def opened(data: Path) -> MemoryIndex:
    """Returns the index of a data folder, as the daemon opens it."""
    found = open_or_create(MemorySettings(), INFO, data=data, workspace=data, epoch=_EPOCH, now=0.0)
    if not found.index.status().num_chunks:
        raise ValueError(f"the index that was saved cannot be opened: {found.report.reason}")
    # Other measures open the same folder, and want it as it was saved.
    found.storage.stop_logging()
    return found.index


def stored(folder: Path, index: MemoryIndex) -> IndexStorage:
    """Returns the place of an index on disk, with nothing saved there yet."""
    return IndexStorage(folder, index, saved_revision=-1, saved_at=0.0, complete=False)


def journalled(folder: Path, index: MemoryIndex) -> tuple[JournalWriter, list[tuple[int, bytes]]]:
    """Returns a journal, and where the index puts what should be appended to it, not the storage.

    Each change is its revision and its record.
    """
    changes: list[tuple[int, bytes]] = []
    index.log_to(lambda revision, change: changes.append((revision, change)))
    identity = journal_identity(index.identity)
    return JournalWriter(folder, base=index.revision, identity=identity), changes


def planned(index: MemoryIndex, parsed: ParsedFile) -> FileUpdate:
    """Returns an update with the vectors that the index lacks, as the Chunker makes it."""
    hashes = tuple(chunk.content_hash for chunk in index.plan(parsed).missing)
    return FileUpdate(parsed.path, parsed, hashes, corpus.vectors(hashes, INFO.dim))


def searches(index: MemoryIndex, material: Material) -> list[Callable[[], object]]:
    """Returns hybrid searches without snippets, one a question."""
    queries = material.queries()
    asked = engine_corpus.query_vectors(queries)
    return [
        partial(index.search, Query(text, LIMIT, wants_snippets=False), vector)
        for text, vector in zip(queries, asked, strict=True)
    ]


def vector_bytes(data: Path) -> float:
    """Returns the size of one vector as it was saved."""
    header = read_header(data / SNAPSHOT_NAME)
    part = next(part for part in header.parts if part.name == "vectors")
    return part.length / header.info.num_chunks
