"""How are rows stored in Whoosh, and how are stored segments opened and merged?

The only module that knows Whoosh. A segment is immutable and is written from terms that are already
analysed, without Whoosh's writers, whose bookkeeping costs more than everything else. Any Whoosh
reader can open the result. A segment depends on nothing but its rows, so segments may be written in
other processes and adopted as files.
"""

# Whoosh is pinned; what its writers would set is set through members it calls private.
# ruff: noqa: SLF001

from __future__ import annotations

import pickle
import warnings
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.errors import PackagingError
from memory.posting_lists import FIELDS
from memory.segment_writing import postings_and_terms
from memory.stored_terms import StoredTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from memory.posting_lists import FieldPostings, Segment

with warnings.catch_warnings():
    # Python complains about the spelling of some literals when it compiles Whoosh.
    warnings.simplefilter("ignore")
    import whoosh
    from whoosh import columns, fields
    from whoosh.analysis import SpaceSeparatedTokenizer
    from whoosh.codec.whoosh3 import W3Codec, W3Segment
    from whoosh.filedb.filestore import RamStorage
    from whoosh.filedb.filetables import OrderedHashReader
    from whoosh.filedb.structfile import BufferFile
    from whoosh.formats import Existence
    from whoosh.index import TOC
    from whoosh.util.numeric import byte_to_length, length_to_byte

_WHOOSH_VERSION = (2, 7, 4)
_INDEX_NAME = "MAIN"
_ROW_COLUMN = "row"
_FIXED_SCHEMA = {
    **{name: fields.TEXT(SpaceSeparatedTokenizer(), phrase=False) for name in FIELDS},
    _ROW_COLUMN: fields.COLUMN(columns.NumericColumn("q")),
}
for _name in FIELDS:
    # Postings have no payload: Whoosh takes frequencies from their weights.
    _FIXED_SCHEMA[_name].format = Existence()
SCHEMA = fields.Schema(**_FIXED_SCHEMA)
_MAX_KNOWN_LENGTHS = 4096
_LENGTHS = np.array([byte_to_length(code) for code in range(256)], np.float32)


class _Unpickler(pickle.Unpickler):
    """Makes what a table of contents lists, and runs nothing else."""

    def find_class(self, module: str, name: str) -> type:
        for known in (W3Segment, W3Codec):
            if (module, name) == (known.__module__, known.__qualname__):
                return known  # type: ignore[no-any-return]
        raise pickle.UnpicklingError(f"unexpected {module}.{name} in a stored segment")


class _StoredFile(BufferFile):  # type: ignore[misc]
    """A file that Whoosh reads; who forges one cannot make it run code."""

    def read_pickle(self) -> Any:
        return _Unpickler(self.file).load()


class MemoryStorage(RamStorage):  # type: ignore[misc]
    """Keeps all files in memory, the temporary ones too.

    Raises:
        PackagingError: a successor of Whoosh that uses its import name is installed over it.
    """

    def __init__(self) -> None:
        super().__init__()
        if whoosh.__version__ != _WHOOSH_VERSION:
            found = ".".join(map(str, whoosh.__version__))
            raise PackagingError(f"the package whoosh is version {found}, needed is Whoosh 2.7.4")

    def open_file(self, name: str, **options: Any) -> _StoredFile:
        """Returns a file for reading.

        Raises:
            NameError: there is none of that name.
        """
        if name not in self.files:
            raise NameError(name)
        return _StoredFile(memoryview(self.files[name]), name=name, **options)

    def temp_storage(self, name: str | None = None) -> RamStorage:
        """Returns storage in memory; Whoosh would share one folder between all processes."""
        del name
        return RamStorage()


class StoredSegment:
    """A segment as Whoosh stores it, read as arrays.

    Args:
        storage: Holds the files of this segment, of others too if need be.
        segment: Whoosh's name for it.
    """

    def __init__(self, storage: MemoryStorage, segment: Any) -> None:
        self.whoosh_segment = segment
        self._storage = storage
        self._num_docs: int = segment.doc_count_all()
        self.rows: NDArray[np.int64] = self._column(_ROW_COLUMN, ">i8").astype(np.int64)
        """Row ids by document number."""
        self.lengths: dict[str, NDArray[np.float32]] = {
            field: _LENGTHS[self._column(f"_{field}_len", np.uint8)] for field in FIELDS
        }
        """Number of terms of each document in a field, quantised."""
        self.total_lengths = {field: float(segment._fieldlengths.get(field, 0)) for field in FIELDS}
        """Number of terms of all documents in a field."""

    @cached_property
    def _terms(self) -> StoredTerms:
        """The terms and their postings; read on first use, 15 ms for 50,000 of them."""
        term_file = self.whoosh_segment.make_filename(W3Codec.TERMS_EXT)
        postings_file = self.whoosh_segment.make_filename(W3Codec.POSTS_EXT)
        index = OrderedHashReader.open(self._storage, term_file)
        return StoredTerms(
            index, bytes(self._storage.files[term_file]), self._storage.files[postings_file]
        )

    def files(self) -> dict[str, Buffer]:
        """Returns the content of its files by their names."""
        names = self.whoosh_segment.list_files(self._storage)
        return {name: self._storage.files[name] for name in names}

    def with_rows(self, rows: NDArray[np.int64]) -> StoredSegment:
        """Returns the same segment with other row ids, shape (documents,)."""
        storage = MemoryStorage()
        storage.files.update(self.files())
        storage.files[W3Codec.column_filename(self.whoosh_segment, _ROW_COLUMN)] = _row_column(rows)
        return StoredSegment(storage, self.whoosh_segment)

    def doc_frequency(self, field: str, term: str) -> int:
        """Returns how many documents hold a term, deleted ones included."""
        return self._terms.doc_frequency(field, term)

    def postings(
        self, field: str, term: str
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Returns (document numbers, occurrences) of a term, None if it is not there."""
        return self._terms.postings(field, term)

    def with_prefix(self, field: str, prefix: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that begin with a prefix, sorted."""
        return self._terms.with_prefix(field, prefix, limit)

    def most_frequent(self, field: str, limit: int) -> list[str]:
        """Returns at most ``limit`` terms of a field that most documents hold."""
        return self._terms.most_frequent(field, limit)

    def field_postings(self, field: str) -> FieldPostings:
        """Returns every term of a field."""
        return self._terms.field_postings(field)

    def _column(self, name: str, dtype: Any) -> NDArray[Any]:
        """Returns a column as an array; Whoosh leaves out zeros at its end."""
        column = np.zeros(self._num_docs, dtype)
        filename = W3Codec.column_filename(self.whoosh_segment, name)
        if filename in self._storage.files:
            stored = np.frombuffer(self._storage.files[filename], dtype)
            column[: len(stored)] = stored
        return column


def write_segment(data: Segment) -> StoredSegment:
    """Returns a segment of at least one row as Whoosh stores it."""
    storage = MemoryStorage()
    codec = W3Codec()
    segment = codec.new_segment(storage, _INDEX_NAME)
    segment.set_doc_count(len(data.rows))
    _write_stored_fields(codec.per_document_writer(storage, segment), len(data.rows))
    segment._fieldlengths = {
        field: int(total) for field, total in data.total_lengths.items() if total
    }
    codes = {field: _length_codes(data.lengths[field]) for field in FIELDS}
    lengths = {f"_{field}_len": values for field, values in codes.items() if values.any()}
    for name, values in lengths.items():
        storage.files[W3Codec.column_filename(segment, name)] = _without_last_zeros(values)
    storage.files[W3Codec.column_filename(segment, _ROW_COLUMN)] = _row_column(data.rows)
    postings, terms = postings_and_terms(data, codes)
    storage.files[segment.make_filename(W3Codec.POSTS_EXT)] = postings
    storage.files[segment.make_filename(W3Codec.TERMS_EXT)] = terms
    return StoredSegment(storage, segment)


def _write_stored_fields(writer: Any, num_docs: int) -> None:
    """Writes the column in which Whoosh looks for stored fields; there are none."""
    writer._doccount = num_docs
    writer._storedfields = {}
    writer.close()


def _length_codes(lengths: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Returns the bytes that stand for lengths, as ``length_to_byte`` rounds them."""
    return np.minimum(np.searchsorted(_LENGTHS, lengths), 255).astype(np.uint8)


def _row_column(rows: NDArray[np.int64]) -> bytes:
    return _without_last_zeros(rows.astype(">i8"))


def _without_last_zeros(column: NDArray[Any]) -> bytes:
    """Returns the bytes of a column without the zeros at its end, which Whoosh leaves out."""
    used = np.flatnonzero(column)
    return column[: used[-1] + 1 if len(used) else 0].tobytes()


def store_index(
    segments: Iterable[tuple[StoredSegment, NDArray[np.intp]]],
) -> dict[str, Buffer]:
    """Returns the files of an index: those of its segments and the table of contents.

    Args:
        segments: Each with the document numbers that are deleted in it.
    """
    files: dict[str, Buffer] = {}
    listed = []
    for segment, deleted in segments:
        whoosh_segment = copy(segment.whoosh_segment)
        whoosh_segment._deleted = set(deleted.tolist()) or None
        listed.append(whoosh_segment)
        files.update(segment.files())
    storage = MemoryStorage()
    TOC(SCHEMA, listed, 1).write(storage, _INDEX_NAME)
    files.update(storage.files)
    return files


def open_index(
    files: Mapping[str, Buffer],
) -> Iterator[tuple[StoredSegment, NDArray[np.intp]]]:
    """Yields the stored segments, each with the document numbers that are deleted in it.

    Whoosh unpickles parts of the files, here without the means to run anything. They are not
    checked beyond that: whatever a reader stumbles on is raised.
    """
    storage = MemoryStorage()
    storage.files.update(files)
    # The schema is passed because Whoosh would otherwise unpickle the stored one.
    for segment in TOC.read(storage, _INDEX_NAME, schema=SCHEMA).segments:
        yield StoredSegment(storage, segment), np.array(sorted(segment.deleted_docs()), np.intp)


@lru_cache(_MAX_KNOWN_LENGTHS)
def quantised(length: int) -> int:
    """Returns a length as Whoosh reads it again from the byte it stores."""
    return int(byte_to_length(length_to_byte(length)))
