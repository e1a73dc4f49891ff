"""Can a change be made again from what was written down of it?"""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.changes import (
    Removed,
    Vectors,
    apply_to_files,
    decode_change,
    encode_removal,
    encode_replacement,
    encode_vectors,
)
from memory.records import pack_file
from tests.unit.building import parsed

TEXTS = st.lists(st.sampled_from(["One.", "Two.", "Three.", "Four."]), max_size=6)


@given(TEXTS, TEXTS, st.integers(1, 50))
def test_a_replaced_file_is_what_it_was_after_the_change(before, after, line):
    old = pack_file(parsed("a.md", before))
    new = pack_file(parsed("a.md", after, mtime_ns=9, title="T", first_line=line))
    files = {"a.md": old, "b.md": old}

    apply_to_files(files, decode_change(encode_replacement(old, new, {})))

    assert files == {"a.md": new, "b.md": old}


def test_an_edit_of_a_long_file_takes_little():
    """SPEC P2: the other 199 sections are named, not repeated."""
    sections = [f"Section {number}. " + "word " * 150 for number in range(200)]
    edited = [*sections[:70], "Another text.", *sections[71:]]
    old, new = pack_file(parsed("a.md", sections)), pack_file(parsed("a.md", edited, first_line=3))
    vector = {new.hash_of(70): bytes(4 * 384)}

    change = encode_replacement(old, new, vector)

    assert len(change) < 5_000
    assert decode_change(change).packed(old) == new
    assert decode_change(change).vectors == Vectors((new.hash_of(70),), bytes(4 * 384))


def test_a_part_that_is_numbered_anew_is_written_whole():
    """Its text, and so its hash, is the same."""
    old = parsed("a.md", ["One.", "Two."])
    parts = tuple(replace(chunk, part=2, num_parts=3) for chunk in old.chunks)
    before, after = pack_file(old), pack_file(replace(old, chunks=parts))

    assert decode_change(encode_replacement(before, after, {})).packed(before) == after


def test_a_change_that_misses_a_chunk_is_refused():
    change = decode_change(encode_replacement(None, pack_file(parsed("a.md", ["One."])), {}))

    for forged in (replace(change, new=()), replace(change, lines=((1, 2),))):
        with pytest.raises(ValueError, match="number of chunks"):
            forged.packed(None)


def test_removals_and_vectors_come_back():
    hashes = (b"a" * 32, b"b" * 32)

    assert decode_change(encode_removal("a.md")) == Removed("a.md")
    assert decode_change(encode_vectors(hashes, b"12345678")) == Vectors(hashes, b"12345678")


def test_a_change_of_another_file_is_refused():
    old, new = (pack_file(parsed("a.md", texts)) for texts in (["One."], ["One.", "Two."]))
    change = decode_change(encode_replacement(old, new, {}))

    with pytest.raises(ValueError, match="not there"):
        apply_to_files({}, change)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_change_are_refused(payload):
    try:
        change = decode_change(payload)
    except (ValueError, TypeError, msgpack.UnpackException):
        return
    assert isinstance(change, Removed | Vectors)
