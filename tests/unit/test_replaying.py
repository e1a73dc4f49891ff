"""Is a change that cannot be made again refused by its documented errors, and changes nothing?"""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.changes import decode_change, encode_removal, encode_replacement, encode_vectors
from memory.checks import dump
from memory.errors import DimensionMismatch, StaleUpdate
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import Query
from memory.records import decode_stream, encode_stream, pack_file
from memory.snapshot import SnapshotFile, write
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, new_index, parsed, put

EMBEDDER = HashEmbedder(4)
BEFORE = parsed("a.md", ["One.", "Two."], tags=("x",), title="Title")
AFTER = parsed("a.md", ["Zero.", "Two.", "One."], mtime_ns=2)
NEW = 0xFFFF_FFFF
REFUSALS = (ValueError, TypeError, StaleUpdate, DimensionMismatch)


def index_before():
    index = new_index(EMBEDDER)
    put(index, EMBEDDER, BEFORE)
    put(index, EMBEDDER, parsed("b.md", ["Three."]))
    return index


def written(change):
    """Returns what an index writes down of a change."""
    index, payloads = index_before(), []
    index.log_to(lambda _revision, payload: payloads.append(payload))
    change(index)
    return payloads[0]


REPLACEMENT = written(lambda index: put(index, EMBEDDER, AFTER))
KIND, SUMMARY, HEAD, ORIGINS, LINES, HASHES, BLOCK, HASH, CHUNK = range(9)


def forged(**changed):
    """Returns the replacement with some values changed, named as above."""
    values = list(decode_stream(REPLACEMENT))
    for name, value in changed.items():
        values[globals()[name]] = value
    return encode_stream(values)


def uint32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def state_of(index):
    return index.revision, index.dim, index.files(), dump(index), sorted(dict(index._state.cache))


def summary(**changed):
    fields = ("path", "raw_path", "mtime_ns", "size", "inode", "num_chunks", "description", "about")
    values = dict(zip(fields, list(decode_stream(REPLACEMENT))[SUMMARY], strict=True))
    return list((values | changed).values())


def chunk(*values):
    return encode_stream([values])


GOOD = ("# Notes", None, "Zero.", 1, 1, 1, 2)
HOSTILE = {
    "nothing": b"",
    "a number": b"\x05",
    "no kind": b"\x90",
    "a kind to come": encode_stream([(9,), "a.md"]),
    "a list for a kind": encode_stream([([],), "a.md"]),
    "a removal of a number": encode_stream([(0,), 5]),
    "a removal of two": encode_stream([(0,), "a.md", "b.md"]),
    "more behind it": REPLACEMENT + b"\x05",
    "cut off": REPLACEMENT[:-1],
    "a path that is a number": forged(SUMMARY=summary(path=5)),
    "a time that is a text": forged(SUMMARY=summary(mtime_ns="now")),
    "a time that is a fraction": forged(SUMMARY=summary(mtime_ns=1.5)),
    "a truth for a size": forged(SUMMARY=summary(size=True)),
    "a count that is a fraction": forged(SUMMARY=summary(num_chunks=3.0)),
    "a huge count": forged(SUMMARY=summary(num_chunks=2**63)),
    "a negative count": forged(SUMMARY=summary(num_chunks=-1)),
    "a short summary": forged(SUMMARY=summary()[:-1]),
    "a long summary": forged(SUMMARY=[*summary(), 5]),
    "a summary that is a text": forged(SUMMARY="a.md"),
    "an old chunk that is not there": forged(ORIGINS=uint32(NEW, 2, 0)),
    "the last old chunk before the new ones": forged(ORIGINS=uint32(NEW, NEW - 1, 0)),
    "too few chunks": forged(ORIGINS=uint32(NEW, 1)),
    "too many new chunks": forged(ORIGINS=uint32(NEW, NEW, 0)),
    "half a number": forged(ORIGINS=uint32(NEW, 1, 0)[:-1]),
    "numbers in a text": forged(ORIGINS="123412341234"),
    "a list of numbers": forged(ORIGINS=[NEW, 1, 0]),
    "half a pair of lines": forged(LINES=uint32(4, 5, 7)),
    "no lines": forged(LINES=b""),
    "no head": forged(HEAD=b""),
    "a head that is none": forged(HEAD=b"\xc1"),
    "a head of numbers": forged(HEAD=encode_stream([(1, 0, 0, 0, 1)])),
    "a huge number of tags": forged(HEAD=encode_stream([("T", 0, 2**62, 0, "")])),
    "a tag that is a number": forged(HEAD=encode_stream([("T", 0, 1, 0, ""), 0])),
    "a date that is a number": forged(HEAD=encode_stream([("T", 0, 0, 1, ""), 5])),
    "a date of three": forged(HEAD=encode_stream([("T", 0, 0, 1, ""), ("a", "b", "c")])),
    "a hash that is short": forged(HASH=bytes(31)),
    "a hash that is a text": forged(HASH="x" * 32),
    "a chunk that is none": forged(CHUNK=b"\xc1"),
    "a chunk that is empty": forged(CHUNK=b""),
    "a chunk that is a number": forged(CHUNK=b"\x05"),
    "a chunk that is short": forged(CHUNK=chunk(*GOOD[:-1])),
    "a chunk with a number for its text": forged(CHUNK=chunk(*GOOD[:2], 5, *GOOD[3:])),
    "a chunk with a text for a line": forged(CHUNK=chunk(*GOOD[:-1], "2")),
    "a chunk with bytes for its headlines": forged(CHUNK=chunk(b"# Notes", *GOOD[1:])),
    "half a hash of a vector": forged(HASHES=bytes(31)),
    "hashes that are a text": forged(HASHES="x" * 32),
    "no vector for its hash": forged(BLOCK=b""),
    "a vector without a hash": forged(HASHES=b""),
    "half a value": forged(BLOCK=bytes(15)),
    "another dimension": forged(BLOCK=bytes(4 * 5)),
    "a vector that is not finite": forged(BLOCK=struct.pack("<4f", 1, 0, float("nan"), 0)),
    "an infinite vector": forged(BLOCK=struct.pack("<4f", 1, 0, float("inf"), 0)),
    "the vector of another text": forged(HASHES=bytes(32)),
    "kept vectors of a text": encode_stream([(2,), "x" * 32, bytes(16)]),
    "kept vectors of another dimension": encode_vectors([bytes(32)], bytes(20)),
    "kept vectors that are not finite": encode_vectors([bytes(32)], b"\xff" * 16),
    "no kept vector for its hash": encode_vectors([bytes(32)], b""),
    "fewer kept vectors than hashes": encode_vectors([bytes(32), bytes(32)], bytes(12)),
}


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_change_is_refused_and_changes_nothing(payload):
    """FAULTS 10: a checksum keeps damage away, not intent."""
    index = index_before()
    before = state_of(index)

    with pytest.raises(REFUSALS):
        index.replay(payload)
    assert state_of(index) == before
    index.replay(REPLACEMENT)
    assert index.chunks("a.md")[1] == AFTER.chunks


def test_the_hostile_changes_differ_from_a_good_one_only_in_what_they_forge():
    """Else the test above could refuse them for another reason."""
    for same in (forged(), forged(SUMMARY=summary(), ORIGINS=uint32(NEW, 1, 0))):
        assert same == REPLACEMENT
    index = index_before()
    index.replay(forged(CHUNK=chunk(*GOOD), HEAD=encode_stream([("T", 0, 1, 0, ""), "tag"])))

    assert [each.content for each in index.chunks("a.md")[1]] == ["Zero.", "Two.", "One."]


def test_an_old_chunk_may_be_named_twice():
    """Then a text stands in the file twice, with the same vector."""
    index = index_before()
    index.replay(forged(ORIGINS=uint32(NEW, 1, 1)))

    assert [each.content for each in index.chunks("a.md")[1]] == ["Zero.", "Two.", "Two."]
    vectors = [vector for path, each, vector in index.entries() if each.content == "Two."]
    assert np.array_equal(vectors[0], vectors[1])


def test_no_change_fits_an_index_that_knows_less():
    """The old file is not there, nor are the vectors of its chunks."""
    for payload in (REPLACEMENT, forged(ORIGINS=uint32(0, 1, NEW))):
        index = new_index(EMBEDDER)
        with pytest.raises(REFUSALS):
            index.replay(payload)

        assert state_of(index) == state_of(new_index(EMBEDDER))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda children: st.lists(children, max_size=9),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("replaying") / "memory.msp"


def assert_whole(index, path):
    """Whatever the index holds, it can be searched, listed, saved and loaded."""
    index.search(Query("one two three", 5), EMBEDDER.embed_query("one"))
    with index.frozen() as parts:
        write(path, parts, saved_at=0.0)
    with SnapshotFile(path) as snapshot:
        again = MemoryIndex.restore(snapshot, EMBEDDER.info, ENGLISH, IndexSettings(), epoch="x")
    assert state_of(again) == state_of(index)


def replay_and_look(payload, path):
    index = index_before()
    before = state_of(index)
    try:
        index.replay(payload)
    except REFUSALS:
        assert state_of(index) == before
    assert_whole(index, path)


@pytest.mark.slow
@given(position=st.integers(0, 8), value=VALUES)
def test_any_value_in_place_of_another_is_refused_or_fits(path, position, value):
    values = list(decode_stream(REPLACEMENT))
    values[position] = value
    replay_and_look(encode_stream(values), path)


@pytest.mark.slow
@given(position=st.integers(0, 7), value=VALUES)
def test_any_value_in_a_summary_is_refused_or_fits(path, position, value):
    values = summary()
    values[position] = value
    replay_and_look(forged(SUMMARY=values), path)


@pytest.mark.slow
@given(position=st.integers(0, 6), value=VALUES)
def test_any_value_in_a_chunk_is_refused_or_fits(path, position, value):
    values = list(GOOD)
    values[position] = value
    replay_and_look(forged(CHUNK=chunk(*values)), path)


@pytest.mark.slow
@given(st.lists(VALUES, max_size=4), st.integers(0, 3))
def test_any_values_in_a_change_are_refused_or_fit(path, values, kind):
    replay_and_look(encode_stream([(kind,), *values]), path)


@pytest.mark.slow
@given(st.integers(0, len(REPLACEMENT) - 1), st.integers(1, 255))
def test_any_changed_byte_is_refused_or_fits(path, position, flip):
    damaged = bytearray(REPLACEMENT)
    damaged[position] ^= flip
    replay_and_look(bytes(damaged), path)


def test_what_is_written_down_of_good_changes_is_not_refused():
    """So that the checks above cost no change that was made."""
    odd = parsed("c.md", ["\u00e9 \U0001f600"], title="\n", description=" ", tags=("", "x"))
    for file in (odd, replace(odd, chunks=()), replace(odd, dates=())):
        packed = pack_file(file)
        change = decode_change(encode_replacement(None, packed, {}))
        assert change.packed(None) == packed
    assert decode_change(encode_removal("")).path == ""
