"""How are files and chunks laid out inside a snapshot?

Each part is a stream of small msgpack values. What only one file's view needs (its chunks) hides in
a byte string, so that a listing never decodes it. No array is longer than ``_MAX_ARRAY``, so a
forged length cannot claim memory that the bytes do not have (FAULTS 10).
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgpack

from memory.messages import Chunk, FileSummary, ParsedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_ARRAY = 16
# Texts are clean when they get here; should one not be, a snapshot is no place to crash.
_UNICODE_ERRORS = "surrogatepass"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a snapshot; its chunks are not decoded yet."""

    summary: FileSummary
    details: bytes
    """For ``parsed_file``."""


def encode_stream(values: Iterable[Any]) -> bytes:
    """Returns the values one after another, each packed on its own."""
    packer = msgpack.Packer(unicode_errors=_UNICODE_ERRORS)
    return b"".join(map(packer.pack, values))


def decode_stream(data: bytes) -> Iterator[Any]:
    """Yields the values of ``encode_stream``.

    Raises:
        ValueError: not such a stream; the classes of msgpack derive from it.
    """
    unpacker = msgpack.Unpacker(
        io.BytesIO(data),
        unicode_errors=_UNICODE_ERRORS,
        max_buffer_size=len(data) + 1,
        max_str_len=len(data),
        max_bin_len=len(data),
        max_array_len=_MAX_ARRAY,
        max_map_len=0,
        max_ext_len=0,
    )
    end = 0
    for value in unpacker:
        end = unpacker.tell()
        yield value
    # The iteration itself ends quietly in the middle of a value.
    if end != len(data):
        raise ValueError("a record is cut off")


def encode_files(files: Iterable[tuple[ParsedFile, tuple[int, ...]]]) -> bytes:
    """Returns the ``files`` part: each file with the rows of its chunks, in the given order."""
    return encode_stream(
        (
            parsed.path,
            parsed.raw_path,
            parsed.mtime_ns,
            parsed.size,
            parsed.inode,
            len(parsed.chunks),
            parsed.description,
            parsed.summary,
            _encode_details(parsed, rows),
        )
        for parsed, rows in files
    )


def decode_files(data: bytes) -> Iterator[StoredFile]:
    """Yields the files of a ``files`` part.

    Raises:
        ValueError: not such a part.
        TypeError: not such a part.
    """
    for *fields, details in decode_stream(data):
        yield StoredFile(FileSummary(*fields), details)


def parsed_file(stored: StoredFile) -> tuple[ParsedFile, tuple[int, ...]]:
    """Returns the whole record of a file, and the row of each chunk.

    Raises:
        ValueError: the details do not fit the summary.
        TypeError: the details do not fit the summary.
    """
    head, *values = decode_stream(stored.details)
    title, num_replaced_bytes, num_tags, num_dates, context = head
    num_words = num_tags + num_dates
    chunks, rows = _decode_chunks(values[num_words:], context)
    summary = stored.summary
    if len(chunks) != summary.num_chunks:
        raise ValueError("a file has another number of chunks than its summary says")
    parsed = ParsedFile(
        path=summary.path,
        raw_path=summary.raw_path,
        mtime_ns=summary.mtime_ns,
        size=summary.size,
        inode=summary.inode,
        title=title,
        description=summary.description,
        summary=summary.summary,
        tags=tuple(values[:num_tags]),
        dates=tuple((key, value) for key, value in values[num_tags:num_words]),
        num_replaced_bytes=num_replaced_bytes,
        chunks=chunks,
    )
    return parsed, rows


def _encode_details(parsed: ParsedFile, rows: tuple[int, ...]) -> bytes:
    context = parsed.chunks[0].context if parsed.chunks else ""
    head = (parsed.title, parsed.num_replaced_bytes, len(parsed.tags), len(parsed.dates), context)
    chunks = (
        (
            row,
            chunk.headlines,
            None if chunk.context == context else chunk.context,
            chunk.content,
            chunk.content_hash,
            chunk.part,
            chunk.num_parts,
            chunk.start_line,
            chunk.end_line,
        )
        for row, chunk in zip(rows, parsed.chunks, strict=True)
    )
    return encode_stream((head, *parsed.tags, *parsed.dates, *chunks))


def _decode_chunks(
    values: Iterable[Any], context: str
) -> tuple[tuple[Chunk, ...], tuple[int, ...]]:
    chunks, rows = [], []
    for row, headlines, own_context, *rest in values:
        chunks.append(Chunk(headlines, context if own_context is None else own_context, *rest))
        rows.append(row)
    return tuple(chunks), tuple(rows)
