"""Is every damage to a snapshot noticed, and is it always one generation?"""

from __future__ import annotations

import hashlib
import os
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgpack
import numpy as np
import pytest

from memory.errors import SnapshotCorrupt, SnapshotIncompatible, SnapshotMissing, StoreError
from memory.identity import Identity
from memory.snapshot import (
    SNAPSHOT_NAME,
    SnapshotFile,
    read_header,
    set_aside,
    sweep_temporaries,
    write,
)
from memory.snapshot_header import SnapshotInfo
from tests.unit.building import snapshot_of

INFO = SnapshotInfo(
    identity=Identity("fake", "hash", 4, "", 1),
    language="english",
    analysis_version=1,
    revision=7,
    workspace="some/\udcff/folder",
    num_files=1,
    num_chunks=2,
)
VECTORS = np.arange(8, dtype=np.float32).reshape(2, 4)
PARTS = snapshot_of(INFO, {"files": b"file records", "vectors": VECTORS, "cache": b""})


@pytest.fixture
def path(tmp_path):
    write(tmp_path / SNAPSHOT_NAME, PARTS, saved_at=1234.5)
    return tmp_path / SNAPSHOT_NAME


def read_all(path) -> dict[str, bytes]:
    with SnapshotFile(path) as snapshot:
        return {part.name: bytes(snapshot.view(part.name)) for part in snapshot.header.parts}


def test_everything_comes_back(path):
    assert read_all(path) == {
        "files": b"file records",
        "vectors": VECTORS.tobytes(),
        "cache": b"",
    }
    header = read_header(path)
    assert (header.info, header.saved_at) == (INFO, 1234.5)


def test_an_empty_index_can_be_saved(tmp_path):
    empty = snapshot_of(INFO, {"vectors": np.empty((0, 0), np.float32)})
    write(tmp_path / SNAPSHOT_NAME, empty, saved_at=1)

    assert read_all(tmp_path / SNAPSHOT_NAME) == {"vectors": b""}


def test_a_helper_for_the_checksums_changes_nothing(tmp_path):
    # More than one block that is written at once, as the helper is one behind.
    parts = {"files": bytes(range(256)) * 10_000, "vectors": VECTORS, "cache": b"", "kept": b"k"}
    write(tmp_path / "alone", snapshot_of(INFO, parts), saved_at=1.0)
    with ThreadPoolExecutor(1) as helper:
        write(tmp_path / "helped", snapshot_of(INFO, parts), saved_at=1.0, helper=helper)
    assert (tmp_path / "helped").read_bytes() == (tmp_path / "alone").read_bytes()
    assert read_all(tmp_path / "helped")["files"] == parts["files"]


def test_every_flipped_bit_is_noticed(path):
    """FAULTS 8: one bit in each byte, another one each time."""
    data = bytearray(path.read_bytes())
    unnoticed = []
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(data):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << position % 8]), position)
            try:
                read_all(path)
                unnoticed.append(position)
            except StoreError:
                pass
            os.pwrite(file.fileno(), bytes([byte]), position)

    assert unnoticed == []
    assert read_all(path)


def test_every_truncation_and_every_tail_is_noticed(path):
    """FAULTS 9."""
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(SnapshotCorrupt):
            read_header(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(SnapshotCorrupt):
        read_header(path)


def with_header(fields: object, *, length: int | None = None, rest: bytes = b"") -> bytes:
    """Returns a file whose header checksum is right, whatever the header says."""
    header = fields if isinstance(fields, bytes) else msgpack.packb(fields)
    length = len(header) if length is None else length
    footer = struct.pack("<I32s", length, hashlib.sha256(header).digest())
    return struct.pack("<8sI", b"\x89MSP\r\n\x1a\n", 3) + rest + header + footer


GOOD_INFO = {
    "identity": {"provider": "", "model": "", "dim": 0, "base_url": "", "input_format": 1},
    "language": "english",
    "analysis_version": 1,
    "revision": 1,
    "workspace": "",
    "num_files": 0,
    "num_chunks": 0,
    "vector_type": "float32",
}
HUGE = ("files", 2**62, b"\0" * 32)
FORGED = {
    "empty": b"",
    "text": b"# Notes\n\nNot a snapshot.\n" * 50,
    "zeros": b"\0" * 100_000,
    "json of another engine": b'{"internalDocumentIDStore":{}}' * 20,
    "msgpack of another engine": msgpack.packb({"data": list(range(100))}),
    "huge header": with_header(b"x", length=0xFFFFFFFF),
    "header longer than the file": with_header(b"x", length=60_000),
    "header is no map": with_header([1, 2]),
    "header is a bomb": with_header(b"\xdd\xff\xff\xff\xff" * 2000),
    "header is deep": with_header(b"\x91" * 60_000),
    "a part longer than the file": with_header(
        {"saved_at": 1.0, "info": GOOD_INFO, "parts": [HUGE]}
    ),
    "a part of negative length": with_header(
        {"saved_at": 1.0, "info": GOOD_INFO, "parts": [("files", -5, b"")]}
    ),
    "a number for a name": with_header(
        {"saved_at": 1.0, "info": GOOD_INFO | {"language": 5}, "parts": []}
    ),
    "a name for a number": with_header(
        {"saved_at": 1.0, "info": GOOD_INFO | {"num_chunks": "many"}, "parts": []}
    ),
    "a field too many": with_header(
        {"saved_at": 1.0, "info": GOOD_INFO | {"extra": 5}, "parts": []}
    ),
    "no identity": with_header({"saved_at": 1.0, "info": {}, "parts": []}),
}


def peak_of_refusal(path) -> int:
    """Returns the most bytes that reading a bad snapshot claimed."""
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotCorrupt):
            read_all(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_foreign_and_forged_files_are_refused_without_claiming_memory(tmp_path, content):
    """FAULTS 10 and 13."""
    path = tmp_path / SNAPSHOT_NAME
    path.write_bytes(content)

    assert peak_of_refusal(path) < 5_000_000


def test_a_large_file_with_a_huge_header_is_refused_before_it_is_read(tmp_path):
    """FAULTS 10."""
    path = tmp_path / SNAPSHOT_NAME
    forged = with_header(b"x", length=0xFFFFFFFF)
    path.write_bytes(forged)
    os.truncate(path, 200_000_000)
    with path.open("r+b") as file:
        file.seek(-40, os.SEEK_END)
        file.write(forged[-40:])

    assert peak_of_refusal(path) < 5_000_000


def test_the_forged_files_differ_from_a_good_one_only_in_what_they_forge(tmp_path):
    """Else the test above could refuse them for another reason."""
    path = tmp_path / SNAPSHOT_NAME
    digest = hashlib.sha256(b"abc").digest()
    fields = {"saved_at": 1.0, "info": GOOD_INFO, "parts": [("files", 3, digest)]}
    path.write_bytes(with_header(fields, rest=b"abc"))

    assert read_all(path) == {"files": b"abc"}


def test_another_format_version_is_incompatible_not_corrupt(path):
    with path.open("r+b") as file:
        file.seek(8)
        file.write(struct.pack("<I", 4))

    with pytest.raises(SnapshotIncompatible, match="format 4, expected 3"):
        read_header(path)


def test_a_missing_snapshot(tmp_path):
    with pytest.raises(SnapshotMissing):
        read_header(tmp_path / SNAPSHOT_NAME)


def test_a_folder_or_a_fifo_of_that_name_is_refused_at_once(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(SnapshotCorrupt, match="directory"):
        read_header(tmp_path / "folder")
    with pytest.raises(SnapshotCorrupt, match="not a regular file"):
        read_header(tmp_path / "fifo")


def test_an_open_snapshot_stays_one_generation_while_it_is_replaced(path):
    """FAULTS 15."""
    newer = snapshot_of(replace(INFO, revision=8), {"files": b"new records"})
    with SnapshotFile(path) as snapshot:
        write(path, newer, saved_at=2000)

        assert snapshot.header.info.revision == 7
        assert bytes(snapshot.view("files")) == b"file records"
    assert read_all(path) == {"files": b"new records"}


def test_only_what_is_read_is_verified(path):
    """A listing must not pay for the checksum of the vectors."""
    offset = next(part.offset for part in read_header(path).parts if part.name == "vectors")
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff")

    with SnapshotFile(path) as snapshot:
        assert bytes(snapshot.view("files")) == b"file records"
        with pytest.raises(SnapshotCorrupt, match="part vectors"):
            snapshot.view("vectors")


def test_what_is_released_can_be_read_again(path):
    with SnapshotFile(path) as snapshot:
        view = snapshot.view("files")
        snapshot.release()

        assert bytes(view) == b"file records"
        assert bytes(snapshot.view("vectors")) == VECTORS.tobytes()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells")
def test_a_released_part_takes_no_memory(tmp_path):
    size = 8 * 1024 * 1024
    write(tmp_path / SNAPSHOT_NAME, snapshot_of(INFO, {"files": bytes(size)}), saved_at=1)
    with SnapshotFile(tmp_path / SNAPSHOT_NAME) as snapshot:
        view = snapshot.view("files")
        read = shared_bytes()
        snapshot.release()

        assert read - shared_bytes() > size / 2
        assert view[-1] == 0


def shared_bytes() -> int:
    """Returns the resident memory of this process that belongs to files."""
    return int(Path("/proc/self/statm").read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")


def test_a_part_that_is_not_there(path):
    with SnapshotFile(path) as snapshot, pytest.raises(SnapshotCorrupt, match="text is missing"):
        snapshot.view("text")


def test_a_bad_snapshot_is_kept_under_another_name(path):
    content = path.read_bytes()
    kept = set_aside(path, 1_780_000_000)

    assert kept.name == "memory.msp.bad-20260528T202640Z"
    assert kept.read_bytes() == content
    assert not path.exists()


def test_only_the_last_bad_snapshots_are_kept(path):
    """A disk that goes bad must not fill itself."""
    content = path.read_bytes()
    (path.parent / f"{SNAPSHOT_NAME}.bad-00000000T000000Z").mkdir()
    for day in range(5):
        path.write_bytes(content + bytes([day]))
        set_aside(path, 1_780_000_000 + day * 86_400)

    kept = sorted(each for each in path.parent.iterdir() if each.is_file())
    assert [each.read_bytes()[-1] for each in kept] == [3, 4]


def test_the_rest_of_killed_writers_is_swept(path):
    """FAULTS 7."""
    (path.parent / f".{SNAPSHOT_NAME}.0a1b2c3d.tmp").write_bytes(b"half")

    assert sweep_temporaries(path.parent) == 1
    assert [each.name for each in path.parent.iterdir()] == [SNAPSHOT_NAME]


def test_a_header_that_could_not_be_read_again_is_never_written(tmp_path):
    long = replace(PARTS, info=replace(INFO, workspace="x" * 300_000))

    with pytest.raises(ValueError, match="header"):
        write(tmp_path / SNAPSHOT_NAME, long, saved_at=1)
    assert list(tmp_path.iterdir()) == []
