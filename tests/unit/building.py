"""Parsed files and indexes in one line, for tests of the index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from memory.analysis import Analyzer
from memory.hashing import content_hash
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import ApplyResult, Chunk, FileUpdate, ParsedFile
from memory.snapshot import SnapshotParts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    from memory.snapshot_header import SnapshotInfo
    from tests.doubles import HashEmbedder

ENGLISH = Analyzer("english")


def text_of(chunk: Chunk) -> str:
    """Returns what the embedder is given for a chunk."""
    return f"{chunk.headlines}\n\n{chunk.context}\n\n{chunk.content}"


def chunk(content: str, *, headlines: str = "# Notes", context: str = "", line: int = 1) -> Chunk:
    return Chunk(
        headlines=headlines,
        context=context,
        content=content,
        content_hash=content_hash(headlines, context, content),
        part=1,
        num_parts=1,
        start_line=line,
        end_line=line + 1,
    )


def parsed(
    path: str,
    contents: Sequence[str] = (),
    *,
    mtime_ns: int = 1,
    title: str = "",
    description: str = "",
    tags: tuple[str, ...] = (),
    first_line: int = 1,
) -> ParsedFile:
    return ParsedFile(
        path=path,
        raw_path=path,
        mtime_ns=mtime_ns,
        size=sum(map(len, contents)),
        inode=7,
        title=title,
        description=description,
        summary=contents[0][:200] if contents else "",
        tags=tags,
        dates=(("created", "2026-05-12"),),
        num_replaced_bytes=0,
        chunks=tuple(
            chunk(content, line=first_line + 3 * number) for number, content in enumerate(contents)
        ),
    )


def new_index(
    embedder: HashEmbedder, settings: IndexSettings | None = None, *, epoch: str = "first"
) -> MemoryIndex:
    return MemoryIndex(embedder.info, ENGLISH, settings or IndexSettings(), epoch=epoch)


def snapshot_of(info: SnapshotInfo, contents: Mapping[str, Buffer]) -> SnapshotParts:
    """Returns parts that are all there at once."""
    return SnapshotParts(
        info, lambda: [(name, partial(iter, (data,))) for name, data in contents.items()]
    )


def contents_of(index: MemoryIndex) -> tuple[SnapshotInfo, dict[str, bytes]]:
    """Returns the image of an index as bytes."""
    with index.frozen() as image:
        return image.info, {name: b"".join(map(bytes, blocks())) for name, blocks in image.parts()}


def image_of(index: MemoryIndex, **changed: bytes) -> SnapshotParts:
    """Returns the image of an index, with some parts changed."""
    info, contents = contents_of(index)
    return snapshot_of(info, contents | changed)


def put(index: MemoryIndex, embedder: HashEmbedder, file: ParsedFile) -> ApplyResult:
    """Plans, embeds what is missing, and applies, as the indexer does."""
    missing = index.plan(file).missing
    vectors = embedder.embed_documents([text_of(chunk) for chunk in missing])
    hashes = tuple(chunk.content_hash for chunk in missing)
    return index.apply(FileUpdate(file.path, file, hashes, vectors))


def remove(index: MemoryIndex, path: str) -> ApplyResult:
    return index.apply(FileUpdate(path, None))
