"""Do values survive the way into bytes and back, and are forged bytes harmless?"""

from __future__ import annotations

import tracemalloc

import msgpack
import pytest

from memory.packing import RecordReader, decode_stream, encode_stream, pack


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


def test_a_record_is_read_value_by_value():
    """Contents of 300 and 70,000 bytes have longer heads than short ones."""
    parts = [b"a" * 10, b"b" * 300, b"c" * 70_000]
    reader = RecordReader(memoryview(pack(["name", *parts, 7]) + pack([1])))

    reader.array(5)
    assert reader.value() == "name"
    assert [bytes(reader.view()) for _ in parts] == parts
    assert (reader.value(), reader.at_end) == (7, False)
    reader.array(1)
    assert (reader.value(), reader.at_end) == (1, True)


def test_a_record_of_another_length_is_refused():
    with pytest.raises(ValueError, match="another length"):
        RecordReader(memoryview(pack([1, 2]))).array(3)


@pytest.mark.parametrize("head", [b"\xc4\x05", b"\xc5\x00\x05", b"\xc6\xff\xff\xff\xff", b""])
def test_bytes_beyond_the_end_are_refused(head):
    with pytest.raises((ValueError, msgpack.UnpackException)):
        RecordReader(memoryview(head + b"four")).view()
