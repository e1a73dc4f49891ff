"""What does an index hold of some files, and do its parts agree about them?

For a comparison with the files and with another index (``checking``, ``recomputing``). A page of
files is read at one moment, and only as much at once as a search may wait for.
"""

from __future__ import annotations

import hashlib
import heapq
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory.packing import pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from memory.chunk_table import IndexedFile
    from memory.identity import Identity
    from memory.index_state import IndexState
    from memory.records import PackedFile

LOCAL = "local"
MAX_PAGE_FILES = 500
MAX_PAGE_CHUNKS = 500
"""Take about 15 ms (dimension 384, 30,000 chunks)."""
NORM_TOLERANCE = 1e-3
"""Of a unit vector that is held as float16."""


class Difference(NamedTuple):
    """Something that is not as it should be."""

    kind: str
    """``missing``, ``extra``, ``stale``, ``row``, ``vector``, ``sides``, ``recomputed``,
    ``snapshot``, ``journal``, ``model``, ``building`` or ``workspace``."""
    path: str
    """Key of the file; empty if no file is to blame."""
    detail: str


class FileRecord(NamedTuple):
    """Everything that an index knows of a file, long things by their SHA-256."""

    path: str
    raw_path: str
    mtime_ns: int
    size: int
    inode: int
    num_chunks: int
    matter: str
    """Description, summary and front matter."""
    hashes: str
    """Content hash of each chunk, in file order."""
    texts: str
    """Headlines, texts, parts and lines of each chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """Some files of an index at one moment."""

    identity: Identity
    """Of the index."""
    num_files: int
    """Of the whole index."""
    num_chunks: int
    records: tuple[FileRecord, ...]
    """Sorted by path."""
    faults: tuple[Difference, ...]
    """Where the parts of the index disagree about these files."""
    value_type: str
    """How vectors are held, ``float32`` or ``float16``."""
    hashes: tuple[bytes, ...] = ()
    """Content hash of each chunk of all records; empty if vectors were not wanted."""
    vectors: NDArray[np.float32] | None = None
    """Of these chunks, shape (len(hashes), dim); None if they were not wanted."""


def record_of(packed: PackedFile) -> FileRecord:
    """Returns what tells a file from any other, and from an earlier self."""
    summary = packed.summary
    return FileRecord(
        summary.path,
        summary.raw_path,
        summary.mtime_ns,
        summary.size,
        summary.inode,
        summary.num_chunks,
        _sha256(pack((summary.description, summary.summary)), packed.head),
        _sha256(packed.hashes),
        _sha256(packed.ends, packed.chunks),
    )


def inspect(
    state: IndexState,
    identity: Identity,
    *,
    after: str = "",
    paths: Sequence[str] | None = None,
    wants_vectors: bool = False,
) -> Inspection:
    """Returns the next page of files, or those that are named and known.

    Args:
        state: What the index holds.
        identity: Of the index.
        after: Key of the last file of the page before.
        paths: Keys; None for the files after ``after``.
        wants_vectors: Also returns their vectors.
    """
    files = _page(state, after) if paths is None else _known(state, paths)
    found_by_words = state.text.rows()
    faults = chain(
        _faults_between_sides(state, len(found_by_words)),
        _faults_of_rows(state, files, identity, found_by_words),
    )
    rows = [row for file in files for row in file.rows] if wants_vectors else []
    return Inspection(
        identity=identity,
        num_files=state.table.num_files,
        num_chunks=state.table.num_chunks,
        records=tuple(record_of(file.packed) for file in files),
        faults=tuple(faults),
        value_type=state.vectors.dtype.name,
        hashes=tuple(chain.from_iterable(map(_hashes_of, files))) if wants_vectors else (),
        vectors=state.vectors.take(rows) if wants_vectors else None,
    )


def _page(state: IndexState, after: str) -> list[IndexedFile]:
    """Returns files in the order of their paths, at least one if there is one."""
    following = (path for path in state.table.paths() if path > after)
    page: list[IndexedFile] = []
    num_chunks = 0
    for path in heapq.nsmallest(MAX_PAGE_FILES, following):
        file = state.table[path]
        num_chunks += len(file.rows)
        if page and num_chunks > MAX_PAGE_CHUNKS:
            break
        page.append(file)
    return page


def _known(state: IndexState, paths: Iterable[str]) -> list[IndexedFile]:
    found = (state.table.file(path) for path in sorted(set(paths)))
    return [file for file in found if file is not None]


def _faults_between_sides(state: IndexState, num_found_by_words: int) -> Iterator[Difference]:
    """With every row of a file on both sides, equal numbers mean equal rows."""
    counts = {
        "chunks": state.table.num_chunks,
        "rows of vectors": len(state.vectors),
        "rows of texts": num_found_by_words,
    }
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{number:,} {what}" for what, number in counts.items())
        yield Difference("sides", "", f"the sides of the index differ: {shown}")


def _faults_of_rows(
    state: IndexState,
    files: Sequence[IndexedFile],
    identity: Identity,
    found_by_words: NDArray[np.int64],
) -> Iterator[Difference]:
    for file in files:
        if len(file.rows) != file.summary.num_chunks:
            yield Difference("row", file.path, "has another number of rows than of chunks")
            continue
        rows = np.array(file.rows, np.int64)
        # Not ``isin``, which looks at all rows of the index for each file.
        ends = np.searchsorted(found_by_words, rows, "right")
        is_found = ends > np.searchsorted(found_by_words, rows)
        placed = []
        for position, is_there in enumerate(is_found.tolist()):
            if fault := _fault_of_row(state, file, position, is_there):
                yield Difference("row", file.path, f"chunk {position + 1} {fault}")
            else:
                placed.append(position)
        yield from _faults_of_vectors(state, file, placed, may_be_zero=identity.provider != LOCAL)


def _fault_of_row(
    state: IndexState,
    file: IndexedFile,
    position: int,
    found_by_words: bool,  # noqa: FBT001 - of two lists of rows
) -> str:
    row = file.rows[position]
    if not state.vectors.holds(row):
        return "has no vector"
    if not found_by_words:
        return "cannot be found by its words"
    if not state.table.places(row, file.path, position):
        return "shares its row with another one"
    if row not in state.table.rows_with(file.packed.hash_of(position)):
        return "cannot be found by its content hash"
    return ""


def _faults_of_vectors(
    state: IndexState, file: IndexedFile, positions: Sequence[int], *, may_be_zero: bool
) -> Iterator[Difference]:
    """A text that a provider refuses has a vector of zeros, which says so."""
    if not positions:
        return
    vectors = state.vectors.take([file.rows[position] for position in positions])
    first_rows = [
        min(state.table.rows_with(file.packed.hash_of(position))) for position in positions
    ]
    differs = (vectors != state.vectors.take(first_rows)).any(axis=1)
    norms = np.linalg.norm(vectors, axis=1)
    is_unit = np.abs(norms - 1) <= NORM_TOLERANCE  # false for NaN
    for number, position in enumerate(positions):
        if not is_unit[number] and not (may_be_zero and norms[number] == 0):
            detail = f"chunk {position + 1} has a vector of norm {norms[number]:.4g} instead of 1"
            yield Difference("vector", file.path, detail)
        elif differs[number]:
            owner = state.table.owner(first_rows[number])[0]
            detail = f"chunk {position + 1} has another vector than the same text in {owner}"
            yield Difference("vector", file.path, detail)


def _hashes_of(file: IndexedFile) -> list[bytes]:
    return [file.packed.hash_of(position) for position in range(file.summary.num_chunks)]


def _sha256(*pieces: bytes | memoryview) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
