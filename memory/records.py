"""How are files and chunks packed, in memory and on disk?

A file stays packed until somebody wants to see one of its chunks: that takes a quarter of the
memory, and a snapshot is loaded without decoding a text. The texts of a loaded file stay in the
mapped snapshot.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from memory.messages import Chunk, FileSummary, ParsedFile
from memory.packing import (
    RecordReader,
    decode_stream,
    encode_stream,
    little_endian,
    numbers_of,
    pack,
    unpack_array,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

HASH_BYTES = 32
_NUM_PARTS = 6
_CHUNK_TYPES = {(str, context, str, int, int, int, int) for context in (str, type(None))}
_REPLACEMENT = "\ufffd".encode()
_TWO_ENDS = struct.Struct("<II")
_HEAD_TYPES = (str, int, int, int, str)


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file of the index; equal if everything the index knows of it is."""

    summary: FileSummary
    head: bytes
    """Title, tags and dates of the front matter, and the context of its chunks."""
    hashes: bytes
    """Content hash of each chunk, one after another."""
    chunks: bytes | memoryview
    """The chunks one after another, each for ``chunk``; a view if a snapshot holds them."""
    ends: bytes
    """Where each chunk ends in ``chunks``, uint32 little-endian."""

    def hash_of(self, position: int) -> bytes:
        """Returns the content hash of a chunk."""
        return self.hashes[position * HASH_BYTES : (position + 1) * HASH_BYTES]

    def packed_chunk(self, position: int) -> bytes:
        """Returns a chunk as it is stored."""
        start = self._end(position - 1) if position else 0
        return bytes(self.chunks[start : self._end(position)])

    def chunk(self, position: int) -> Chunk:
        """Returns a chunk by its position in the file.

        Raises:
            ValueError: the bytes are no chunk.
        """
        return _chunk(self.packed_chunk(position), self.hash_of(position), _Head(self.head).context)

    def section(self, position: int) -> tuple[str, str, int, int]:
        """Returns what is shown of a chunk: headlines, content, first and last line.

        Raises:
            ValueError: the bytes are no chunk.
        """
        # Without a copy: this runs for each hit of a search.
        ends = _TWO_ENDS.unpack_from(self.ends, 4 * position - 4) if position else (0, self._end(0))
        values = _unpacked(self.chunks[slice(*ends)])
        headlines, _context, content, _part, _parts, start, end = values
        return headlines, content, start, end

    def all_chunks(self) -> tuple[Chunk, ...]:
        """Returns the chunks in file order; raises as ``chunk`` does."""
        context = _Head(self.head).context
        return tuple(
            _chunk(self.packed_chunk(position), self.hash_of(position), context)
            for position in range(self.summary.num_chunks)
        )

    @property
    def meta(self) -> str:
        """The searchable words of the front matter: title, description, tags (SPEC C5)."""
        head = _Head(self.head)
        return "\n".join(filter(None, (head.title, self.summary.description, *head.tags)))

    @property
    def num_replaced_bytes(self) -> int:
        """Invalid UTF-8 sequences that the file had; quick for a file without any."""
        return _Head(self.head).num_replaced_bytes if _REPLACEMENT in bytes(self.chunks) else 0

    @property
    def parsed(self) -> ParsedFile:
        """The whole record; raises as ``chunk`` does."""
        summary, head = self.summary, _Head(self.head)
        return ParsedFile(
            path=summary.path,
            raw_path=summary.raw_path,
            mtime_ns=summary.mtime_ns,
            size=summary.size,
            inode=summary.inode,
            title=head.title,
            description=summary.description,
            summary=summary.summary,
            tags=head.tags,
            dates=head.dates,
            num_replaced_bytes=head.num_replaced_bytes,
            chunks=self.all_chunks(),
        )

    def _end(self, position: int) -> int:
        end: int = struct.unpack_from("<I", self.ends, 4 * position)[0]
        return end


def pack_file(parsed: ParsedFile) -> PackedFile:
    """Returns a parsed file as the index keeps it."""
    context = parsed.chunks[0].context if parsed.chunks else ""
    head = (parsed.title, parsed.num_replaced_bytes, len(parsed.tags), len(parsed.dates), context)
    return assemble(
        FileSummary(
            path=parsed.path,
            raw_path=parsed.raw_path,
            mtime_ns=parsed.mtime_ns,
            size=parsed.size,
            inode=parsed.inode,
            num_chunks=len(parsed.chunks),
            description=parsed.description,
            summary=parsed.summary,
        ),
        encode_stream((head, *parsed.tags, *parsed.dates)),
        [(bytes.fromhex(chunk.content_hash), _packed(chunk, context)) for chunk in parsed.chunks],
    )


def assemble(
    summary: FileSummary, head: bytes, chunks: Sequence[tuple[bytes, bytes]]
) -> PackedFile:
    """Returns a file from its parts; ``chunks`` are pairs of hash and packed chunk."""
    ends, end = array("I"), 0
    for _, data in chunks:
        end += len(data)
        ends.append(end)
    return PackedFile(
        summary=summary,
        head=head,
        hashes=b"".join(content_hash for content_hash, _ in chunks),
        chunks=b"".join(data for _, data in chunks),
        ends=little_endian(ends),
    )


def moved(packed_chunk: bytes, lines: tuple[int, int]) -> bytes:
    """Returns a packed chunk at other lines."""
    *text, _start, _end = _unpacked(packed_chunk)
    return pack((*text, *lines))


def lines_of(packed_chunk: bytes) -> tuple[int, int]:
    """Returns the first and the last line of a packed chunk."""
    *_text, start, end = _unpacked(packed_chunk)
    return start, end


def encode_file(packed: PackedFile, rows: Sequence[int]) -> bytes:
    """Returns the record of a file and the rows of its chunks in a ``files`` part."""
    return pack(
        (
            summary_values(packed.summary),
            packed.head,
            packed.hashes,
            packed.chunks,
            packed.ends,
            little_endian(array("I", rows)),
        )
    )


def decode_files(data: Buffer) -> Iterator[tuple[PackedFile, tuple[int, ...], memoryview]]:
    """Yields the files of a ``files`` part, the rows of their chunks, and their records.

    Neither texts nor records are copied: each file keeps ``data`` alive.

    Raises:
        ValueError: not such a part; so do ``msgpack.UnpackException`` and TypeError.
    """
    view = memoryview(data)
    reader = RecordReader(view)
    while not reader.at_end:
        start = reader.position
        reader.array(_NUM_PARTS)
        summary, head, hashes = reader.value(), reader.value(), reader.value()
        file = PackedFile(FileSummary(*summary), head, hashes, reader.view(), reader.value())
        check_file(file)
        rows = tuple(numbers_of(reader.value()))
        if len(rows) != file.summary.num_chunks:
            raise ValueError("a file has another number of rows than chunks")
        yield file, rows, view[start : reader.position]


def check_file(file: PackedFile) -> None:
    """Refuses a file whose parts do not fit together.

    Raises:
        ValueError: they do not.
        TypeError: one is of another type.
    """
    ends, count = numbers_of(file.ends), file.summary.num_chunks
    fitting = len(ends) == count and len(file.hashes) == HASH_BYTES * count
    # As sorted sets rather than pair by pair, which takes ten times as long.
    ascending = ends == sorted({*ends} - {0})
    if not fitting or not ascending or len(file.chunks) != (ends[-1] if ends else 0):
        raise ValueError("the chunks of a file do not fit together")


def check_head(file: PackedFile) -> None:
    """Refuses a file whose front matter cannot be decoded.

    Raises:
        ValueError: it cannot.
        TypeError: it cannot.
    """
    _Head(file.head)


def summary_values(summary: FileSummary) -> tuple[object, ...]:
    """Returns the fields of a summary in their order."""
    return (
        summary.path,
        summary.raw_path,
        summary.mtime_ns,
        summary.size,
        summary.inode,
        summary.num_chunks,
        summary.description,
        summary.summary,
    )


def _packed(chunk: Chunk, context: str) -> bytes:
    return pack(
        (
            chunk.headlines,
            None if chunk.context == context else chunk.context,
            chunk.content,
            chunk.part,
            chunk.num_parts,
            chunk.start_line,
            chunk.end_line,
        )
    )


def _unpacked(packed_chunk: Buffer) -> list[Any]:
    values = unpack_array(packed_chunk)
    if tuple(map(type, values)) not in _CHUNK_TYPES:
        raise ValueError("not a chunk")
    return values


def _chunk(packed_chunk: bytes, content_hash: bytes, context: str) -> Chunk:
    headlines, own_context, content, *numbers = _unpacked(packed_chunk)
    return Chunk(
        headlines,
        context if own_context is None else own_context,
        content,
        content_hash.hex(),
        *numbers,
    )


class _Head:
    """The decoded front matter of a file."""

    def __init__(self, head: bytes) -> None:
        first, *values = decode_stream(head)
        if tuple(map(type, first)) != _HEAD_TYPES:
            raise ValueError("not the front matter of a file")
        self.title, self.num_replaced_bytes, num_tags, num_dates, self.context = first
        if len(values) != num_tags + num_dates:
            raise ValueError("the front matter of a file is cut off")
        self.tags: tuple[str, ...] = tuple(values[:num_tags])
        self.dates = tuple((key, value) for key, value in values[num_tags:])
        if not all(type(text) is str for text in chain(self.tags, *self.dates)):
            raise ValueError("not the front matter of a file")
