"""How does an index become a snapshot, and a snapshot an index again?"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import msgpack
import numpy as np

from memory.analysis import ANALYSIS_VERSION
from memory.errors import SnapshotCorrupt
from memory.index_state import ChunkTable, IndexedFile, IndexState, text_rows
from memory.records import (
    decode_files,
    decode_stream,
    encode_files,
    encode_stream,
    parsed_file,
)
from memory.snapshot import SnapshotInfo, SnapshotParts
from memory.text_index import TextIndex
from memory.vector_cache import VectorCache
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.identity import Identity
    from memory.snapshot import SnapshotFile

logger = logging.getLogger(__name__)

_SPARSE_FACTOR = 2
_SPARSE_ROWS = 4096


def image_of(
    state: IndexState, *, identity: Identity, language: str, workspace: str
) -> SnapshotParts:
    """Returns one generation of an index as the parts of a snapshot; shares no memory with it.

    Parts: ``files`` (see records), ``vectors`` (float32 little-endian, ascending rows), ``cache``
    (hash and vector, unused for longest first), ``text`` (name and content of Whoosh's files).
    """
    table = state.table
    info = SnapshotInfo(
        identity=identity,
        language=language,
        analysis_version=ANALYSIS_VERSION,
        revision=state.revision,
        workspace=workspace,
        num_files=table.num_files,
        num_chunks=table.num_chunks,
    )
    cached = ((name, vector.astype("<f4").tobytes()) for name, vector in state.cache)
    parts = (
        ("files", encode_files((file.parsed, file.rows) for file in table.files())),
        ("vectors", state.vectors.to_block().astype("<f4", copy=False)),
        ("cache", encode_stream(cached)),
        ("text", encode_stream(state.text.files().items())),
    )
    return SnapshotParts(info, parts)


def restore(snapshot: SnapshotFile, analyzer: Analyzer, *, max_cached_bytes: int) -> IndexState:
    """Returns the index inside a snapshot, without any embedding call.

    The text half is built anew from the stored chunks if it was made by another analysis.

    Raises:
        SnapshotCorrupt: a checksum is wrong, or the parts do not fit together.
    """
    try:
        return _restored(snapshot, analyzer, max_cached_bytes)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise SnapshotCorrupt(str(snapshot.path), f"parts do not fit together: {error}") from None


def _restored(snapshot: SnapshotFile, analyzer: Analyzer, max_cached_bytes: int) -> IndexState:
    info = snapshot.header.info
    files = [IndexedFile(*parsed_file(each)) for each in decode_files(snapshot.read("files"))]
    rows = sorted(row for file in files for row in file.rows)
    if (len(files), len(rows)) != (info.num_files, info.num_chunks) or len(set(rows)) < len(rows):
        raise ValueError("wrong number of files or rows")
    block = _matrix(snapshot.read("vectors"), count=len(rows), dim=info.identity.dim)

    same_text = (info.language, info.analysis_version) == (analyzer.language, ANALYSIS_VERSION)
    if rows and not 0 <= rows[0] <= rows[-1] < _SPARSE_FACTOR * len(rows) + _SPARSE_ROWS:
        # Much was removed: numbering the rows anew gives the memory of the gaps back.
        new_rows = {row: number for number, row in enumerate(rows)}
        files = [replace(file, rows=tuple(map(new_rows.__getitem__, file.rows))) for file in files]
        rows, same_text = list(range(len(rows))), False

    table = ChunkTable()
    for file in files:
        table.replace(file.parsed.path, file)
    return IndexState(
        table=table,
        vectors=VectorIndex.from_block(block, rows),
        text=_restored_text(snapshot, analyzer, table, same_text=same_text),
        cache=_restored_cache(snapshot, info.identity.dim, max_cached_bytes),
        revision=info.revision,
    )


def _restored_text(
    snapshot: SnapshotFile, analyzer: Analyzer, table: ChunkTable, *, same_text: bool
) -> TextIndex:
    stored = dict(decode_stream(snapshot.read("text")))
    if same_text:
        try:
            text = TextIndex.from_files(analyzer, stored)
        except Exception as error:  # noqa: BLE001 - Whoosh raises whatever its readers stumble on
            logger.warning("the stored text index cannot be opened (%r); building it anew", error)
        else:
            if text.num_rows == table.num_chunks:
                return text
    text = TextIndex(analyzer)
    text.apply(add=[row for file in table.files() for row in text_rows(file)], remove=())
    return text


def _restored_cache(snapshot: SnapshotFile, dim: int, max_bytes: int) -> VectorCache:
    cache = VectorCache(max_bytes)
    for content_hash, data in decode_stream(snapshot.read("cache")):
        cache.put(content_hash, _matrix(data, count=1, dim=dim)[0])
    return cache


def _matrix(data: bytes, *, count: int, dim: int) -> NDArray[np.float32]:
    if len(data) != count * dim * np.dtype("<f4").itemsize:
        raise ValueError("wrong number of vectors")
    return np.frombuffer(data, "<f4").reshape(count, dim).astype(np.float32, copy=False)
