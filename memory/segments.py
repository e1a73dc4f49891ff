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
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.errors import PackagingError
from memory.stored_terms import StoredTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

with warnings.catch_warnings():
    # Python complains about the spelling of some literals when it compiles Whoosh.
    warnings.simplefilter("ignore")
    import whoosh
    from whoosh import columns, fields
    from whoosh.analysis import SpaceSeparatedTokenizer
    from whoosh.codec.whoosh3 import W3Codec
    from whoosh.filedb.filestore import RamStorage
    from whoosh.filedb.filetables import OrderedHashReader
    from whoosh.index import TOC, clean_files
    from whoosh.util.numeric import byte_to_length, length_to_byte

FIELDS = ("content", "context", "headlines", "meta", "path")
"""Names of the indexed fields, sorted as Whoosh stores them."""

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


@dataclass(frozen=True, slots=True)
class AnalysedRow:
    """The terms of one row, ready to be written."""

    row: int
    terms: Mapping[str, Sequence[str]]
    """Field name to its terms in any order, repeated as often as they occur."""


class SegmentData:
    """Postings of some rows, inverted in memory until they are written as a segment."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.lengths: dict[str, list[int]] = {field: [] for field in FIELDS}
        """Terms per row, quantised as Whoosh stores them, so that merging loses nothing."""
        self.postings: dict[str, dict[bytes, tuple[list[int], list[float]]]] = {
            field: {} for field in FIELDS
        }
        """Field to term to (document numbers, occurrences)."""

    def add_row(self, row: AnalysedRow) -> None:
        """Appends a row; its document number is the count of rows before it."""
        docnum = len(self.rows)
        self.rows.append(row.row)
        for field in FIELDS:
            terms = row.terms.get(field, ())
            self.lengths[field].append(_quantised(len(terms)))
            postings = self.postings[field]
            for term, count in Counter(terms).items():
                docnums, weights = postings.setdefault(term.encode(), ([], []))
                docnums.append(docnum)
                weights.append(float(count))

    def add_segment(self, segment: StoredSegment, live: NDArray[np.bool_]) -> None:
        """Appends the live rows of a stored segment."""
        base = len(self.rows)
        self.rows += segment.rows[live].tolist()
        new_docnums = np.cumsum(live) - 1 + base
        for field in FIELDS:
            self.lengths[field] += segment.lengths[field][live].astype(int).tolist()
            postings = self.postings[field]
            for term, docnums, weights in segment.terms.all_postings(field):
                kept = live[docnums]
                if kept.any():
                    target = postings.setdefault(term, ([], []))
                    target[0].extend(new_docnums[docnums[kept]].tolist())
                    target[1].extend(weights[kept].tolist())


class StoredSegment:
    """A segment as Whoosh stores it, read as arrays."""

    def __init__(self, storage: MemoryStorage, segment: Any) -> None:
        self.whoosh_segment = segment
        self.num_docs: int = segment.doc_count_all()
        self._storage = storage
        self.rows: NDArray[np.int64] = self._column(_ROW_COLUMN, ">i8").astype(np.int64)
        """Row ids by document number."""
        self.lengths: dict[str, NDArray[np.float32]] = {
            field: _LENGTHS[self._column(f"_{field}_len", np.uint8)] for field in FIELDS
        }
        """Number of terms of each document in a field, quantised."""
        self.total_lengths = {field: float(self.lengths[field].sum()) for field in FIELDS}

    @cached_property
    def terms(self) -> StoredTerms:
        """The terms and their postings; read on first use, 15 ms for 50,000 of them."""
        term_file = self.whoosh_segment.make_filename(W3Codec.TERMS_EXT)
        postings_file = self.whoosh_segment.make_filename(W3Codec.POSTS_EXT)
        index = OrderedHashReader.open(self._storage, term_file)
        return StoredTerms(
            index, self._storage.files[term_file], self._storage.files[postings_file]
        )

    def _column(self, name: str, dtype: Any) -> NDArray[Any]:
        """Returns a column as an array; Whoosh leaves out zeros at its end."""
        column = np.zeros(self.num_docs, dtype)
        filename = W3Codec.column_filename(self.whoosh_segment, name)
        if filename in self._storage.files:
            stored = np.frombuffer(self._storage.files[filename], dtype)
            column[: len(stored)] = stored
        return column


def write_segment(storage: MemoryStorage, data: SegmentData) -> StoredSegment:
    """Writes a segment of at least one row and opens it; other segments are not touched."""
    codec = W3Codec(_BLOCK)
    segment = codec.new_segment(storage, _INDEX_NAME)
    documents = codec.per_document_writer(storage, segment)
    row_column = SCHEMA[_ROW_COLUMN].column_type
    for docnum, row in enumerate(data.rows):
        documents.start_doc(docnum)
        for field in FIELDS:
            documents.add_field(field, SCHEMA[field], None, data.lengths[field][docnum])
        documents.add_column_value(_ROW_COLUMN, row_column, row)
        documents.finish_doc()
    documents.close()
    _write_postings(codec.field_writer(storage, segment), data)
    segment.set_doc_count(len(data.rows))
    return StoredSegment(storage, segment)


def _write_postings(writer: Any, data: SegmentData) -> None:
    for field in FIELDS:
        lengths = data.lengths[field]
        writer.start_field(field, SCHEMA[field])
        for term, (docnums, weights) in sorted(data.postings[field].items()):
            writer.start_term(term)
            _write_term(writer._postwriter, docnums, weights, lengths)
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


def drop_segment(storage: MemoryStorage, segment: StoredSegment) -> None:
    """Removes the files of a segment; readers that are open keep what they read."""
    for name in segment.whoosh_segment.list_files(storage):
        storage.delete_file(name)


def store_index(
    storage: MemoryStorage, segments: Iterable[tuple[StoredSegment, NDArray[np.intp]]]
) -> None:
    """Writes the table of contents and drops the files of segments that are not in it.

    Args:
        storage: Where the segments are.
        segments: Each with the document numbers that are deleted in it.
    """
    listed = []
    for segment, deleted in segments:
        segment.whoosh_segment._deleted = set(deleted.tolist()) or None
        listed.append(segment.whoosh_segment)
    generation = TOC._latest_generation(storage, _INDEX_NAME) + 1
    TOC(SCHEMA, listed, generation).write(storage, _INDEX_NAME)
    clean_files(storage, _INDEX_NAME, generation, listed)


def open_index(storage: MemoryStorage) -> Iterator[tuple[StoredSegment, NDArray[np.intp]]]:
    """Yields the stored segments, each with the document numbers that are deleted in it."""
    # The schema is passed because Whoosh would otherwise unpickle the stored one.
    for segment in TOC.read(storage, _INDEX_NAME, schema=SCHEMA).segments:
        yield StoredSegment(storage, segment), np.array(sorted(segment.deleted_docs()), np.intp)


def _quantised(length: int) -> int:
    return int(byte_to_length(length_to_byte(length)))
