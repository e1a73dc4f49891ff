"""Does the index hold exactly what the files say, at the least cost in embeddings?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.checks import dump
from memory.errors import DimensionMismatch, StaleUpdate
from memory.index_settings import IndexSettings
from memory.messages import FileUpdate, Query
from memory.text_index import TextIndex
from tests.doubles import HashEmbedder
from tests.unit.building import chunk, new_index, parsed, put, remove, text_of

SECTIONS = [f"Section {number} about topic{number}." for number in range(50)]


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def index(embedder):
    return new_index(embedder)


def fresh(embedder, *files):
    index = new_index(HashEmbedder(embedder.info.dim))
    for file in files:
        put(index, embedder, file)
    return index


def test_one_edited_section_costs_one_embedding(index, embedder):
    """SPEC D1."""
    put(index, embedder, parsed("a.md", SECTIONS))
    edited = [*SECTIONS[:20], "Something else.", *SECTIONS[21:]]
    embedder.texts.clear()

    result = put(index, embedder, parsed("a.md", edited, mtime_ns=2))

    assert [text.split("\n")[-1] for text in embedder.texts] == ["Something else."]
    assert (result.num_added, result.num_removed, result.num_kept) == (1, 1, 49)
    assert dump(index) == dump(fresh(embedder, parsed("a.md", edited, mtime_ns=2)))


def test_a_new_section_in_front_moves_lines_but_embeds_and_rewrites_nothing_else(
    index, embedder, monkeypatch
):
    put(index, embedder, parsed("a.md", SECTIONS))
    calls, real = [], TextIndex.apply

    def recording(self, *, add, remove):
        calls.append((add, remove))
        real(self, add=add, remove=remove)

    monkeypatch.setattr(TextIndex, "apply", recording)
    put(index, embedder, parsed("a.md", ["First.", *SECTIONS], mtime_ns=2))

    ((added, removed),) = calls
    assert [row.content for row in added] == ["First."]
    assert list(removed) == []
    _summary, chunks = index.chunks("a.md")
    assert [each.start_line for each in chunks[:3]] == [1, 4, 7]


def test_touching_a_file_changes_its_metadata_alone(index, embedder, monkeypatch):
    """SPEC D1: no embedding, no posting."""
    put(index, embedder, parsed("a.md", SECTIONS))
    before = dump(index)
    monkeypatch.setattr(TextIndex, "apply", lambda *_args, **_more: pytest.fail("rewritten"))
    result = put(index, embedder, parsed("a.md", SECTIONS, mtime_ns=99, first_line=5))

    assert embedder.num_calls == 2
    assert len(embedder.texts) == 50
    assert (result.num_added, result.num_removed, result.num_kept) == (0, 0, 50)
    assert index.chunks("a.md")[0].mtime_ns == 99
    assert dump(index) == before


def test_new_front_matter_is_found_without_an_embedding(index, embedder):
    """SPEC C5."""
    put(index, embedder, parsed("a.md", ["Body."], title="Oldword", tags=("x",)))
    put(index, embedder, parsed("a.md", ["Body."], title="Newword", description="d", tags=("x",)))

    assert len(embedder.texts) == 1
    assert index.search(Query("newword", 5), None).hits
    assert not index.search(Query("oldword", 5), None).hits


@pytest.mark.parametrize("move_first", [True, False], ids=["add, remove", "remove, add"])
def test_a_renamed_file_costs_no_embedding(index, embedder, move_first):
    """SPEC D3, FAULTS 28: whichever event comes first."""
    put(index, embedder, parsed("old.md", SECTIONS))
    embedder.texts.clear()
    if move_first:
        put(index, embedder, parsed("new.md", SECTIONS))
    remove(index, "old.md")
    put(index, embedder, parsed("new.md", SECTIONS))

    assert embedder.texts == []
    assert dump(index) == dump(fresh(embedder, parsed("new.md", SECTIONS)))


def test_an_undone_edit_costs_no_embedding(index, embedder):
    """SPEC D3."""
    put(index, embedder, parsed("a.md", ["One.", "Two."]))
    put(index, embedder, parsed("a.md", ["One.", "Other."]))
    embedder.texts.clear()
    put(index, embedder, parsed("a.md", ["One.", "Two."]))

    assert embedder.texts == []


def test_the_memory_of_removed_vectors_is_bounded(embedder):
    """64 bytes hold one vector of dimension 16."""
    index = new_index(embedder, IndexSettings(max_cached_bytes=64))
    put(index, embedder, parsed("a.md", ["One.", "Two."]))
    remove(index, "a.md")

    assert len(index.plan(parsed("a.md", ["One.", "Two."])).missing) == 1


def test_a_planned_vector_is_not_the_next_to_be_forgotten(embedder):
    """Else every plan of an undo could be stale by the time it is applied."""
    index = new_index(embedder, IndexSettings(max_cached_bytes=2 * 64))
    put(index, embedder, parsed("a.md", ["One."]))
    put(index, embedder, parsed("b.md", ["Two."]))
    put(index, embedder, parsed("c.md", ["Three."]))
    remove(index, "a.md")
    remove(index, "b.md")
    back = parsed("a.md", ["One."])
    assert index.plan(back).missing == ()
    remove(index, "c.md")

    assert index.apply(FileUpdate("a.md", back)).num_added == 1


def test_equal_sections_are_all_kept_and_embedded_once(index, embedder):
    """FAULTS 49, SPEC C9."""
    put(index, embedder, parsed("a.md", ["Same.", "Same.", "Other."]))
    put(index, embedder, parsed("b.md", ["Same."]))

    assert len(embedder.texts) == 2
    assert [(row.path, row.occurrence) for row in dump(index)] == [
        ("a.md", 0),
        ("a.md", 0),
        ("a.md", 1),
        ("b.md", 0),
    ]
    remove(index, "a.md")
    assert [row.path for row in dump(index)] == ["b.md"]
    assert index.search(Query("same", 5), embedder.embed_query("x")).hits[0].path == "b.md"


def test_plan_names_each_missing_text_once_in_file_order(index, embedder):
    put(index, embedder, parsed("a.md", ["Known."]))
    delta = index.plan(parsed("b.md", ["New.", "Known.", "Newer.", "New."]))

    assert [each.content for each in delta.missing] == ["New.", "Newer."]
    assert delta.num_reused == 1
    assert (delta.path, delta.epoch) == ("b.md", "first")


def test_applying_twice_changes_nothing(index, embedder):
    file = parsed("a.md", SECTIONS)
    first = put(index, embedder, file)
    vectors = embedder.embed_documents([text_of(each) for each in file.chunks])
    update = FileUpdate("a.md", file, tuple(each.content_hash for each in file.chunks), vectors)
    again = index.apply(update)

    assert (first.revision, again.revision) == (1, 1)
    assert (again.num_added, again.num_removed, again.num_kept) == (0, 0, 50)
    assert remove(index, "never there").revision == 1


def test_an_update_that_relies_on_a_forgotten_vector_is_stale(index, embedder):
    put(index, embedder, parsed("a.md", ["Old."]))
    before = dump(index)

    with pytest.raises(StaleUpdate) as caught:
        index.apply(FileUpdate("a.md", parsed("a.md", ["Old.", "Unknown."])))
    assert (caught.value.path, caught.value.epoch) == ("a.md", "first")
    assert dump(index) == before


def test_vectors_of_another_dimension_are_refused_whole(index, embedder):
    put(index, embedder, parsed("a.md", ["Old."]))
    before = dump(index)
    file = parsed("a.md", ["New."])
    hashes = (file.chunks[0].content_hash,)

    with pytest.raises(DimensionMismatch, match="dimension 16, found 3"):
        index.apply(FileUpdate("a.md", file, hashes, np.ones((1, 3), np.float32)))
    assert dump(index) == before


def test_an_update_cannot_name_two_paths(index):
    with pytest.raises(ValueError, match="names one path"):
        index.apply(FileUpdate("a.md", parsed("b.md")))


def test_a_failing_text_half_leaves_everything_as_it_was(index, embedder, monkeypatch):
    """SPEC D2: both halves always show one generation."""
    put(index, embedder, parsed("a.md", ["Old.", "Stays."]))
    before, revision = dump(index), index.status().revision

    def refuse(*_args, **_more):
        raise OSError("disk full")

    monkeypatch.setattr(TextIndex, "apply", refuse)
    with pytest.raises(OSError, match="disk full"):
        put(index, embedder, parsed("a.md", ["New.", "Stays."]))
    monkeypatch.undo()

    assert dump(index) == before
    assert index.status().revision == revision
    put(index, embedder, parsed("a.md", ["New.", "Stays."]))
    assert dump(index) == dump(fresh(embedder, parsed("a.md", ["New.", "Stays."])))


def test_the_dimension_is_learned_from_the_first_vectors(embedder):
    embedder.info = replace(embedder.info, dim=0)
    index = new_index(embedder)
    assert (index.dim, index.identity.dim) == (0, 0)
    put(index, embedder, parsed("blank.md"))
    assert index.search(Query("word", 5), None).hits == ()

    file = parsed("a.md", ["Word."])
    vectors = np.full((1, 9), 1 / 3, np.float32)
    index.apply(FileUpdate("a.md", file, (file.chunks[0].content_hash,), vectors))
    assert (index.dim, index.identity.dim, index.status().dim) == (9, 9, 9)
    assert [summary.path for summary in index.files()] == ["a.md", "blank.md"]


def test_a_blank_file_is_known(index, embedder):
    """SPEC C6."""
    put(index, embedder, parsed("blank.md"))

    assert index.chunks("blank.md")[0].num_chunks == 0
    assert index.chunks("blank.md")[1] == ()
    assert index.status().num_files == 1


def test_files_are_found_by_any_unicode_spelling(index, embedder):
    """SPEC W2."""
    put(index, embedder, parsed("caf\u00e9.md", ["Word."]))

    assert index.chunks("cafe\u0301.md")[0].path == "caf\u00e9.md"
    assert index.chunks("cafe\u0301.md")[1][0].content == "Word."
    assert index.chunks("cafe.md") is None
    assert index.chunks("cafe.md") is None


def test_status_counts(index, embedder):
    put(index, embedder, parsed("a.md", SECTIONS[:3]))
    put(index, embedder, parsed("b.md", SECTIONS[:2]))
    status = index.status()

    assert (status.num_files, status.num_chunks, status.revision) == (2, 5, 2)
    assert (status.epoch, status.dim) == ("first", 16)


def test_vectors_of_a_message_are_never_written(index, embedder):
    """They lie in memory that other processes read."""
    file = parsed("a.md", SECTIONS)
    vectors = embedder.embed_documents([text_of(each) for each in file.chunks])
    before = vectors.tobytes()
    vectors.flags.writeable = False
    index.apply(FileUpdate("a.md", file, tuple(each.content_hash for each in file.chunks), vectors))
    query = vectors[0]
    index.search(Query("topic1", 5), query)
    remove(index, "a.md")

    assert vectors.tobytes() == before


def test_a_text_that_was_sent_although_it_is_known_keeps_its_first_vector(index, embedder):
    put(index, embedder, parsed("a.md", ["Same."]))
    before = dump(index)[0].vector_sha256
    file = parsed("b.md", ["Same."])
    other = np.eye(1, 16, dtype=np.float32)
    index.apply(FileUpdate("b.md", file, (file.chunks[0].content_hash,), other))

    assert {row.vector_sha256 for row in dump(index)} == {before}


CONTENTS = [f"{one} {two}." for one in ("Red", "Blue", "Green") for two in ("fox", "hen", "owl")]
STEP = st.tuples(
    st.sampled_from(["a.md", "b/c.md", "wiki/alice.md"]),
    st.none() | st.lists(st.sampled_from(CONTENTS), max_size=5),
    st.sampled_from(["", "Title"]),
)


def scored(index, query: str, vector) -> dict[tuple[str, int], float]:
    hits = index.search(Query(query, 10), vector).hits
    return {(hit.path, hit.start_line): hit.score for hit in hits}


@given(st.lists(STEP, max_size=12))
@settings(deadline=None, max_examples=60)
def test_any_history_ends_in_the_index_a_fresh_build_gives(steps):
    """Invariant I1, and I5: no text is embedded twice."""
    embedder, files = HashEmbedder(), {}
    index = new_index(embedder)
    for number, (path, contents, title) in enumerate(steps):
        if contents is None:
            remove(index, path)
            files.pop(path, None)
        else:
            files[path] = parsed(path, contents, mtime_ns=number, title=title)
            put(index, embedder, files[path])
    assert len(embedder.texts) == len(set(embedder.texts))
    other = fresh(HashEmbedder(), *files.values())
    with pytest.MonkeyPatch.context() as patch:
        # Word statistics count removed rows until they are compacted away.
        patch.setattr("memory.merging._MAX_DELETED_SHARE", 0)
        index.text.compact()

    assert dump(index) == dump(other)
    assert index.files() == other.files()
    for query in ("red fox", "alice title", "owl"):
        vector = embedder.embed_query(query)
        assert scored(index, query, vector) == pytest.approx(scored(other, query, vector), rel=1e-5)
        assert scored(index, query, None) == pytest.approx(scored(other, query, None), rel=1e-5)


def test_dump_tells_every_difference_that_matters(embedder):
    base = parsed("a.md", ["One.", "Two."])
    first = replace(base.chunks[0], headlines="# Other")
    others = [
        parsed("b.md", ["One.", "Two."]),
        parsed("a.md", ["One.", "Two!"]),
        parsed("a.md", ["One."]),
        parsed("a.md", ["One.", "Two.", "Two."]),
        replace(base, chunks=(first, base.chunks[1])),
        replace(base, chunks=(chunk("One.", context="C."), base.chunks[1])),
    ]

    assert dump(fresh(embedder, base)) == dump(fresh(embedder, base))
    assert all(dump(fresh(embedder, other)) != dump(fresh(embedder, base)) for other in others)
