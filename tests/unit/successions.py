"""A data folder whose model changes, in few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.checks import dump
from memory.index_opening import open_or_create
from memory.messages import FileUpdate, Query
from memory.succession import Succession
from tests.unit.building import new_index, parsed, put, text_of
from tests.unit.keeping import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from memory.atomic_file import Disk
    from memory.checks import DumpRow
    from memory.messages import ParsedFile, SearchResult
    from memory.providers.base import ModelInfo
    from tests.doubles import HashEmbedder

NOW = 1_700_000_000.0
FILES = {"a.md": ["Apples.", "Pears."], "b.md": ["Plums."], "c.md": ["Grapes."]}


def fresh(embedder: HashEmbedder, files: Mapping[str, Sequence[str]] = FILES) -> list[DumpRow]:
    """Returns what an index of these files holds that never knew another model."""
    index = new_index(embedder)
    for path, texts in files.items():
        put(index, embedder, parsed(path, texts))
    return dump(index)


class Memory:
    """Does with a data folder what the keeper and the indexer do.

    Args:
        data: The folder.
        embedder: The configured model.
        info: What the configuration says of it.
        now: Unix time of the start.
        disk: Of the take-over.
    """

    def __init__(
        self,
        data: Path,
        embedder: HashEmbedder,
        *,
        info: ModelInfo | None = None,
        now: float = NOW,
        disk: Disk | None = None,
    ) -> None:
        info = info or embedder.info
        opened = open_or_create(SETTINGS, info, data=data, workspace=data, epoch="e", now=now)
        self.indexes = Succession(opened, info, data, disk=disk)
        self.embedder = embedder

    @property
    def newest(self):
        return self.indexes._now.newest.index

    @property
    def is_building(self) -> bool:
        return self.indexes.status().building is not None

    def put(self, path: str, texts: Sequence[str], *, mtime_ns: int = 1) -> None:
        self.put_file(parsed(path, texts, mtime_ns=mtime_ns))

    def put_file(self, file: ParsedFile) -> None:
        missing = self.indexes.plan(file).missing
        vectors = self.embedder.embed_documents([text_of(chunk) for chunk in missing])
        hashes = tuple(chunk.content_hash for chunk in missing)
        self.indexes.apply(FileUpdate(file.path, file, hashes, vectors))

    def put_all(self, files: Mapping[str, Sequence[str]] = FILES) -> None:
        for path, texts in files.items():
            self.put(path, texts)

    def remove(self, path: str) -> None:
        self.indexes.apply(FileUpdate(path, None))

    def save(self) -> None:
        self.indexes.save(NOW)

    def take_over(self) -> bool:
        return self.indexes.take_over(self.newest.epoch, NOW, is_urgent=True)

    def search(self, text: str) -> SearchResult:
        return self.indexes.search(Query(text, 5), self.embedder.embed_query(text))

    def found(self, text: str) -> list[str]:
        return [hit.path for hit in self.search(text).hits]

    def paths(self) -> list[str]:
        return [file.path for file in self.indexes.answering.files()]

    def kill(self) -> None:
        """Ends it; whatever was written is there, as after a kill."""
        for kept in self.indexes._now.all():
            kept.storage.stop_logging()


def indexed(data: Path, embedder: HashEmbedder) -> None:
    """Leaves a data folder as a daemon does that indexed all files."""
    memory = Memory(data, embedder)
    memory.save()
    memory.put_all()
    memory.save()
    memory.kill()
    embedder.texts.clear()
