"""How does a change get into the index, and what is written down of it?

Each function but ``plan`` changes a state in all its parts or, if it raises, in none, and returns
the change for the log. Made again from the log on the same state, a change gives the same state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

from memory.changes import (
    Removed,
    Replaced,
    Vectors,
    decode_change,
    encode_removal,
    encode_replacement,
    encode_vectors,
)
from memory.errors import DimensionMismatch, StaleUpdate
from memory.file_diff import diff
from memory.messages import FileDelta
from memory.vector_index import VectorIndex
from memory.vector_store import check_values

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray

    from memory.bulk import FileBatch
    from memory.index_state import IndexState
    from memory.messages import ParsedFile
    from memory.records import PackedFile


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a file."""

    num_added: int
    num_removed: int
    num_kept: int
    change: bytes | None
    """For the log; None if nothing changed."""


def plan(state: IndexState, parsed: ParsedFile, epoch: str) -> FileDelta:
    """Returns which texts of a file have no vector yet; see ``MemoryIndex.plan``.

    Cached vectors of the file are kept from being the next to go.
    """
    distinct = {chunk.content_hash: chunk for chunk in reversed(parsed.chunks)}
    missing = {name for name in distinct if not _knows(state, bytes.fromhex(name))}
    return FileDelta(
        path=parsed.path,
        missing=tuple(
            chunk
            for chunk in parsed.chunks
            if chunk.content_hash in missing and chunk is distinct[chunk.content_hash]
        ),
        num_reused=sum(chunk.content_hash not in missing for chunk in parsed.chunks),
        is_new=state.table.file(parsed.path) is None,
        epoch=epoch,
    )


def _knows(state: IndexState, content_hash: bytes) -> bool:
    """Tells whether a vector is here, and keeps a cached one from being the next to go."""
    if content_hash in state.cache:
        state.cache.get(content_hash)
    return bool(state.table.rows_with(content_hash)) or content_hash in state.cache


def replace_file(
    state: IndexState,
    path: str,
    packed: PackedFile | None,
    sent: Mapping[bytes, NDArray[np.float32]],
    epoch: str,
) -> Done:
    """Makes a file what it is from now on.

    Args:
        state: Changed in place.
        path: Key of the file.
        packed: None removes it.
        sent: Content hash to vector, for texts that may have none here.
        epoch: Named in a StaleUpdate.

    Raises:
        StaleUpdate: a text has no vector, neither sent nor here.
        DimensionMismatch: the vectors have another dimension.
        ValueError: a vector holds a value that is not finite.
    """
    before = state.table.file(path)
    known = before.packed if before is not None else None
    found = diff(before, packed)
    added = [
        packed.hash_of(position)
        for position, row in enumerate(found.rows)
        if packed is not None and row is None
    ]
    block = _vectors_of(state, added, sent)
    if block is None:
        raise StaleUpdate(path, epoch)
    change = None
    if packed != known:
        change = _written(state, path, known, packed, dict(zip(added, block, strict=True)))
        state.replace_file(path, packed, found, block)
    return Done(len(added), len(found.removed), len(found.rows) - len(added), change)


def add_files(
    state: IndexState,
    batch: FileBatch,
    hashes: Sequence[bytes],
    vectors: NDArray[np.float32],
    epoch: str,
) -> list[bytes]:
    """Adds new files, and returns a change for the log for each.

    Made again one after the other, the changes give the same state.

    Args:
        state: Changed in place.
        batch: The files.
        hashes: Texts that may have no vector here.
        vectors: Theirs, finite, shape (len(hashes), dim).
        epoch: Named in a StaleUpdate.

    Raises:
        StaleUpdate: a file is here already, or a text has no vector, neither sent nor here.
        DimensionMismatch: the vectors have another dimension.
    """
    sent = dict(zip(hashes, vectors, strict=True))
    if sent:
        _check_dim(state, vectors.shape[1])
    for packed in batch.files:
        if not _is_addable(state, packed, sent):
            raise StaleUpdate(packed.summary.path, epoch)
    state.take_dimension(vectors)
    rows = state.place_texts(batch.num_chunks, batch.segments)
    changes, first = [], 0
    for packed in batch.files:
        end = first + packed.summary.num_chunks
        names = list(map(packed.hash_of, range(packed.summary.num_chunks)))
        block = _vectors_of(state, names, sent)
        assert block is not None  # noqa: S101 - the check above
        known = dict(zip(names, block, strict=True))
        changes.append(_written(state, packed.summary.path, None, packed, known))
        state.settle_file(packed, rows[first:end], block)
        first = end
    return changes


def keep_vectors(
    state: IndexState, hashes: Sequence[bytes], vectors: NDArray[np.float32]
) -> bytes | None:
    """Takes vectors, shape (len(hashes), dim), of texts that no row holds; may be the first ones.

    Raises:
        DimensionMismatch: the vectors have another dimension.
        ValueError: a vector holds a value that is not finite.
    """
    if not hashes:
        return None
    _check_dim(state, vectors.shape[1])
    check_values(vectors)
    if not state.vectors.dim:
        # A snapshot says of which dimension its vectors are, those without a row too.
        state.vectors = VectorIndex(vectors.shape[1])
    for name, vector in zip(hashes, vectors, strict=True):
        if not state.table.rows_with(name):
            state.cache.keep(name, vector)
    state.revision += 1
    return encode_vectors(hashes, vectors.astype("<f4").tobytes())


def replay(state: IndexState, payload: bytes, epoch: str) -> None:
    """Makes a change again; see MemoryIndex.replay."""
    change = decode_change(payload)
    match change:
        case Removed(path):
            replace_file(state, path, None, {}, epoch)
        case Vectors():
            keep_vectors(state, change.hashes, _block_of(change))
        case Replaced(summary=summary, vectors=vectors):
            before = state.table.file(summary.path)
            packed = change.packed(before.packed if before is not None else None)
            sent = dict(zip(vectors.hashes, _block_of(vectors), strict=True))
            replace_file(state, summary.path, packed, sent, epoch)
        case _:
            assert_never(change)


def _is_addable(state: IndexState, packed: PackedFile, sent: Container[bytes]) -> bool:
    names = map(packed.hash_of, range(packed.summary.num_chunks))
    return state.table.file(packed.summary.path) is None and all(
        name in sent or name in state.cache or state.table.rows_with(name) for name in names
    )


def _written(
    state: IndexState,
    path: str,
    before: PackedFile | None,
    after: PackedFile | None,
    vectors: Mapping[bytes, NDArray[np.float32]],
) -> bytes:
    """Returns a change for the log, with the vectors of the texts that no row holds."""
    if after is None:
        return encode_removal(path)
    unknown = {
        name: vector.astype("<f4").tobytes()
        for name, vector in vectors.items()
        if not state.table.rows_with(name)
    }
    return encode_replacement(before, after, unknown)


def _block_of(vectors: Vectors) -> NDArray[np.float32]:
    """Returns vectors of a change, shape (len(hashes), dim)."""
    values: NDArray[np.float32] = np.frombuffer(vectors.block, "<f4")
    return values.reshape(len(vectors.hashes), -1) if vectors.hashes else values.reshape(0, 0)


def _vectors_of(
    state: IndexState, added: Sequence[bytes], sent: Mapping[bytes, NDArray[np.float32]]
) -> NDArray[np.float32] | None:
    """Returns one vector per hash, shape (len(added), dim); None if one is not known.

    A text that is known keeps the vector it has.

    Raises:
        DimensionMismatch: those sent have another dimension.
        ValueError: a value is not finite; half of a change would be made by then.
    """
    sent_dim = len(next(iter(sent.values()))) if sent else 0
    if sent:
        _check_dim(state, sent_dim)
    block = np.empty((len(added), state.vectors.dim or sent_dim), np.float32)
    for number, name in enumerate(added):
        rows = state.table.rows_with(name)
        if rows:
            block[number] = state.vectors.take([min(rows)])[0]
        elif name in state.cache:
            block[number] = state.cache.get(name)
        elif name in sent:
            block[number] = sent[name]
        else:
            return None
    check_values(block)
    return block


def _check_dim(state: IndexState, dim: int) -> None:
    if state.vectors.dim not in (0, dim):
        raise DimensionMismatch(state.vectors.dim, dim)
