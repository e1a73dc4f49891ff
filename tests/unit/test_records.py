"""Do files survive the way into a snapshot and back?"""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.messages import Chunk, ParsedFile
from memory.packing import pack
from memory.records import (
    assemble,
    check_file,
    decode_files,
    encode_file,
    lines_of,
    moved,
    pack_file,
    summary_values,
)
from tests.unit.building import parsed

TEXT = st.text(max_size=12)
COUNT = st.integers(0, 2**63 - 1)
LINE = st.integers(0, 2**32 - 1)
CHUNK = st.builds(
    Chunk,
    headlines=TEXT,
    context=st.sampled_from(["", "A context.", "Another one."]),
    content=TEXT,
    content_hash=st.binary(min_size=32, max_size=32).map(bytes.hex),
    part=COUNT,
    num_parts=COUNT,
    start_line=LINE,
    end_line=LINE,
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
    packed = [(pack_file(file), tuple(range(5, 5 + len(file.chunks)))) for file in files]

    records = [encode_file(*each) for each in packed]
    stored = list(decode_files(b"".join(records)))

    assert stored == [(*each, record) for each, record in zip(packed, records, strict=True)]
    assert [file.parsed for file, *_ in stored] == files


def test_texts_of_a_stored_file_are_not_copied():
    stored = encode_file(pack_file(parsed("a.md", ["One", "Two"])), (0, 1))

    ((file, _rows, record),) = decode_files(stored)

    assert file.chunks.obj is record.obj is stored
    assert [chunk.content for chunk in file.all_chunks()] == ["One", "Two"]


def test_every_cut_of_the_files_is_noticed():
    files = [pack_file(parsed(name, ["One", "Two"])) for name in ("a.md", "b.md")]
    stored = b"".join(encode_file(file, (0, 1)) for file in files)

    for length in set(range(1, len(stored))) - {len(stored) // 2}:
        with pytest.raises((ValueError, msgpack.UnpackException)):
            list(decode_files(stored[:length]))


@pytest.mark.parametrize("chunks", ["text", 5, [b"a"], None], ids=str)
def test_texts_that_are_no_bytes_are_refused(chunks):
    summary = summary_values(pack_file(parsed("a.md")).summary)

    with pytest.raises(ValueError, match="no bytes"):
        list(decode_files(pack([summary, b"", b"", chunks, b"", b""])))


@given(FILE)
def test_one_chunk_is_decoded_without_the_others(file):
    packed = pack_file(file)

    assert [packed.chunk(position) for position in range(len(file.chunks))] == list(file.chunks)
    assert [packed.hash_of(position).hex() for position in range(len(file.chunks))] == [
        chunk.content_hash for chunk in file.chunks
    ]


def test_a_chunk_can_move_to_other_lines():
    packed = pack_file(parsed("a.md", ["One", "Two"])).packed_chunk(1)

    after = moved(packed, (70, 71))

    assert lines_of(after) == (70, 71)
    assert moved(after, lines_of(packed)) == packed


def test_the_words_of_the_front_matter_are_searchable():
    file = parsed("a.md", ["One"], title="Title", description="About it.", tags=("x", "y"))

    assert pack_file(file).meta == "Title\nAbout it.\nx\ny"


def test_a_file_whose_parts_do_not_fit_is_refused():
    whole = pack_file(parsed("a.md", ["One", "Two"]))
    forged = [
        replace(whole, hashes=whole.hashes[:-1]),
        replace(whole, ends=whole.ends[:4]),
        replace(whole, chunks=whole.chunks + b"x"),
        replace(whole, ends=whole.ends[4:] + whole.ends[:4]),
        replace(whole, summary=replace(whole.summary, num_chunks=3)),
    ]

    check_file(whole)
    for file in forged:
        with pytest.raises(ValueError, match="do not fit"):
            check_file(file)


def test_a_file_can_be_put_together_from_its_chunks():
    whole = pack_file(parsed("a.md", ["One", "Two"]))
    chunks = [(whole.hash_of(position), whole.packed_chunk(position)) for position in (0, 1)]

    assert assemble(whole.summary, whole.head, chunks) == whole
