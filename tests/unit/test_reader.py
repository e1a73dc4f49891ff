"""What does somebody see who only reads the data folder?"""

from __future__ import annotations

import subprocess
import sys

import pytest

from memory.config import MemorySettings
from memory.errors import SnapshotCorrupt, SnapshotMissing
from memory.index_settings import IndexSettings
from memory.messages import Query
from memory.reader import SnapshotReader
from memory.snapshot import SNAPSHOT_NAME, write
from tests.doubles import HashEmbedder
from tests.unit.building import contents_of, image_of, new_index, parsed, put, snapshot_of


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def index(embedder, tmp_path):
    index = new_index(embedder, IndexSettings(workspace="some/where"))
    put(index, embedder, parsed("b.md", ["The hen."]))
    put(index, embedder, parsed("caf\u00e9.md", ["The fox.", "The owl."]))
    write(tmp_path / SNAPSHOT_NAME, image_of(index), saved_at=1000)
    return index


def test_listing_and_showing_match_the_index(index, tmp_path):
    with SnapshotReader(tmp_path) as reader:
        assert reader.files() == index.files()
        assert reader.chunks("b.md") == index.chunks("b.md")
        assert reader.chunks("cafe\u0301.md") == index.chunks("caf\u00e9.md")
        assert reader.chunks("../../etc/passwd") is None
        assert reader.header.info.workspace == "some/where"


def test_whole_files_are_those_that_were_indexed(index, tmp_path):
    with SnapshotReader(tmp_path) as reader:
        assert list(reader.parsed_files()) == [
            parsed("b.md", ["The hen."]),
            parsed("caf\u00e9.md", ["The fox.", "The owl."]),
        ]


def test_the_age_is_never_negative(index, tmp_path):
    with SnapshotReader(tmp_path) as reader:
        assert reader.age_s(1060) == 60
        assert reader.age_s(900) == 0


def test_the_index_can_be_searched(index, embedder, tmp_path):
    with SnapshotReader(tmp_path) as reader:
        opened = reader.open_index(MemorySettings(), embedder.info)
    query, vector = Query("fox", 5), embedder.embed_query("fox")

    assert opened.search(query, vector).hits == index.search(query, vector).hits


def test_weights_and_floor_of_the_configuration_hold(index, embedder, tmp_path):
    text_only = MemorySettings.model_validate({"hybridWeights": {"text": 1, "vector": 0}})
    with SnapshotReader(tmp_path) as reader:
        opened = reader.open_index(text_only, embedder.info)

    assert opened.search(Query("fox", 5), embedder.embed_query("x")).hits[0].vector_score == 0


def test_reading_changes_nothing_on_disk(index, embedder, tmp_path):
    before = {path.name: path.stat() for path in tmp_path.iterdir()}
    with SnapshotReader(tmp_path) as reader:
        reader.files()
        reader.open_index(MemorySettings(), embedder.info)

    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == {
        name: status.st_mtime_ns for name, status in before.items()
    }


def test_a_missing_snapshot(tmp_path):
    with pytest.raises(SnapshotMissing):
        SnapshotReader(tmp_path)


@pytest.mark.parametrize("content", [b"\x05", b"\x95\x01\x02\x03\x04\x05", b"\xc1"])
def test_files_that_are_not_understood_are_corrupt(index, tmp_path, content):
    parts = snapshot_of(contents_of(index)[0], {"files": content})
    write(tmp_path / SNAPSHOT_NAME, parts, saved_at=1)

    with SnapshotReader(tmp_path) as reader, pytest.raises(SnapshotCorrupt, match="not understood"):
        reader.files()


@pytest.mark.slow
def test_listings_import_nothing_heavy(index, tmp_path):
    """The time to the first line of ``list`` is the time to import."""
    script = (
        "import sys, pathlib\n"
        "from memory.reader import SnapshotReader\n"
        "with SnapshotReader(pathlib.Path(sys.argv[1])) as reader:\n"
        "    assert len(reader.files()) == 2 and reader.chunks('b.md')\n"
        "heavy = {'numpy', 'faiss', 'whoosh', 'pydantic', 'onnxruntime', 'ray', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
