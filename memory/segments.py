"""How are rows stored in Whoosh, and how are stored segments opened and merged?

The only module that knows Whoosh. A segment is immutable and is written through Whoosh's codec from
terms that are already analysed, without its document writer, whose bookkeeping per posting costs
more than everything else. Any Whoosh reader can open the result. A segment depends on nothing but
its rows, so segments may be written in other processes and adopted as files.
"""

# Whoosh is pinned; blocks of postings are written through members it calls private.
# ruff: noqa: SLF001

from __future__ import annotations

import warnings
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.errors import PackagingError
from memory.posting_lists import FIELDS
from memory.stored_terms import StoredTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from memory.posting_lists import FieldPostings, Segment

with warnings.catch_warnings():
    # Python complains about the spelling of some literals when it compiles Whoosh.
    warnings.simplefilter("ignore")
    import whoosh
    from whoosh import columns, fields
    from whoosh.analysis import SpaceSeparatedTokenizer
    from whoosh.codec.whoosh3 import W3Codec
    from whoosh.filedb.filestore import RamStorage
    from whoosh.filedb.filetables import OrderedHashReader
    from whoosh.index import TOC
    from whoosh.util.numeric import byte_to_length, length_to_byte

_WHOOSH_VERSION = (2, 7, 4)
_INDEX_NAME = "MAIN"
_ROW_COLUMN = "row"
_FIXED_SCHEMA = {
    **{name: fields.TEXT(SpaceSeparatedTokenizer(), phrase=False) for name in FIELDS},
    _ROW_COLUMN: fields.COLUMN(columns.NumericColumn("q")),
}
SCHEMA = fields.Schema(**_FIXED_SCHEMA)
_BLOCK = 4096
"""Most postings of a block: Whoosh's 128 pay off only for its own searcher, which skips blocks."""
_UNCOMPRESSED_POSTINGS = 48
_MAX_KNOWN_LENGTHS = 4096
_LENGTHS = np.array([byte_to_length(code) for code in range(256)], np.float32)


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
        self.total_lengths = {
            field: float(self.lengths[field].sum(dtype=np.float64)) for field in FIELDS
        }

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
    codec = W3Codec(_BLOCK)
    segment = codec.new_segment(storage, _INDEX_NAME)
    documents = codec.per_document_writer(storage, segment)
    row_column = SCHEMA[_ROW_COLUMN].column_type
    lengths = {field: data.lengths[field].astype(int).tolist() for field in FIELDS}
    for docnum, row in enumerate(data.rows.tolist()):
        documents.start_doc(docnum)
        for field in FIELDS:
            documents.add_field(field, SCHEMA[field], None, lengths[field][docnum])
        documents.add_column_value(_ROW_COLUMN, row_column, row)
        documents.finish_doc()
    documents.close()
    _write_postings(codec.field_writer(storage, segment), data, lengths)
    segment.set_doc_count(len(data.rows))
    return StoredSegment(storage, segment)


def _write_postings(writer: Any, data: Segment, lengths: Mapping[str, list[int]]) -> None:
    for field in FIELDS:
        postings = data.field_postings(field)
        starts, docnums = postings.starts.tolist(), postings.docnums.tolist()
        weights = postings.counts.astype(float).tolist()
        writer.start_field(field, SCHEMA[field])
        for term, start, end in zip(postings.terms, starts, starts[1:], strict=False):
            writer.start_term(term.encode())
            _write_term(writer._postwriter, docnums[start:end], weights[start:end], lengths[field])
            writer.finish_term()
        writer.finish_field()
    writer.close()


def _write_term(
    writer: Any, docnums: list[int], weights: list[float], lengths: Sequence[int]
) -> None:
    """Hands the postings of a term to Whoosh's block buffer at once, not one by one.

    ``add_posting`` takes 4 microseconds each, most of the time of writing a segment.
    """
    for start in range(0, len(docnums), _BLOCK):
        block = slice(start, start + _BLOCK)
        block_lengths = [lengths[docnum] for docnum in docnums[block]]
        writer._new_block()
        writer._ids = docnums[block]
        writer._weights.extend(weights[block])
        writer._maxweight = max(writer._weights)
        writer._minlength = min(block_lengths)
        writer._maxlength = max(block_lengths)
        # Zlib makes short blocks longer.
        writer._compression = 3 if len(block_lengths) > _UNCOMPRESSED_POSTINGS else 0
        if start + _BLOCK < len(docnums):
            writer._write_block()


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

    Whoosh unpickles parts of the files: check that they are the ones you stored.
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
