"""Can a file that claims to be an index break who reads it (FAULTS 8-10)?

Random damage is caught by checksums. Here the checksums are right: the bytes come from somebody who
knows the format.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memory import snapshot
from memory.changes import decode_change, encode_removal, encode_replacement
from memory.config import MemorySettings
from memory.errors import StoreError
from memory.identity import journal_identity
from memory.journal import JOURNAL_NAME, decode_records, encode_header, encode_record
from memory.messages import Query
from memory.reader import SnapshotReader
from memory.records import pack_file
from memory.snapshot import SNAPSHOT_NAME
from tests.doubles import HashEmbedder
from tests.unit.building import contents_of, new_index, parsed, put, remove, snapshot_of

EDITS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 3), st.binary(max_size=6)), min_size=1
)
"""Where, how many bytes go, and which come."""


@cache
def contents():
    """An index of two files, one of which was removed and left its vectors in the cache."""
    index, embedder = new_index(HashEmbedder()), HashEmbedder()
    put(index, embedder, parsed("b.md", ["It rained.", "Snow."], tags=("t",), description="d"))
    put(index, embedder, parsed("a.md", ["Ships sailed.", "Ships sank."], title="Ships"))
    remove(index, "b.md")
    info, parts = contents_of(index)
    return info, {name: bytes(part) for name, part in parts.items()}


def edited(data, edits):
    edited = bytearray(data)
    for place, num_gone, new in edits:
        start = place % (len(edited) + 1)
        edited[start : start + num_gone] = new
    return bytes(edited)


def use(data):
    """Reads all that a data folder holds, as a listing, a search and a daemon do."""
    with SnapshotReader(data) as reader:
        files = reader.files()
        for file in files:
            reader.chunks(file.path)
        list(reader.parsed_files())
        reader.embedded_hashes()
        index = reader.open_index(MemorySettings(), HashEmbedder().info)
    hits = index.search(Query("ships", 5), HashEmbedder().embed_query("ships")).hits
    assert {hit.path for hit in hits} <= {file.path for file in index.files()}


@given(st.sampled_from(["files", "vectors", "cache", "kept"]), EDITS)
@settings(max_examples=100)
def test_a_forged_part_is_refused_or_read(part, edits):
    info, parts = contents()
    forged = {**parts, part: edited(parts[part], edits)}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        snapshot.write(data / SNAPSHOT_NAME, snapshot_of(info, forged), saved_at=1.0)
        try:
            use(data)
        except StoreError:
            return


@given(st.integers(0, 20), EDITS)
@settings(max_examples=100)
def test_a_forged_text_index_is_built_anew_or_opened(number, edits):
    info, parts = contents()
    names = sorted(name for name in parts if name.startswith("text/"))
    name = names[number % len(names)]
    forged = {**parts, name: edited(parts[name], edits)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SNAPSHOT_NAME
        snapshot.write(path, snapshot_of(info, forged), saved_at=1.0)
        with SnapshotReader(Path(folder)) as reader:
            reader.open_index(MemorySettings(), HashEmbedder().info)


@given(EDITS)
@settings(max_examples=60)
def test_a_damaged_snapshot_is_refused_or_the_same(edits):
    info, parts = contents()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SNAPSHOT_NAME
        snapshot.write(path, snapshot_of(info, parts), saved_at=1.0)
        good = path.read_bytes()
        path.write_bytes(edited(good, edits))
        try:
            with snapshot.SnapshotFile(path) as found:
                read = {part.name: bytes(found.view(part.name)) for part in found.header.parts}
        except StoreError:
            return
    assert read == parts


@given(EDITS)
@settings(max_examples=60)
def test_a_damaged_journal_is_a_prefix_of_what_was_appended(edits):
    payloads = [bytes([number]) * number for number in range(1, 9)]
    records = b"".join(encode_record(number, payload) for number, payload in enumerate(payloads, 1))

    found, num_bytes = decode_records(edited(records, edits), after=0)

    read = [bytes(record.payload) for record in found]
    assert read == payloads[: len(read)]
    assert num_bytes <= len(records) + 6 * len(edits)


@cache
def changes():
    """A change of each kind, as a journal holds it."""
    file = pack_file(parsed("c.md", ["Wind.", "Sun."], tags=("t",)))
    return (encode_removal("a.md"), encode_replacement(None, file, {b"h" * 32: b"v" * 64}))


@given(st.sampled_from([0, 1]), EDITS)
@settings(max_examples=100)
def test_a_forged_change_is_refused_or_made(kind, edits):
    info, parts = contents()
    payload = edited(changes()[kind], edits)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        snapshot.write(data / SNAPSHOT_NAME, snapshot_of(info, parts), saved_at=1.0)
        start = encode_header(journal_identity(info.identity), info.revision)
        (data / JOURNAL_NAME).write_bytes(start + encode_record(info.revision + 1, payload))
        try:
            use(data)
        except StoreError:
            return


@given(st.binary(max_size=300) | st.tuples(st.sampled_from([0, 1]), EDITS))
@settings(max_examples=100)
def test_a_payload_is_a_change_or_refused_as_none(payload):
    data = payload if isinstance(payload, bytes) else edited(changes()[payload[0]], payload[1])
    try:
        decode_change(data)
    except (ValueError, TypeError):
        return
