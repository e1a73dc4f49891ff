"""Which documents do stored blocks of postings name, and how often does the term occur in them?

Blocks that were written here have columns of numbers of one width and are read as arrays. Those of
Whoosh's own writers are unpickled.
"""

from __future__ import annotations

import pickle
import zlib
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.posting_blocks import BLOCK_HEAD, DATA_START, EMPTY_HEAD, WIDTHS, starts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Postings = tuple[NDArray[np.intp], NDArray[np.float32]]

_HEAD = Struct("<4x4sHs4xs3xB")
"""Start, number of postings, two opcodes that tell the layout, compression."""
_OWN_HEAD = (b"\x80\x02(M", b"J", b"M")
_NUMBERS = {
    opcode: np.dtype([("opcode", "u1"), ("number", f"<u{width - 1}")])
    for opcode, width in WIDTHS.items()
}
_WIDTH_OF = np.zeros(256, np.int64)
_WIDTH_OF[list(WIDTHS)] = list(WIDTHS.values())
_OPCODES_AT = np.flatnonzero(EMPTY_HEAD)


def read_block(block: memoryview) -> Postings:
    """Returns (document numbers, occurrences) of a block, which begins with its length."""
    start, count, before_last, before_weight, compression = _HEAD.unpack_from(block)
    if (start, before_last, before_weight) != _OWN_HEAD:
        return _unpickled_block(block[4:])
    columns = block[BLOCK_HEAD.itemsize :]
    if compression:
        columns = memoryview(zlib.decompress(columns))
    deltas, end = _numbers(columns, len(DATA_START), count)
    docnums = np.cumsum(deltas, dtype=np.intp)
    if columns[end] != ord("("):
        return docnums, np.ones(count, np.float32)
    return docnums, _numbers(columns, end + 1, count)[0].astype(np.float32)


def read_blocks(
    file: memoryview, offsets: Integers
) -> tuple[Integers, NDArray[np.int64], NDArray[np.int64]] | None:
    """Reads the postings of many terms at once.

    Args:
        file: The postings file.
        offsets: Where the first block of each term begins.

    Returns:
        The numbers of postings of each term, the document numbers and the occurrences of all; None
        if a block was written by Whoosh.
    """
    data = np.frombuffer(file, np.uint8)
    owners, starts, heads = _all_heads(data, offsets)
    if (heads[:, _OPCODES_AT] != EMPTY_HEAD[_OPCODES_AT]).any():
        return None
    fields = heads.view(BLOCK_HEAD)[:, 0]
    counts = fields["count"].astype(np.int64)
    starts += BLOCK_HEAD.itemsize
    compressed = np.flatnonzero(fields["compression"])
    ends = starts + np.abs(fields["length"]) + 4 - BLOCK_HEAD.itemsize
    plain = [
        zlib.decompress(file[start:end])
        for start, end in zip(starts[compressed].tolist(), ends[compressed].tolist(), strict=True)
    ]
    sizes = np.fromiter(map(len, plain), np.int64, len(plain))
    starts[compressed] = len(data) + starts_of(sizes)
    data = np.concatenate([data, np.frombuffer(b"".join(plain), np.uint8)])
    docnums, occurrences = _columns(data, starts + len(DATA_START), counts)
    return np.bincount(owners, counts, len(offsets)).astype(np.int64), docnums, occurrences


def _all_heads(
    data: NDArray[np.uint8], offsets: Integers
) -> tuple[Integers, Integers, NDArray[np.uint8]]:
    """Returns the term, the place and the head of each block, sorted by term."""
    owners, starts = np.arange(len(offsets)), offsets
    found = []
    while len(owners):
        # A block of Whoosh's may be shorter than a head at the end of the file.
        places = np.minimum(starts[:, None] + np.arange(BLOCK_HEAD.itemsize), len(data) - 1)
        heads = data[places]
        lengths = heads.view(BLOCK_HEAD)[:, 0]["length"].astype(np.int64)
        found.append((owners, starts, heads))
        has_next = lengths > 0
        owners, starts = owners[has_next], (starts + 4 + lengths)[has_next]
    all_owners, all_starts, all_heads = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(all_owners, kind="stable")
    return all_owners[order], all_starts[order], all_heads[order]


def _columns(
    data: NDArray[np.uint8], starts: Integers, counts: Integers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns document numbers and occurrences of blocks whose columns begin at some places."""
    deltas = _gathered(data, starts, counts)
    sums = np.cumsum(deltas)
    firsts = starts_of(counts)
    docnums = sums - np.repeat(sums[firsts] - deltas[firsts], counts)
    ends = starts + counts * _WIDTH_OF[data[starts]] + 1
    some = data[ends] == ord("(")
    occurrences = np.ones(len(docnums), np.int64)
    if some.any():
        occurrences[np.repeat(some, counts)] = _gathered(data, ends[some] + 1, counts[some])
    return docnums, occurrences


def _gathered(data: NDArray[np.uint8], starts: Integers, counts: Integers) -> NDArray[np.int64]:
    """Returns runs of numbers, each of one width, as one array."""
    opcodes = data[starts]
    numbers = np.empty(counts.sum(), np.int64)
    for opcode, width in WIDTHS.items():
        runs = opcodes == opcode
        own = counts[runs]
        steps = np.arange(1, width * own.sum(), width)
        places = np.repeat(starts[runs] - width * starts_of(own), own) + steps
        values = data[places].astype(np.int64)
        for shift in range(1, width - 1):
            places += 1
            values |= data[places].astype(np.int64) << 8 * shift
        numbers[np.repeat(runs, counts)] = values
    return numbers


def _numbers(columns: memoryview, place: int, count: int) -> tuple[NDArray[Any], int]:
    """Returns the numbers from a place on, all as wide as the first, and where they end."""
    dtype = _NUMBERS[columns[place]]
    numbers = np.frombuffer(columns, dtype, count, place)["number"]
    return numbers, place + count * dtype.itemsize + 1


def _unpickled_block(block: memoryview) -> Postings:
    stream = BytesIO(block)
    is_compressed = _PlainUnpickler(stream).load()[3]
    columns = stream.read()
    deltas, weights, _ = unpickled(zlib.decompress(columns) if is_compressed else columns)
    occurrences = np.full(len(deltas), 1 if weights is None else weights, np.float32)
    return np.cumsum(deltas, dtype=np.intp), occurrences


def unpickled(stored: bytes) -> Any:
    """Returns plain data that was pickled.

    Raises:
        UnpicklingError: it is not plain.
    """
    return _PlainUnpickler(BytesIO(stored)).load()


class _PlainUnpickler(pickle.Unpickler):
    """Reads tuples and numbers, and refuses whatever would run code."""

    def find_class(self, module: str, name: str) -> Callable[[], bytes]:
        """Allows for the empty payload, which the old protocol spells as a call of ``bytes``."""
        if (module, name) in _EMPTY_PAYLOAD:
            return _no_payload
        raise pickle.UnpicklingError(f"unexpected {module}.{name} in a posting")


_EMPTY_PAYLOAD = {("__builtin__", "bytes"), ("builtins", "bytes")}


def _no_payload() -> bytes:
    return b""
