"""Is what is read from a journal always a prefix of what was written?"""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import JournalUnusable
from memory.journal import (
    JOURNAL_NAME,
    decode_records,
    encode_header,
    encode_record,
    read_journal,
)

IDENTITY = bytes(range(32))
HEADER_BYTES = 8 + 4 + 32 + 8 + 4
FRAME_BYTES = 4 + 8 + 4
RECORDS = [(8, b"first"), (9, b""), (12, b"\0\0\0\0"), (13, bytes(range(40)))]
BASE = 7


def journal_bytes(records=RECORDS, base: int = BASE) -> bytes:
    return encode_header(IDENTITY, base) + b"".join(encode_record(*record) for record in records)


def read(path):
    journal = read_journal(path, identity=IDENTITY)
    return [(record.revision, bytes(record.payload)) for record in journal.records]


@pytest.fixture
def path(tmp_path):
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes())
    return tmp_path / JOURNAL_NAME


def test_everything_comes_back(path):
    journal = read_journal(path, identity=IDENTITY)

    assert read(path) == RECORDS
    assert (journal.base, journal.last_revision, journal.torn) == (7, 13, False)
    assert journal.valid_bytes == path.stat().st_size == HEADER_BYTES + 4 * FRAME_BYTES + 49


def test_the_bytes_are_those_the_docstring_names(tmp_path):
    """Built by hand, so that a change of the format is noticed."""
    header = b"\x89MWL\r\n\x1a\n" + struct.pack("<I32sQ", 1, IDENTITY, 7)
    frame = struct.pack("<IQ", 5, 8)
    data = header + struct.pack("<I", zlib.crc32(header))
    data += frame + struct.pack("<I", zlib.crc32(frame + b"first")) + b"first"

    assert data == journal_bytes(RECORDS[:1])


def test_a_journal_without_records_is_at_its_base(path):
    path.write_bytes(journal_bytes([]))
    journal = read_journal(path, identity=IDENTITY)

    assert (journal.records, journal.last_revision, journal.torn) == ((), 7, False)


def test_a_missing_journal_is_none(tmp_path):
    assert read_journal(tmp_path / JOURNAL_NAME, identity=IDENTITY) is None


def test_every_truncation_leaves_a_prefix(path):
    """FAULTS 9."""
    data = journal_bytes()
    ends = [len(journal_bytes(RECORDS[:count])) for count in range(len(RECORDS) + 1)]
    for length in range(HEADER_BYTES, len(data) + 1):
        path.write_bytes(data[:length])
        num_whole = sum(end <= length for end in ends) - 1
        journal = read_journal(path, identity=IDENTITY)

        assert read(path) == RECORDS[:num_whole]
        assert (journal.valid_bytes, journal.torn) == (ends[num_whole], length not in ends)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_ends_the_reading_before_it(path, flip):
    """FAULTS 8: behind the header nothing raises; a changed header is refused."""
    data = journal_bytes()
    ends = [len(journal_bytes(RECORDS[:count])) for count in range(len(RECORDS) + 1)]
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ flip]) + data[position + 1 :])
        if position < HEADER_BYTES:
            with pytest.raises(JournalUnusable):
                read_journal(path, identity=IDENTITY)
        else:
            assert read(path) == RECORDS[: sum(end <= position for end in ends) - 1]


@given(st.binary(max_size=200), st.integers(0, 2**64 - 1))
def test_what_follows_the_records_never_becomes_one(garbage, after):
    """Random bytes match a CRC-32 once in four billion times."""
    assert decode_records(garbage, after=after) == ((), 0)


@given(st.lists(st.tuples(st.integers(1, 2**64 - 1), st.binary(max_size=50)), max_size=5))
def test_reading_stops_where_revisions_do_not_increase(records):
    data = b"".join(encode_record(*record) for record in records)
    increasing = next(
        (
            index
            for index, (revision, _payload) in enumerate(records)
            if revision <= (records[index - 1][0] if index else 0)
        ),
        len(records),
    )
    found, num_bytes = decode_records(data, after=0)

    assert [(record.revision, record.payload) for record in found] == records[:increasing]
    assert num_bytes == sum(FRAME_BYTES + len(record[1]) for record in records[:increasing])


def test_zeros_behind_the_last_record_are_no_record(path):
    with path.open("ab") as file:
        file.truncate(100_000)
    journal = read_journal(path, identity=IDENTITY)

    assert read(path) == RECORDS
    assert journal.torn


@pytest.mark.parametrize("length", [50, 2**28, 2**28 + 1, 2**32 - 1])
def test_nothing_is_allocated_for_a_length_beyond_the_file(path, length):
    """FAULTS 10."""
    with path.open("ab") as file:
        file.write(struct.pack("<IQI", length, 14, 0) + b"payload")
    tracemalloc.start()
    try:
        assert read(path) == RECORDS
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2**27, 2**28])
def test_what_is_behind_the_records_claims_no_memory_however_much_it_is(path, length):
    """FAULTS 10: sparse files of a gigabyte, of zeros or of one forged record."""
    good = path.read_bytes()
    for tail in (b"", struct.pack("<IQI", length, 99, 0)):
        path.write_bytes(good + tail)
        os.truncate(path, 1 << 30)
        tracemalloc.start()
        try:
            journal = read_journal(path, identity=IDENTITY)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert (len(journal.records), journal.valid_bytes, journal.torn) == (4, len(good), True)
        assert peak < 5_000_000


def test_a_length_above_the_cap_is_a_torn_tail_even_if_it_is_all_there(monkeypatch):
    data = encode_record(8, bytes(10)) + encode_record(9, bytes(11))
    monkeypatch.setattr("memory.journal._MAX_PAYLOAD_BYTES", 10)

    assert [record.revision for record in decode_records(data, after=7)[0]] == [8]


def test_a_payload_that_could_not_be_read_again_is_refused(monkeypatch):
    monkeypatch.setattr("memory.journal._MAX_PAYLOAD_BYTES", 10)

    with pytest.raises(ValueError, match="a record of 11 bytes could not be read again"):
        encode_record(9, bytes(11))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a journal"),
        (b"\x89MWL", "not a journal"),
        (b"# A note\n" * 20, "not a journal"),
        (b"\x89MSP\r\n\x1a\n" + bytes(100), "not a journal"),
        (journal_bytes()[: HEADER_BYTES - 1], "cut off"),
        (b"\x89MWL\r\n\x1a\n" + struct.pack("<I", 2) + bytes(100), "format 2, expected 1"),
    ],
)
def test_what_is_no_journal_of_this_version_is_refused(path, content, reason):
    """FAULTS 10."""
    path.write_bytes(content)

    with pytest.raises(JournalUnusable, match=reason):
        read_journal(path, identity=IDENTITY)


def test_the_rest_of_a_file_with_another_start_is_not_read(path):
    """FAULTS 10: a file of 1 GiB, all of it a hole."""
    path.write_bytes(b"")
    os.truncate(path, 2**30)
    tracemalloc.start()
    try:
        with pytest.raises(JournalUnusable):
            read_journal(path, identity=IDENTITY)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_journal_of_another_model_is_refused(path):
    with pytest.raises(JournalUnusable, match="another model"):
        read_journal(path, identity=bytes(32))


def test_an_identity_of_another_length_is_refused():
    with pytest.raises(ValueError, match="31 bytes"):
        encode_header(bytes(31), 0)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    """A FIFO would wait for a writer."""
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(JournalUnusable, match="not a regular file"):
        read_journal(tmp_path / "fifo", identity=IDENTITY)
    with pytest.raises(JournalUnusable, match=r"(?i)directory"):
        read_journal(tmp_path, identity=IDENTITY)


def test_payloads_are_views_of_one_read(path):
    journal = read_journal(path, identity=IDENTITY)
    payloads = [record.payload for record in journal.records]

    assert len({id(payload.obj) for payload in payloads}) == 1
    assert all(payload.readonly for payload in payloads)
