"""Which bytes are the postings and the table of terms of a segment?

The table is the one Whoosh's ``OrderedHashReader`` opens. Its writer would hash keys with MD5,
which takes longer; which function was used is stored in the file.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.posting_blocks import put, starts_of, write_postings
from memory.posting_lists import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from memory.posting_blocks import Extents
    from memory.posting_lists import FieldPostings, Segment

    Integers = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

_TERM_HEAD = np.dtype([("key_length", ">i4"), ("value_length", ">i4"), ("field", ">u2")])
_TERM_VALUE = np.dtype(
    [
        ("inlined", "u1"),
        ("weight", ">f4"),
        ("frequency", ">u4"),
        ("min_length", "u1"),
        ("max_length", "u1"),
        ("max_weight", ">f4"),
        ("first", ">u4"),
        ("last", ">u4"),
        ("offset", ">i8"),
        ("length", ">i4"),
    ]
)
_HASH_HEAD = b"HSH3" + b"\x01" + bytes(8)
"""The format, CRC-32 as hash function, and what Whoosh keeps for later."""
_SLOT = np.dtype([("hash", ">u4"), ("position", ">i8")])
_DIRECTORY_ENTRY = np.dtype([("position", ">i8"), ("slots", ">i4")])
_NUM_TABLES = 256
_INDEX_TYPES = (("H", ">u2", 2**16), ("i", ">i4", 2**31), ("q", ">i8", 2**63))


def postings_and_terms(data: Segment, length_codes: Mapping[str, Bytes]) -> tuple[bytes, bytes]:
    """Returns the content of the postings file and of the term file of a segment.

    Args:
        data: Each of its terms has a posting.
        length_codes: Field to the length of each document as the byte Whoosh stores.
    """
    postings_file: list[bytes] = []
    records: list[Bytes] = []
    sizes: list[Integers] = []
    hashes: list[int] = []
    size = 0
    for number, field in enumerate(FIELDS):
        postings = data.field_postings(field)
        if not postings.terms:
            continue
        extents, written = write_postings(postings, length_codes[field], size)
        postings_file.append(written)
        size += len(written)
        keys = [term.encode() for term in postings.terms]
        values = _term_values(postings, length_codes[field], extents)
        field_records, field_sizes = _term_records(number, keys, values)
        records.append(field_records)
        sizes.append(field_sizes)
        prefix = zlib.crc32(number.to_bytes(2))
        hashes += [zlib.crc32(key, prefix) for key in keys]
    return b"".join(postings_file), _hash_file(records, sizes, hashes)


def _term_values(postings: FieldPostings, length_codes: Bytes, extents: Extents) -> Bytes:
    """Returns what Whoosh stores of each term, shape (terms, 35)."""
    starts = postings.starts[:-1]
    codes = length_codes[postings.docnums]
    values = np.zeros(len(starts), _TERM_VALUE)
    values["weight"] = np.add.reduceat(postings.counts, starts, dtype=np.int64)
    values["frequency"] = np.diff(postings.starts)
    values["min_length"] = np.minimum.reduceat(codes, starts)
    values["max_length"] = np.maximum.reduceat(codes, starts)
    values["max_weight"] = np.maximum.reduceat(postings.counts, starts)
    values["first"] = postings.docnums[starts]
    values["last"] = postings.docnums[postings.starts[1:] - 1]
    values["offset"] = extents.offsets
    values["length"] = extents.lengths
    return values.view(np.uint8).reshape(len(starts), -1)


def _term_records(field: int, keys: list[bytes], values: Bytes) -> tuple[Bytes, Integers]:
    """Returns the records of a field's terms and their sizes."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    heads = np.zeros(len(keys), _TERM_HEAD)
    heads["key_length"] = lengths + 2
    heads["value_length"] = values.shape[1]
    heads["field"] = field
    sizes = _TERM_HEAD.itemsize + lengths + values.shape[1]
    starts = starts_of(sizes)
    records = np.empty(sizes.sum(), np.uint8)
    put(records, starts, heads.view(np.uint8).reshape(len(keys), -1))
    shifts = starts + _TERM_HEAD.itemsize - starts_of(lengths)
    text = np.frombuffer(b"".join(keys), np.uint8)
    records[np.repeat(shifts, lengths) + np.arange(len(text))] = text
    put(records, starts + sizes - values.shape[1], values)
    return records, sizes


def _hash_file(records: list[Bytes], sizes: list[Integers], hashes: list[int]) -> bytes:
    """Returns a table of Whoosh's ``OrderedHashReader``: records, hash tables, sorted places."""
    positions = starts_of(np.concatenate([np.empty(0, np.int64), *sizes])) + len(_HASH_HEAD)
    slots, directory = _hash_tables(np.array(hashes, np.int64), positions)
    directory["position"] += len(_HASH_HEAD) + sum(map(len, records))
    code, dtype = next(
        (code, dtype)
        for code, dtype, limit in _INDEX_TYPES
        if not len(positions) or positions[-1] < limit
    )
    fields = {field: number for number, field in enumerate(FIELDS)}
    extras = {"fieldmap": fields, "indextype": code, "indexlen": len(positions)}
    tail = pickle.dumps(extras, 2) + positions.astype(dtype).tobytes()
    parts = [slots.tobytes(), directory.tobytes(), tail, len(tail).to_bytes(4)]
    return b"".join([_HASH_HEAD, *(part.data for part in records), *parts])


def _hash_tables(hashes: Integers, positions: Integers) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns the slots of all hash tables and the directory of the tables.

    A record takes the first free slot from the one its hash names; all of them try at once.
    """
    tables = hashes & (_NUM_TABLES - 1)
    num_slots = 2 * np.bincount(tables, minlength=_NUM_TABLES)
    starts = starts_of(num_slots)
    directory = np.zeros(_NUM_TABLES, _DIRECTORY_ENTRY)
    directory["position"] = starts * _SLOT.itemsize
    directory["slots"] = num_slots

    taken_by = np.full(num_slots.sum(), -1)
    waiting = np.arange(len(hashes))
    bases, moduli = starts[tables], num_slots[tables]
    tried = (hashes >> 8) % moduli
    while len(waiting):
        wanted = bases[waiting] + tried[waiting]
        is_free = taken_by[wanted] < 0
        taken_by[wanted[is_free]] = waiting[is_free]
        waiting = waiting[taken_by[wanted] != waiting]
        tried[waiting] = (tried[waiting] + 1) % moduli[waiting]

    slots = np.zeros(len(taken_by), _SLOT)
    used = taken_by >= 0
    slots["hash"][used] = hashes[taken_by[used]]
    slots["position"][used] = positions[taken_by[used]]
    return slots, directory
