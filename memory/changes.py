"""How is one change of the index written down, so that it can be made again?

The payload of a journal record. A changed file is told by what differs from before: the chunks that
stay are named by their old position, so that an edit of a long file takes little space. Vectors are
there only for texts that the index had no row of; they are what was paid for.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from memory.messages import FileSummary
from memory.packing import decode_stream, encode_stream, little_endian, numbers_of
from memory.records import (
    HASH_BYTES,
    assemble,
    check_file,
    check_head,
    lines_of,
    moved,
    summary_values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from memory.records import PackedFile

_REMOVED, _REPLACED, _KEPT_VECTORS = range(3)
_NEW = 0xFFFF_FFFF
_SUMMARY_TYPES = (str, str, int, int, int, int, str, str)
_VALUE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Removed:
    """A file is gone."""

    path: str


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of texts."""

    hashes: tuple[bytes, ...]
    block: bytes
    """The vectors one after another, float32 little-endian."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file is what this says from now on, given what it was."""

    summary: FileSummary
    head: bytes
    origins: tuple[int, ...]
    """For each chunk its position before, ``_NEW`` if it stands in ``new``."""
    lines: tuple[tuple[int, int], ...]
    """First and last line of the chunks that stay, in order."""
    new: tuple[tuple[bytes, bytes], ...]
    """Hash and packed chunk of the others, in order."""
    vectors: Vectors

    def packed(self, before: PackedFile | None) -> PackedFile:
        """Returns the file as it is from now on.

        Args:
            before: What it was when the change was made.

        Raises:
            ValueError: it was something else, or the change is none.
            TypeError: the change is none.
        """
        num_new = self.origins.count(_NEW)
        if (num_new, len(self.origins) - num_new) != (len(self.new), len(self.lines)):
            raise ValueError("a change has another number of chunks than it says")
        new, lines = iter(self.new), iter(self.lines)
        chunks = []
        for origin in self.origins:
            if origin == _NEW:
                chunks.append(_checked(*next(new)))
            elif before is None or origin >= before.summary.num_chunks:
                raise ValueError("a change refers to a chunk that is not there")
            else:
                chunk = moved(before.packed_chunk(origin), next(lines))
                chunks.append((before.hash_of(origin), chunk))
        packed = assemble(self.summary, self.head, chunks)
        check_file(packed)
        check_head(packed)
        return packed


Change = Removed | Replaced | Vectors


def encode_removal(path: str) -> bytes:
    """Returns the change that removes a file."""
    return encode_stream(((_REMOVED,), path))


def encode_vectors(hashes: Sequence[bytes], block: bytes) -> bytes:
    """Returns the change that adds vectors without a row; see Vectors."""
    return encode_stream(((_KEPT_VECTORS,), b"".join(hashes), block))


def encode_replacement(
    before: PackedFile | None, after: PackedFile, vectors: Mapping[bytes, bytes]
) -> bytes:
    """Returns the change that makes a file what it is afterwards.

    Args:
        before: None if the file is new.
        after: The file.
        vectors: Hash to vector (float32 little-endian) of the texts that had no row.
    """
    stock = _positions(before)
    origins, lines = array("I"), array("I")
    new: list[bytes] = []
    for position in range(after.summary.num_chunks):
        name, chunk = after.hash_of(position), after.packed_chunk(position)
        places, span = stock.get(name), lines_of(chunk)
        if before is not None and places and moved(before.packed_chunk(places[0]), span) == chunk:
            origins.append(places.pop(0))
            lines.extend(span)
        else:
            origins.append(_NEW)
            new += (name, chunk)
    return encode_stream(
        (
            (_REPLACED,),
            summary_values(after.summary),
            after.head,
            little_endian(origins),
            little_endian(lines),
            b"".join(vectors),
            b"".join(vectors.values()),
            *new,
        )
    )


def decode_change(payload: bytes) -> Change:
    """Returns what was encoded.

    Raises:
        ValueError: it is no change.
        TypeError: it is no change.
    """
    (kind,), *values = decode_stream(payload)
    match kind, values:
        case (0, [str(path)]):
            return Removed(path)
        case (1, [summary, bytes(head), origins, lines, hashes, block, *new]):
            spans = numbers_of(lines)
            if tuple(map(type, summary)) != _SUMMARY_TYPES:
                raise ValueError("a summary of a file is none")
            return Replaced(
                summary=FileSummary(*summary),
                head=head,
                origins=tuple(numbers_of(origins)),
                lines=tuple(zip(spans[::2], spans[1::2], strict=True)),
                new=tuple(zip(new[::2], new[1::2], strict=True)),
                vectors=_vectors(hashes, block),
            )
        case (2, [hashes, block]):
            return _vectors(hashes, block)
        case _:
            raise ValueError("an unknown kind of change")


def apply_to_files(files: MutableMapping[str, PackedFile], change: Change) -> None:
    """Makes a change in files by their paths; vectors are nothing to them.

    Raises:
        ValueError: the change was made to other files, or is none.
        TypeError: the change is none.
    """
    match change:
        case Removed(path):
            files.pop(path, None)
        case Replaced(summary=summary):
            files[summary.path] = change.packed(files.get(summary.path))
        case Vectors():
            pass


def paid_for(change: Change) -> tuple[bytes, ...]:
    """Returns the content hashes of the texts whose vectors a change brings."""
    match change:
        case Removed():
            return ()
        case Replaced(vectors=vectors):
            return vectors.hashes
        case Vectors(hashes=hashes):
            return hashes
    assert_never(change)


def _positions(file: PackedFile | None) -> dict[bytes, list[int]]:
    positions: dict[bytes, list[int]] = {}
    for position in range(file.summary.num_chunks if file is not None else 0):
        assert file is not None  # noqa: S101 - there are no chunks without a file
        positions.setdefault(file.hash_of(position), []).append(position)
    return positions


def _checked(name: bytes, chunk: bytes) -> tuple[bytes, bytes]:
    """Returns hash and packed chunk; raises ValueError or TypeError if they are none."""
    if len(name) != HASH_BYTES:
        raise ValueError("a hash has another length")
    lines_of(chunk)
    return name, chunk


def _vectors(hashes: object, block: object) -> Vectors:
    if not isinstance(hashes, bytes) or not isinstance(block, bytes):
        raise TypeError("vectors are bytes")
    names = tuple(hashes[start : start + HASH_BYTES] for start in range(0, len(hashes), HASH_BYTES))
    # As many vectors as hashes, each of at least one value.
    fitting = len(block) % (_VALUE_BYTES * len(names)) == 0 < len(block) if names else not block
    if len(hashes) % HASH_BYTES or not fitting:
        raise ValueError("another number of vectors than of hashes")
    return Vectors(names, block)
