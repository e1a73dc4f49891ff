"""An index of real files, for tests that compare both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.checking import HeldIndex, check_files
from memory.embedding_input import TokenLimits, compose, estimate_tokens
from memory.index_settings import IndexSettings
from memory.markdown import parse_file
from memory.messages import FileUpdate
from memory.workspace import SourceFile
from tests.unit.building import new_index
from tests.unit.workspace_files import workspace

if TYPE_CHECKING:
    from pathlib import Path

    from memory.checking import Report
    from memory.index import MemoryIndex
    from memory.messages import ParsedFile
    from tests.doubles import HashEmbedder

LIMITS = TokenLimits(256, estimate_tokens)


def parsed_now(root: Path, path: str, limits: TokenLimits = LIMITS) -> ParsedFile:
    """Returns a file that is there as the indexer reads it."""
    source = workspace(root).read(path)
    assert isinstance(source, SourceFile)
    return parse_file(source, limits=limits)


def index_path(
    index: MemoryIndex,
    root: Path,
    path: str,
    embedder: HashEmbedder,
    limits: TokenLimits = LIMITS,
) -> None:
    """Indexes one file."""
    parsed = parsed_now(root, path, limits)
    missing = index.plan(parsed).missing
    vectors = embedder.embed_documents([compose(chunk, limits) for chunk in missing])
    hashes = tuple(chunk.content_hash for chunk in missing)
    index.apply(FileUpdate(parsed.path, parsed, hashes, vectors))


def indexed(root: Path, embedder: HashEmbedder, limits: TokenLimits = LIMITS) -> MemoryIndex:
    """Returns an index of every file of a folder."""
    index = new_index(embedder, IndexSettings(workspace=str(root)))
    for stamp in workspace(root).scan().files:
        index_path(index, root, stamp.raw_path, embedder, limits)
    return index


def checked(root: Path, index: MemoryIndex) -> Report:
    """Compares an index with a folder."""
    return check_files(workspace(root), LIMITS, HeldIndex(index))
