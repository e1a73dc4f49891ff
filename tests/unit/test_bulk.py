"""Are many files added at once what they would be one by one?"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import bulk
from memory.analysis import Analyzer
from memory.bulk import FileBatch, build_batch
from memory.checks import dump
from memory.errors import DimensionMismatch, StaleUpdate
from memory.messages import ParsedFile, Query
from memory.text_index import TextIndex
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, contents_of, new_index, parsed, put, remove, text_of

if TYPE_CHECKING:
    from memory.index import MemoryIndex

CONTENTS = [f"{one} {two}." for one in ("Red", "Blue", "Green") for two in ("fox", "hen", "owl")]
FILES = st.dictionaries(
    st.sampled_from(["a.md", "b/c.md", "wiki/alice.md", "wiki/bob.md", "z.md"]),
    st.lists(st.sampled_from(CONTENTS), max_size=4),
    max_size=5,
).map(lambda files: [parsed(path, texts, title=path[:4]) for path, texts in files.items()])


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def index(embedder):
    return new_index(embedder)


def sent(index: MemoryIndex, embedder: HashEmbedder, files: list[ParsedFile]):
    """Returns hashes and vectors of all texts that the index does not know."""
    texts = {
        chunk.content_hash: text_of(chunk) for file in files for chunk in index.plan(file).missing
    }
    return tuple(texts), embedder.embed_documents(list(texts.values()))


def add(index: MemoryIndex, embedder: HashEmbedder, files: list[ParsedFile]):
    return index.add(build_batch(ENGLISH, files), *sent(index, embedder, files))


def state_of(index: MemoryIndex) -> tuple[object, ...]:
    info, contents = contents_of(index)
    return info.revision, contents["files"], contents["vectors"], contents["cache"]


def scored(index: MemoryIndex, query: str) -> list[tuple[str, int, float]]:
    vector = HashEmbedder().embed_query(query)
    hits = index.search(Query(query, 10), vector).hits
    return [(hit.path, hit.start_line, pytest.approx(hit.score, rel=1e-6)) for hit in hits]


@given(FILES, st.lists(st.sampled_from(CONTENTS), max_size=3), FILES)
@settings(deadline=None, max_examples=60)
def test_a_batch_is_what_its_files_are_one_by_one(before, removed, files):
    """Rows too: the journal tells of the files one by one."""
    embedder = HashEmbedder()
    known = {file.path for file in before} | {"gone.md"}
    files = [file for file in files if file.path not in known]
    one_by_one, at_once, replayed = (new_index(embedder) for _ in range(3))
    for index in (one_by_one, at_once, replayed):
        put(index, embedder, parsed("gone.md", removed))
        for file in before:
            put(index, embedder, file)
        remove(index, "gone.md")
    log: list[tuple[int, bytes]] = []
    at_once.log_to(lambda revision, change: log.append((revision, change)))

    for file in files:
        put(one_by_one, embedder, file)
    result = add(at_once, embedder, files)
    for revision, change in log:
        replayed.replay(change)
        assert replayed.revision == revision

    assert state_of(at_once) == state_of(one_by_one) == state_of(replayed)
    assert result.num_added == sum(len(file.chunks) for file in files)
    assert result.revision == one_by_one.revision
    for query in ("red fox", "alice", "owl"):
        assert scored(at_once, query) == scored(one_by_one, query)


def test_a_batch_travels_between_processes(index, embedder):
    files = [
        parsed("a.md", ["Red fox."]),
        parsed("blank.md"),
        parsed("b.md", ["Blue hen.", "Owl."]),
    ]
    batch = pickle.loads(pickle.dumps(build_batch(ENGLISH, files)))

    index.add(batch, *sent(index, embedder, files))

    assert [file.path for file in index.files()] == ["a.md", "b.md", "blank.md"]
    assert index.search(Query("hen", 3), None).hits[0].path == "b.md"


def test_a_large_batch_makes_several_segments(index, embedder, monkeypatch):
    monkeypatch.setattr(bulk, "MAX_SEGMENT_ROWS", 3)
    files = [parsed(f"{name}.md", [f"Text {name} {n}." for n in range(4)]) for name in "abcde"]
    batch = build_batch(ENGLISH, files)

    index.add(batch, *sent(index, embedder, files))

    assert [len(each.rows) for each in batch.segments(range(20))] == [3] * 6 + [2]
    assert dump(index) == dump(one_by_one(files))
    assert scored(index, "text c 2") == scored(one_by_one(files), "text c 2")


def one_by_one(files: list[ParsedFile]) -> MemoryIndex:
    index = new_index(HashEmbedder())
    for file in files:
        put(index, HashEmbedder(), file)
    return index


def test_only_blank_files_need_no_segment_and_no_vector(index, embedder):
    result = add(index, embedder, [parsed("a.md"), parsed("b.md")])

    assert (result.num_added, result.revision, index.dim) == (0, 2, 16)
    assert [file.path for file in index.files()] == ["a.md", "b.md"]


def test_an_empty_batch_changes_nothing(index, embedder):
    assert add(index, embedder, []).revision == 0


def test_the_dimension_is_learned_from_a_batch(embedder):
    index = new_index(HashEmbedder(0))
    add(index, embedder, [parsed("a.md", ["Red fox."])])

    assert index.dim == 16


def test_edits_of_added_files_go_on_as_usual(index, embedder):
    add(index, embedder, [parsed("a.md", ["Red fox.", "Blue hen."]), parsed("b.md", ["Owl."])])
    put(index, embedder, parsed("a.md", ["Red fox.", "Green hen."], mtime_ns=2))
    remove(index, "b.md")

    assert dump(index) == dump(one_by_one([parsed("a.md", ["Red fox.", "Green hen."])]))
    assert index.search(Query("blue owl", 3), None).hits == ()


@pytest.mark.parametrize(
    ("error", "changed"),
    [
        pytest.param(StaleUpdate, {"files": ["known.md"]}, id="a file that is known"),
        pytest.param(StaleUpdate, {"num_sent": 1}, id="a text without a vector"),
        pytest.param(DimensionMismatch, {"dim": 8}, id="another dimension"),
        pytest.param(ValueError, {"value": np.nan}, id="a value that is not finite"),
        pytest.param(ValueError, {"language": "german"}, id="another language"),
    ],
)
def test_a_batch_that_is_refused_changes_nothing(index, embedder, error, changed):
    put(index, embedder, parsed("known.md", ["Known."]))
    before = state_of(index)
    paths = ["new.md", *changed.get("files", ["other.md"])]
    files = [parsed(path, [f"Text of {path}."]) for path in paths]
    hashes = tuple(file.chunks[0].content_hash for file in files)[: changed.get("num_sent", 2)]
    vectors = np.eye(len(hashes), changed.get("dim", 16), dtype=np.float32)
    vectors[0, 1] = changed.get("value", 0.0)
    analyzer = Analyzer(changed.get("language", "english"))

    with pytest.raises(error):
        index.add(build_batch(analyzer, files), hashes, vectors)

    assert state_of(index) == before
    assert index.search(Query("text of new", 3), None).hits == ()


def test_a_failing_text_half_takes_no_row(index, embedder, monkeypatch):
    files = [parsed("a.md", ["Red fox."]), parsed("b.md", ["Owl."])]
    before = state_of(index)

    def fail(*_args, **_more):
        raise MemoryError

    monkeypatch.setattr(TextIndex, "add_segments", fail)
    with pytest.raises(MemoryError):
        add(index, embedder, files)
    monkeypatch.undo()

    assert (state_of(index)[:2], index.status().num_chunks) == (before[:2], 0)
    add(index, embedder, files)
    assert dump(index) == dump(one_by_one(files))
    assert state_of(index) == state_of(one_by_one(files))


def test_two_files_of_one_path_are_no_batch():
    with pytest.raises(ValueError, match="twice"):
        build_batch(ENGLISH, [parsed("a.md", ["One."]), parsed("a.md", ["Two."])])


def test_a_batch_without_files_has_no_text():
    assert build_batch(ENGLISH, []).text == FileBatch("english", (), {}).text
