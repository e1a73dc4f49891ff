"""Which bytes are the postings of a field?

Writes, for all terms of a field at once, what Whoosh's codec writes for one after another: its
bookkeeping takes 26 microseconds a term. Any Whoosh 2.7.4 reads the result, which differs from the
codec's in ways its readers do not see: all numbers of a block's column have the same width, so that
they can be read as an array, frequencies are integers instead of floats of nine bytes, and a block
is compressed only where that pays.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from memory.posting_lists import FieldPostings

    Integers = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

BLOCK = 4096
"""Most postings of a block: Whoosh's 128 pay off only for its own searcher, which skips blocks."""
_UNCOMPRESSED_POSTINGS = 96
"""Zlib takes a third off the file by longer blocks, and a fortieth more by those half as long."""
_COMPRESSION = 1
"""Level 6 makes the file a fiftieth smaller and writing half as slow again."""

_MAGIC = b"W3Bl"
BLOCK_HEAD = np.dtype(
    [
        ("length", ">i4"),
        ("before_count", "S4"),
        ("count", "<u2"),
        ("before_last", "S1"),
        ("last", "<i4"),
        ("before_max_weight", "S1"),
        ("max_weight", "<u2"),
        ("before_compression", "S1"),
        ("compression", "u1"),
        ("before_min_length", "S1"),
        ("min_length", "u1"),
        ("before_max_length", "S1"),
        ("max_length", "u1"),
        ("end", "S2"),
    ]
)
"""A block's length and the pickled tuple of what Whoosh needs to know before it reads the block."""
EMPTY_HEAD = np.frombuffer(b"\0\0\0\0" + b"\x80\x02(M" + b"\0\0J\0\0\0\0M\0\0K\0K\0K\0t.", np.uint8)
DATA_START = b"\x80\x02("
"""Begins the pickled columns: document numbers, occurrences (None if all are 1) and no payloads."""
_DATA_END = b"N\x87."
WIDTHS = {ord("K"): 2, ord("M"): 3, ord("J"): 5}
"""Pickle's opcodes for a number of one, two or four bytes and the bytes they take with it."""
_OPCODES = np.zeros(6, np.uint8)
_OPCODES[list(WIDTHS.values())] = list(WIDTHS)


@dataclass(frozen=True, slots=True)
class Extents:
    """Where the postings of each term of a field are in the postings file, in bytes."""

    offsets: Integers
    lengths: Integers


def write_postings(
    postings: FieldPostings, length_codes: Bytes, offset: int
) -> tuple[Extents, bytes]:
    """Returns a field's part of the postings file, which begins at an offset."""
    num_blocks = -(-np.diff(postings.starts) // BLOCK)
    firsts = starts_of(num_blocks)
    within = np.arange(num_blocks.sum()) - np.repeat(firsts, num_blocks)
    starts = np.repeat(postings.starts[:-1], num_blocks) + within * BLOCK
    ends = np.append(starts[1:], len(postings.docnums))
    has_magic = within == 0
    deltas = np.diff(postings.docnums, prepend=0)
    deltas[starts] = postings.docnums[starts]
    max_weights = np.maximum.reduceat(postings.counts, starts)
    codes = length_codes[postings.docnums]

    prefixes = BLOCK_HEAD.itemsize + len(_MAGIC) * has_magic
    raw, raw_starts, raw_sizes = _raw_blocks(
        deltas, postings.counts, starts, max_weights > 1, prefixes
    )
    compressed = _compressed(raw, raw_starts, raw_sizes, ends - starts)
    stored = raw_sizes.copy()
    stored[list(compressed)] = list(map(len, compressed.values()))

    is_last = np.append(has_magic[1:], np.True_)
    lengths = stored + BLOCK_HEAD.itemsize - 4
    heads = np.tile(EMPTY_HEAD, (len(starts), 1))
    fields = heads.view(BLOCK_HEAD)[:, 0]
    fields["length"] = np.where(is_last, -lengths, lengths)
    fields["count"] = ends - starts
    fields["last"] = postings.docnums[ends - 1]
    fields["max_weight"] = max_weights
    fields["compression"][list(compressed)] = _COMPRESSION
    fields["min_length"] = np.minimum.reduceat(codes, starts)
    fields["max_length"] = np.maximum.reduceat(codes, starts)
    put(raw, raw_starts - BLOCK_HEAD.itemsize, heads)
    put(raw, (raw_starts - prefixes)[has_magic], _MAGIC)

    sizes = np.add.reduceat(prefixes + stored, firsts)
    extents = Extents(starts_of(sizes) + offset, sizes)
    return extents, _spliced(raw, raw_starts, raw_sizes, compressed)


def _raw_blocks(
    deltas: NDArray[np.int32],
    counts: NDArray[np.uint16],
    starts: Integers,
    has_counts: NDArray[np.bool_],
    prefixes: Integers,
) -> tuple[Bytes, Integers, Integers]:
    """Returns the columns of blocks in a buffer, their places there and their sizes.

    Args:
        deltas: Differences of document numbers.
        counts: Occurrences.
        starts: Where the blocks begin in both.
        has_counts: Blocks in which some occurrences are more than 1.
        prefixes: Bytes to leave free before each block.
    """
    num = np.diff(starts, append=len(deltas))
    widths = _widths(np.maximum.reduceat(deltas, starts))
    count_widths = _widths(np.maximum.reduceat(counts, starts))
    ids_size = len(DATA_START) + num * widths + 1
    counts_size = np.where(has_counts, 2 + num * count_widths, 1)
    sizes = ids_size + counts_size + len(_DATA_END)
    ends = np.cumsum(prefixes + sizes)
    places = ends - sizes
    raw = np.zeros(ends[-1], np.uint8)
    put(raw, places, DATA_START)
    _put_numbers(raw, deltas, starts, places + len(DATA_START), widths)
    after = places + ids_size
    raw[after - 1] = ord("t")
    raw[after] = np.where(has_counts, ord("("), ord("N"))
    some = np.repeat(has_counts, num)
    _put_numbers(
        raw,
        counts[some],
        starts_of(num[has_counts]),
        after[has_counts] + 1,
        count_widths[has_counts],
    )
    raw[(after + counts_size - 1)[has_counts]] = ord("t")
    put(raw, ends - len(_DATA_END), _DATA_END)
    return raw, places, sizes


def _put_numbers(
    raw: Bytes, numbers: NDArray[Any], starts: Integers, places: Integers, widths: Integers
) -> None:
    """Writes numbers as pickle spells them, each run of them from its place on in its width."""
    num = np.diff(starts, append=len(numbers))
    for opcode, width in WIDTHS.items():
        runs = widths == width
        chosen = num[runs]
        if not len(chosen):
            continue
        own = numbers if runs.all() else numbers[np.repeat(runs, num)]
        steps = np.arange(0, width * len(own), width)
        targets = np.repeat(places[runs] - width * starts_of(chosen), chosen) + steps
        raw[targets] = opcode
        for shift in range(width - 1):
            targets += 1
            raw[targets] = own >> 8 * shift & 255


def _compressed(
    raw: Bytes, starts: Integers, sizes: Integers, num_postings: Integers
) -> dict[int, bytes]:
    """Returns by their positions the long blocks that zlib makes smaller."""
    data = raw.data
    compressed = {}
    for block in np.flatnonzero(num_postings > _UNCOMPRESSED_POSTINGS).tolist():
        start, size = int(starts[block]), int(sizes[block])
        shorter = zlib.compress(data[start : start + size], _COMPRESSION)
        if len(shorter) < size:
            compressed[block] = shorter
    return compressed


def _spliced(
    raw: Bytes, starts: Integers, sizes: Integers, compressed: Mapping[int, bytes]
) -> bytes:
    """Returns a buffer with some of its blocks replaced."""
    data = raw.data
    pieces: list[memoryview | bytes] = []
    done = 0
    for block, shorter in compressed.items():
        pieces += data[done : int(starts[block])], shorter
        done = int(starts[block] + sizes[block])
    pieces.append(data[done:])
    return b"".join(pieces)


def put(target: Bytes, places: Integers, rows: Bytes | bytes) -> None:
    """Copies rows of bytes, or the same bytes again and again, to places of a buffer."""
    source = np.frombuffer(rows, np.uint8) if isinstance(rows, bytes) else rows
    target[places[:, None] + np.arange(source.shape[-1])] = source


def starts_of(sizes: Integers) -> Integers:
    """Returns where things of some sizes begin if one follows the other."""
    return np.cumsum(sizes) - sizes


def _widths(largest: NDArray[Any]) -> Integers:
    """Returns how many bytes pickle takes for numbers up to some."""
    return np.where(largest < 1 << 8, 2, np.where(largest < 1 << 16, 3, 5))
