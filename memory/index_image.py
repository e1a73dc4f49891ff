"""How does an index become a snapshot, and a snapshot an index again?"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import msgpack
import numpy as np

from memory.analysis import ANALYSIS_VERSION
from memory.calibration_image import encode_calibration, restore_calibration
from memory.chunk_table import ChunkTable, IndexedFile, text_rows
from memory.errors import SnapshotCorrupt
from memory.index_state import IndexState
from memory.mapped_pages import maps_behind, releasing
from memory.packing import decode_stream, encode_stream
from memory.records import decode_files
from memory.snapshot import SnapshotParts
from memory.snapshot_header import SnapshotInfo
from memory.text_index import TextIndex
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.identity import Identity
    from memory.row_noise import RowNoise
    from memory.snapshot import Blocks, SnapshotFile
    from memory.vector_cache import VectorCache
    from memory.vector_store import StoredBlock

logger = logging.getLogger(__name__)

_TEXT = "text/"
_VECTOR_TYPES = {"float32": "<f4", "float16": "<f2"}
_ROWS_A_BLOCK = 4_096
_SPARSE_FACTOR = 2
_SPARSE_ROWS = 4096
_REMOVED_SHARE = 0.05
_LEAST_REMOVED_BYTES = 256 * 1024
"""Vectors of removed chunks that a snapshot holds, in bytes and as a share of all rows.
The memory holds more of them, but a restart is rarely followed by an undo of long ago."""


@contextmanager
def frozen_image(
    state: IndexState, *, identity: Identity, language: str, workspace: str
) -> Iterator[SnapshotParts]:
    """Gives one generation of an index as the parts of a snapshot, until the end of the context.

    Parts: ``files`` (see records), ``vectors`` (all rows as they are held), ``cache`` (hash and
    vector of what was removed lately, unused for longest first), ``kept`` (the same of what waits
    for the rest of its file), ``calibration/…`` (see ``calibration_image``), ``text/…`` (Whoosh's
    files). They are made piece by piece while they are written, so no copy of the whole exists.
    """
    table, text = state.table, state.text.frozen()
    files = table.files()
    texts = maps_behind(file.packed.chunks for file in files)
    with state.vectors.frozen() as vectors:
        slot_bytes = len(vectors) * state.vectors.dim * np.dtype(np.float32).itemsize
        most_removed = max(_LEAST_REMOVED_BYTES, int(_REMOVED_SHARE * slot_bytes))
        removed, kept = state.cache.removed(most_removed), state.cache.kept()
        calibration = encode_calibration(state)
        info = SnapshotInfo(
            identity=identity,
            language=language,
            analysis_version=ANALYSIS_VERSION,
            revision=state.revision,
            workspace=workspace,
            num_files=table.num_files,
            num_chunks=table.num_chunks,
            vector_type=vectors.dtype.name,
        )

        def parts() -> Iterator[tuple[str, Blocks]]:
            yield "files", lambda: releasing((file.encoded() for file in files), texts)
            yield "vectors", lambda: (block.data for block in vectors.blocks(_ROWS_A_BLOCK))
            yield "cache", lambda: _encoded_cache(removed)
            yield "kept", lambda: _encoded_cache(kept)
            for name, measured in calibration.items():
                yield name, partial(iter, (measured,))
            for name, content in text.files().items():
                yield f"{_TEXT}{name}", partial(releasing, (content,), maps_behind((content,)))

        yield SnapshotParts(info, parts)


def _encoded_cache(cached: Iterable[tuple[bytes, NDArray[np.float32]]]) -> Iterator[bytes]:
    for name, vector in cached:
        yield encode_stream((name, vector.astype("<f4").tobytes()))


def restore(
    snapshot: SnapshotFile, analyzer: Analyzer, cache: VectorCache, noise: RowNoise
) -> IndexState:
    """Returns the index inside a snapshot, without any embedding call.

    The text half is built anew from the stored chunks if it was made by another analysis.

    Args:
        snapshot: Open; it stays so.
        analyzer: Chain for texts and queries.
        cache: Empty; for the vectors of removed chunks.
        noise: Empty.
    Raises:
        SnapshotCorrupt: a checksum is wrong, or the parts do not fit together.
    """
    try:
        return _restored(snapshot, analyzer, cache, noise)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise SnapshotCorrupt(str(snapshot.path), f"parts do not fit together: {error}") from None


def _restored(
    snapshot: SnapshotFile, analyzer: Analyzer, cache: VectorCache, noise: RowNoise
) -> IndexState:
    info = snapshot.header.info
    files = [IndexedFile(*each) for each in decode_files(snapshot.view("files"))]
    rows = sorted(chain.from_iterable(file.rows for file in files))
    if (len(files), len(rows)) != (info.num_files, info.num_chunks) or len(set(rows)) < len(rows):
        raise ValueError("wrong number of files or rows")
    block = _stored_block(snapshot.view("vectors"), info)

    same_text = (info.language, info.analysis_version) == (analyzer.language, ANALYSIS_VERSION)
    if len(block) >= _SPARSE_FACTOR * len(rows) + _SPARSE_ROWS:
        # Much was removed: numbering the rows anew gives the memory of the gaps back.
        new_rows = {row: number for number, row in enumerate(rows)}
        files = [
            replace(file, rows=tuple(map(new_rows.__getitem__, file.rows)), record=None)
            for file in files
        ]
        block, same_text = block[rows], False
        kept_rows, rows = rows, list(range(len(rows)))
    else:
        kept_rows = None

    table = ChunkTable.of(files)
    state = IndexState(
        table=table,
        vectors=VectorIndex.from_stored_block(block, rows),
        text=_restored_text(snapshot, analyzer, table, same_text=same_text),
        cache=cache,
        noise=noise,
        revision=info.revision,
    )
    _fill(cache, snapshot, info.identity.dim)
    restore_calibration(snapshot, state, kept_rows)
    # Every byte was read to verify it, and of most nothing is needed any more, or only seldom.
    snapshot.release()
    return state


def _stored_block(data: memoryview, info: SnapshotInfo) -> StoredBlock:
    if info.vector_type not in _VECTOR_TYPES:
        raise ValueError("vectors of an unknown type")
    kind, dim = np.dtype(_VECTOR_TYPES[info.vector_type]), info.identity.dim
    if not dim and not len(data):
        return np.empty((0, 0), np.float32)
    if not dim or len(data) % (dim * kind.itemsize):
        raise ValueError("wrong number of vectors")
    block: StoredBlock = np.frombuffer(data, kind).reshape(-1, dim)
    return block


def _restored_text(
    snapshot: SnapshotFile, analyzer: Analyzer, table: ChunkTable, *, same_text: bool
) -> TextIndex:
    names = [part.name for part in snapshot.header.parts if part.name.startswith(_TEXT)]
    stored = {name.removeprefix(_TEXT): snapshot.view(name) for name in names}
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


def _fill(cache: VectorCache, snapshot: SnapshotFile, dim: int) -> None:
    for name, put in (("cache", cache.put), ("kept", cache.keep)):
        if name not in {part.name for part in snapshot.header.parts}:
            continue
        values = decode_stream(bytes(snapshot.view(name)))
        for content_hash, data in zip(values, values, strict=True):
            if len(data) != dim * np.dtype("<f4").itemsize:
                raise ValueError("wrong number of vectors")
            put(content_hash, np.frombuffer(data, "<f4"))
