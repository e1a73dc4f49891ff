"""An index and its place on disk in one line, for tests of what is there after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.config import EmbeddingsSettings, MemorySettings
from memory.index_opening import open_or_create

if TYPE_CHECKING:
    from pathlib import Path

    from memory.index import MemoryIndex
    from memory.storage import IndexStorage
    from tests.doubles import HashEmbedder

SETTINGS = MemorySettings(embeddings=EmbeddingsSettings(provider="local"))


def opened(folder: Path, embedder: HashEmbedder) -> tuple[MemoryIndex, IndexStorage]:
    """Opens a data folder as its owner does."""
    found = open_or_create(
        SETTINGS, embedder.info, data=folder, workspace=folder, epoch="next", now=0.0
    )
    return found.index, found.storage
