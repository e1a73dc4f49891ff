"""Does an index survive the way to disk and back, and what happens when it does not fit?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory import index_image
from memory.analysis import Analyzer
from memory.checks import dump
from memory.errors import SnapshotCorrupt
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import Query
from memory.packing import encode_stream
from memory.snapshot import SNAPSHOT_NAME, SnapshotFile, SnapshotParts, write
from memory.text_index import TextIndex
from tests.doubles import HashEmbedder
from tests.unit.building import (
    ENGLISH,
    contents_of,
    image_of,
    new_index,
    parsed,
    put,
    remove,
    snapshot_of,
    text_of,
)

SECTIONS = [f"Section {number} about running topic{number}." for number in range(20)]


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def index(embedder):
    """An index with gaps: something was removed, edited and forgotten."""
    index = new_index(embedder, IndexSettings(workspace="some/where"))
    put(index, embedder, parsed("gone.md", ["Gone one.", "Gone two."]))
    put(index, embedder, parsed("a.md", SECTIONS, title="Title", tags=("x", "y")))
    put(index, embedder, parsed("blank.md"))
    put(index, embedder, parsed("b.md", [*SECTIONS[:3], "Same.", "Same."]))
    remove(index, "gone.md")
    put(index, embedder, parsed("b.md", [*SECTIONS[:2], "Same.", "Same.", "New."], mtime_ns=5))
    return index


def saved(parts: SnapshotParts, folder) -> SnapshotFile:
    write(folder / SNAPSHOT_NAME, parts, saved_at=1)
    return SnapshotFile(folder / SNAPSHOT_NAME)


def restored(index, embedder, folder, analyzer=ENGLISH, settings=None) -> MemoryIndex:
    with saved(image_of(index), folder) as snapshot:
        return MemoryIndex.restore(
            snapshot, embedder.info, analyzer, settings or IndexSettings(), epoch="second"
        )


def answers(index, embedder, query="running topic3"):
    return index.search(Query(query, 5), embedder.embed_query("Same.")).hits


def test_everything_comes_back_without_an_embedding(index, embedder, tmp_path):
    embedder.texts.clear()
    other = restored(index, embedder, tmp_path)

    assert dump(other) == dump(index)
    assert other.files() == index.files()
    assert [other.chunks(file.path) for file in other.files()] == [
        index.chunks(file.path) for file in index.files()
    ]
    assert answers(other, embedder) == answers(index, embedder)
    assert (other.status().revision, other.status().epoch) == (index.status().revision, "second")
    for path in ("a.md", "b.md"):
        again = parsed(path, [chunk.content for chunk in index.chunks(path)[1]], mtime_ns=77)
        put(other, embedder, again)
    assert embedder.texts == []


def test_an_index_saves_from_the_snapshot_it_was_loaded_from(index, embedder, tmp_path):
    """Its texts are views of that file, which the save replaces."""
    other = restored(index, embedder, tmp_path)
    put(other, embedder, parsed("b.md", ["Only this."], mtime_ns=6))
    again = restored(other, embedder, tmp_path)
    third = restored(again, embedder, tmp_path)

    assert dump(third) == dump(again) == dump(other)
    assert answers(third, embedder) == answers(other, embedder)


def test_removed_vectors_come_back_too(index, embedder, tmp_path):
    """SPEC D3: delete, restart, undo."""
    other = restored(index, embedder, tmp_path)
    embedder.texts.clear()
    put(other, embedder, parsed("gone.md", ["Gone one.", "Gone two."]))

    assert embedder.texts == []


def test_a_restored_index_goes_on_as_the_old_one_would(index, embedder, tmp_path):
    other = restored(index, embedder, tmp_path)
    for each in (index, other):
        put(each, embedder, parsed("a.md", SECTIONS[5:], mtime_ns=9))
        put(each, embedder, parsed("c.md", ["Brand new."]))
        remove(each, "b.md")

    assert dump(other) == dump(index)
    assert [hit.path for hit in answers(other, embedder)] == [
        hit.path for hit in answers(index, embedder)
    ]


def test_a_snapshot_is_not_touched_by_later_changes(index, embedder, tmp_path):
    before = dump(index)
    parts = image_of(index)
    remove(index, "a.md")
    put(index, embedder, parsed("z.md", ["Later."]))
    with saved(parts, tmp_path) as snapshot:
        other = MemoryIndex.restore(
            snapshot, embedder.info, ENGLISH, IndexSettings(), epoch="second"
        )

    assert dump(other) == before


def test_the_header_says_what_is_inside(index, embedder):
    info, _parts = contents_of(index)

    assert (info.num_files, info.num_chunks, info.revision) == (3, 25, 6)
    assert (info.language, info.workspace) == ("english", "some/where")
    assert (info.identity.model, info.identity.dim) == (embedder.info.model, 16)


def test_an_empty_index_comes_back(embedder, tmp_path):
    other = restored(new_index(embedder), embedder, tmp_path)

    assert other.files() == ()
    put(other, embedder, parsed("a.md", ["Word."]))
    assert dump(other)


def test_an_index_of_unknown_dimension_comes_back(embedder, tmp_path):
    embedder.info = replace(embedder.info, dim=0)
    index = new_index(embedder)
    put(index, embedder, parsed("blank.md"))
    other = restored(index, embedder, tmp_path)

    assert [file.path for file in other.files()] == ["blank.md"]
    assert other.dim == 0


def test_another_language_rebuilds_the_words_without_an_embedding(index, embedder, tmp_path):
    """SPEC E5: English finds ``running`` by ``runs``, German does not."""
    embedder.texts.clear()
    german = restored(index, embedder, tmp_path, Analyzer("german"))

    assert index.search(Query("runs", 5), None).hits
    assert not german.search(Query("runs", 5), None).hits
    assert german.search(Query("running", 5), None).hits
    assert dump(german) == dump(index)
    assert embedder.texts == []


def test_another_analysis_version_rebuilds_the_words(index, embedder, tmp_path, monkeypatch):
    monkeypatch.setattr("memory.index_image.ANALYSIS_VERSION", 999)
    parts = image_of(index)
    monkeypatch.undo()
    monkeypatch.setattr(TextIndex, "from_files", lambda *_args: pytest.fail("loaded"))
    with saved(parts, tmp_path) as snapshot:
        other = MemoryIndex.restore(
            snapshot, embedder.info, ENGLISH, IndexSettings(), epoch="second"
        )

    assert other.search(Query("topic7", 5), None).hits


@pytest.mark.parametrize(
    "files",
    [{}, {"text/MAIN_1.toc": b"rubbish"}, {"text/_MAIN_1.toc": b"\x80\x04."}],
    ids=["none", "rubbish", "pickle"],
)
def test_words_that_cannot_be_opened_are_built_anew(index, embedder, tmp_path, files, caplog):
    info, contents = contents_of(index)
    others = {name: data for name, data in contents.items() if not name.startswith("text/")}
    with saved(snapshot_of(info, others | files), tmp_path) as snapshot:
        other = MemoryIndex.restore(
            snapshot, embedder.info, ENGLISH, IndexSettings(), epoch="second"
        )

    assert other.search(Query("topic7", 5), None).hits[0].path == "a.md"
    assert all(record.levelname == "WARNING" for record in caplog.records)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("files", b""),
        ("files", encode_stream([("a.md", "a.md")])),
        ("files", encode_stream([("a.md", b"", b"", b"", b"", b"")])),
        ("files", encode_stream([5])),
        ("files", b"\xdd\xff\xff\xff\xff"),
        ("vectors", b""),
        ("vectors", b"\0" * 4),
        ("vectors", b"\xff" * (25 * 16 * 4)),
        ("cache", encode_stream([b"hash", b"short"])),
        ("cache", encode_stream([b"hash"])),
        ("kept", encode_stream([b"hash", b"short"])),
    ],
)
def test_parts_that_do_not_fit_together_are_corrupt(index, embedder, tmp_path, name, content):
    """Their checksums are right: FAULTS 10, a forged or buggy writer."""
    with (
        saved(image_of(index, **{name: content}), tmp_path) as snapshot,
        pytest.raises(SnapshotCorrupt, match="do not fit"),
    ):
        MemoryIndex.restore(snapshot, embedder.info, ENGLISH, IndexSettings(), epoch="second")


def test_vectors_of_half_a_file_outlive_restarts_and_those_of_removed_chunks_are_few(
    index, embedder, tmp_path, monkeypatch
):
    """Nobody pays twice for the former; of the latter there may be as many as there were edits."""
    monkeypatch.setattr(index_image, "_LEAST_REMOVED_BYTES", 3 * 16 * 4)
    long_file = parsed("long.md", [f"Part {number}." for number in range(9)])
    hashes = tuple(chunk.content_hash for chunk in long_file.chunks[:6])
    index.keep(hashes, embedder.embed_documents([text_of(each) for each in long_file.chunks[:6]]))
    edits = [parsed("b.md", [f"Edit {number}."], mtime_ns=number) for number in range(20)]
    for edit in edits:
        put(index, embedder, edit)

    again = restored(restored(index, embedder, tmp_path), embedder, tmp_path)

    assert again.plan(long_file).missing == long_file.chunks[6:]
    missing = [bool(again.plan(edit).missing) for edit in edits]
    assert missing == [True] * 16 + [False] * 4  # three removed ones, and what is there


def test_a_row_that_two_chunks_claim_is_corrupt(index, embedder, tmp_path):
    twice = new_index(embedder)
    put(twice, embedder, parsed("a.md", ["One."]))
    put(twice, embedder, parsed("b.md", ["Two."]))
    one, two = (
        contents_of(alone(embedder, path, text))[1]["files"]
        for path, text in (("a.md", "One."), ("b.md", "Two."))
    )
    assert contents_of(twice)[1]["files"] != one + two
    with (
        saved(image_of(twice, files=one + two), tmp_path) as snapshot,
        pytest.raises(SnapshotCorrupt, match="number of files or rows"),
    ):
        MemoryIndex.restore(snapshot, embedder.info, ENGLISH, IndexSettings(), epoch="second")


def alone(embedder, path, text) -> MemoryIndex:
    index = new_index(embedder)
    put(index, embedder, parsed(path, [text]))
    return index


def test_a_mass_removal_gives_its_memory_back_at_the_next_start(embedder, tmp_path, monkeypatch):
    monkeypatch.setattr("memory.index_image._SPARSE_ROWS", 0)
    index = new_index(embedder)
    put(index, embedder, parsed("many.md", [f"Filler {number}." for number in range(90)]))
    put(index, embedder, parsed("few.md", ["The fox.", "The hen."]))
    remove(index, "many.md")
    other = restored(index, embedder, tmp_path)

    assert dump(other) == dump(index)
    assert [hit.start_line for hit in other.search(Query("hen", 5), None).hits] == [4]
    assert other._state.vectors.rows() == [0, 1]
    assert dump(restored(other, embedder, tmp_path)) == dump(index)
