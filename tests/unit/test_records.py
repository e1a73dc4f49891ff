"""Do files survive the way into a snapshot and back?"""

from __future__ import annotations

import tracemalloc

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.messages import Chunk, ParsedFile
from memory.records import (
    decode_files,
    decode_stream,
    encode_files,
    encode_stream,
    parsed_file,
)

TEXT = st.text(max_size=12)
COUNT = st.integers(0, 2**63 - 1)
CHUNK = st.builds(
    Chunk,
    headlines=TEXT,
    context=st.sampled_from(["", "A context.", "Another one."]),
    content=TEXT,
    content_hash=st.text("0123456789abcdef", min_size=4, max_size=4),
    part=COUNT,
    num_parts=COUNT,
    start_line=COUNT,
    end_line=COUNT,
)
FILE = st.builds(
    ParsedFile,
    path=TEXT,
    raw_path=TEXT,
    mtime_ns=st.integers(-(2**63), 2**63 - 1),
    size=COUNT,
    inode=st.integers(0, 2**64 - 1),
    title=TEXT,
    description=TEXT,
    summary=TEXT,
    tags=st.lists(TEXT, max_size=30).map(tuple),
    dates=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    num_replaced_bytes=COUNT,
    chunks=st.lists(CHUNK, max_size=20).map(tuple),
)


@given(st.lists(FILE, max_size=4))
def test_files_come_back_as_they_were(files):
    with_rows = [(file, tuple(range(5, 5 + len(file.chunks)))) for file in files]

    stored = list(decode_files(encode_files(with_rows)))

    assert [parsed_file(each) for each in stored] == with_rows
    assert [each.summary.num_chunks for each in stored] == [len(file.chunks) for file in files]


def test_a_lone_surrogate_does_not_crash_a_snapshot():
    assert list(decode_stream(encode_stream(["a\ud800b"]))) == ["a\ud800b"]


def test_every_cut_of_a_stream_is_noticed():
    data = encode_stream([("a", 1), b"bytes", "text"])
    ends = {len(encode_stream(values)) for values in ([], [("a", 1)], [("a", 1), b"bytes"])}

    for length in range(len(data)):
        if length not in ends:
            with pytest.raises(ValueError, match="cut off"):
                list(decode_stream(data[:length]))


@pytest.mark.parametrize(
    "bomb",
    [
        b"\xdd\xff\xff\xff\xff" * 1000,
        b"\xdf\xff\xff\xff\xff" * 1000,
        b"\xdd\x00\x00\x13\x88" * 1000,
        b"\xdc\x00\x10" * 5000,
        b"\x91" * 5000,
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\xc1",
    ],
    ids=[
        "array",
        "map",
        "arrays as long as the data",
        "nested arrays",
        "deep",
        "string",
        "bytes",
        "extension",
        "unused code",
    ],
)
def test_forged_lengths_claim_no_memory(bomb):
    """FAULTS 10."""
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, msgpack.UnpackException)):
            list(decode_stream(bomb))
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 5_000_000


def test_a_summary_that_does_not_fit_its_chunks_is_refused():
    (stored,) = decode_files(
        encode_files([(ParsedFile("a", "a", 1, 1, 1, "", "", "", (), (), 0, ()), ())])
    )
    forged = type(stored)(
        type(stored.summary)("a", "a", 1, 1, 1, num_chunks=2, description="", summary=""),
        stored.details,
    )

    with pytest.raises(ValueError, match="number of chunks"):
        parsed_file(forged)
