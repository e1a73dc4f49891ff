"""Does an answer show the right hits, and a fair share of each file?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import DimensionMismatch
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import FileUpdate, Query
from memory.providers.base import ModelInfo
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, new_index, parsed, put

NOWHERE = np.eye(1, 3, 2, dtype=np.float32)[0]
"""A direction that no chunk of ``directed`` has."""


def directed(
    *files: tuple[str, dict[str, float]], settings: IndexSettings | None = None, floor: float = 0.3
) -> MemoryIndex:
    """Returns an index in three dimensions: each section with its cosine to the first axis."""
    info = ModelInfo("fake", "axes", 3, 512, noise=0.2, similarity_floor=floor)
    index = MemoryIndex(info, ENGLISH, settings or IndexSettings(), epoch="e")
    for path, sections in files:
        file = parsed(path, list(sections))
        vectors = np.array(
            [[cosine, math.sqrt(1 - cosine**2), 0] for cosine in sections.values()], np.float32
        )
        hashes = tuple(chunk.content_hash for chunk in file.chunks)
        index.apply(FileUpdate(path, file, hashes, vectors))
    return index


FIRST_AXIS = np.array([1, 0, 0], np.float32)


def test_a_hit_carries_what_a_reader_needs():
    """SPEC S6."""
    index = directed(("wiki/a.md", {"The quick brown fox.": 0.6}))
    result = index.search(Query("fox", 5), FIRST_AXIS)

    (hit,) = result.hits
    assert (hit.path, hit.headlines, hit.start_line, hit.end_line) == ("wiki/a.md", "# Notes", 1, 2)
    assert (hit.mtime_ns, hit.size) == (1, 20)
    assert hit.snippet == "The quick brown fox."
    assert hit.vector_score == pytest.approx(0.6)
    assert 0 < hit.text_score <= 1
    assert 0 < hit.score <= 1
    assert (result.epoch, result.revision, result.degraded) == ("e", 1, "")


def test_both_sides_find_and_the_best_comes_first():
    index = directed(
        ("words.md", {"About the fox.": 0.1}),
        ("meaning.md", {"A reddish animal.": 0.9}),
        ("neither.md", {"Tax returns.": 0.1}),
        ("both.md", {"The fox, again.": 0.9}),
    )
    hits = index.search(Query("fox", 5), FIRST_AXIS).hits

    assert hits[0].path == "both.md"
    assert {hit.path for hit in hits[1:]} == {"words.md", "meaning.md"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_without_a_vector_words_answer_alone_and_the_answer_says_so():
    """SPEC S8, FAULTS 82."""
    index = directed(("fox.md", {"About the fox.": 0.1}), ("b.md", {"A reddish animal.": 0.9}))
    result = index.search(Query("fox", 5), None, degraded="provider is down")

    assert [hit.path for hit in result.hits] == ["fox.md"]
    assert result.hits[0].vector_score == 0
    assert result.hits[0].score > 0.55
    assert result.degraded == "provider is down"


def test_a_vector_side_that_is_switched_off_is_not_missed():
    index = directed(
        ("a.md", {"About the fox.": 0.1}),
        ("b.md", {"A reddish animal.": 0.9}),
        settings=IndexSettings(weights=Weights(1, 0)),
    )
    without, with_vector = (index.search(Query("fox", 5), each) for each in (None, FIRST_AXIS))

    assert without == with_vector
    assert [hit.path for hit in without.hits] == ["a.md"]
    assert without.degraded == ""


def test_a_text_side_that_is_switched_off_finds_nothing_by_words():
    index = directed(
        ("a.md", {"About the fox.": 0.1}),
        ("b.md", {"A reddish animal.": 0.9}),
        settings=IndexSettings(weights=Weights(0, 1)),
    )

    assert [hit.path for hit in index.search(Query("fox", 5), FIRST_AXIS).hits] == ["b.md"]


@pytest.mark.parametrize(("configured", "of_model"), [(0.5, 0.3), (0.3, 0.5)])
def test_the_higher_floor_holds_for_hits_without_words(configured, of_model):
    """SPEC S4."""
    index = directed(
        ("a.md", {"One.": 0.49}),
        ("b.md", {"Two.": 0.51}),
        ("c.md", {"Fox.": 0.1}),
        settings=IndexSettings(min_similarity=configured),
        floor=of_model,
    )

    hits = index.search(Query("fox", 5), FIRST_AXIS).hits
    assert {hit.path for hit in hits} == {"b.md", "c.md"}


def test_a_word_hit_reports_its_cosine_though_it_was_no_candidate_of_the_vector_side():
    """300 nearer rows push the word hit out of the vector candidates."""
    near = {f"Filler {number}.": 0.9 for number in range(300)}
    index = directed(("near.md", near), ("far.md", {"The fox.": 0.25}))

    hits = index.search(Query("fox", 2), FIRST_AXIS).hits
    assert {hit.path: round(hit.vector_score, 5) for hit in hits}["far.md"] == 0.25


def test_a_file_shows_three_hits_at_most():
    """SPEC S7."""
    index = directed(
        ("long.md", {f"Fox {number}.": 0.9 for number in range(20)}),
        ("short.md", {"A fox in passing.": 0.4}),
    )
    hits = index.search(Query("fox", 5), FIRST_AXIS).hits

    assert [hit.path for hit in hits] == ["long.md"] * 3 + ["short.md"]


def test_the_limit_counts_files_not_hits():
    files = [(f"{name}.md", {f"Fox {name}{n}.": 0.9 for n in range(5)}) for name in "abcde"]
    hits = directed(*files).search(Query("fox", 4), FIRST_AXIS).hits

    assert len({hit.path for hit in hits}) == 4
    assert len(hits) == 12


@pytest.mark.parametrize("vector", [None, FIRST_AXIS], ids=["words", "hybrid"])
def test_one_huge_file_does_not_hide_the_others(vector):
    """SPEC S7: its 1,000 sections fill the first round of candidates of both sides."""
    index = directed(
        ("huge.md", {f"Fox fox fox {number}.": 0.95 for number in range(1000)}),
        ("small.md", {"A sentence in which a fox is mentioned among many other things.": 0.5}),
    )
    hits = index.search(Query("fox", 2), vector).hits

    assert {hit.path for hit in hits} == {"huge.md", "small.md"}


def test_ties_are_ordered_by_path_and_position():
    index = directed(*((f"{name}.md", {"Fox one.": 0.9, "Fox two.": 0.9}) for name in "cab"))
    hits = index.search(Query("fox", 5), FIRST_AXIS).hits

    assert [(hit.path, hit.start_line) for hit in hits] == [
        (f"{name}.md", line) for name in "abc" for line in (1, 4)
    ]


@settings(max_examples=15)
@given(
    st.dictionaries(
        st.sampled_from([f"{name}.md" for name in "abcdefgh"]),
        st.lists(st.sampled_from([0.2, 0.52, 0.55, 0.6, 0.9]), min_size=1, max_size=12),
        min_size=1,
    ),
    st.integers(1, 5),
)
def test_the_order_is_that_of_all_hits_sorted_then_grouped(cosines, limit):
    """SPEC S7, however many candidates are looked at before."""
    files = [
        (path, {f"{path} {number}.": cosine for number, cosine in enumerate(sections)})
        for path, sections in cosines.items()
    ]
    index = directed(*files, settings=IndexSettings(min_similarity=0.5, weights=Weights(0, 1)))

    shown: dict[str, int] = {}
    expected = []
    for cosine, path, number in sorted(
        (-cosine, path, number)
        for path, sections in cosines.items()
        for number, cosine in enumerate(sections)
        if cosine > 0.5
    ):
        if shown.get(path, 0) < 3 and (path in shown or len(shown) < limit):
            shown[path] = shown.get(path, 0) + 1
            expected.append((path, f"{path} {number}.", -cosine))

    hits = index.search(Query("any", limit), FIRST_AXIS).hits
    assert [(hit.path, hit.snippet, round(hit.vector_score, 5)) for hit in hits] == expected


def test_a_text_side_that_is_switched_off_is_not_searched(monkeypatch):
    index = directed(
        ("a.md", {f"{'A reddish animal. ' * 30} fox": 0.9}),
        settings=IndexSettings(weights=Weights(0, 1)),
    )
    monkeypatch.setattr("memory.text_index.TextIndex.search", None)

    (hit,) = index.search(Query("foxes", 5), FIRST_AXIS).hits
    assert hit.snippet.endswith("fox")


def test_a_content_hash_finds_its_chunks_exactly():
    """SPEC S1."""
    embedder = HashEmbedder()
    index = new_index(embedder)
    put(index, embedder, parsed("a.md", ["One.", "Two.", "One."]))
    put(index, embedder, parsed("b.md", ["Two."]))
    wanted = index.chunks("b.md")[1][0].content_hash

    result = index.search(Query(f"what is `{wanted.upper()}`?", 5), None)
    assert [(hit.path, hit.score, hit.start_line) for hit in result.hits] == [
        ("a.md", 1.0, 4),
        ("b.md", 1.0, 1),
    ]


@pytest.mark.parametrize("text", ["0" * 64, "a" * 63, "a" * 65, "a" * 640])
def test_a_hash_that_nobody_has_finds_nothing(text):
    index = directed(("a.md", {"Fox.": 0.9}))

    assert index.search(Query(text, 5), None).hits == ()


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0\u3000"])
def test_a_blank_query_has_no_hits(text):
    index = directed(("a.md", {"Fox.": 0.9}))

    assert index.search(Query(text, 5), FIRST_AXIS).hits == ()


def test_an_empty_index_has_no_hits():
    result = new_index(HashEmbedder()).search(Query("fox", 5), np.ones(16, np.float32))

    assert result.hits == ()


@pytest.mark.parametrize(
    "text", ["?", "*", '"', "(((", "a AND", "\0", "\ud800", "fox~2^9", "\U0001f98a", "the of and"]
)
def test_no_text_is_a_query_language(text):
    """SPEC S2, FAULTS 81."""
    index = directed(("a.md", {"Fox.": 0.9}))

    assert index.search(Query(text, 5), FIRST_AXIS).hits[0].path == "a.md"


def test_the_norm_of_the_query_vector_does_not_matter():
    index = directed(("a.md", {"Fox.": 0.9}), ("b.md", {"Hen.": 0.5}))

    found = index.search(Query("fox", 5), FIRST_AXIS * 7).hits
    assert found == index.search(Query("fox", 5), FIRST_AXIS).hits


@pytest.mark.parametrize("bad", [[0, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0]])
def test_a_query_vector_without_direction_is_refused(bad):
    index = directed(("a.md", {"Fox.": 0.9}))

    with pytest.raises(ValueError, match="zero or not finite"):
        index.search(Query("fox", 5), np.array(bad, np.float32))


def test_a_query_vector_of_another_dimension_is_refused():
    index = directed(("a.md", {"Fox.": 0.9}))

    with pytest.raises(DimensionMismatch):
        index.search(Query("fox", 5), np.ones(5, np.float32))


def test_a_prompt_about_something_else_scores_low():
    """SPEC S5: one common word and a cosine just above noise."""
    index = directed(
        ("a.md", {"The fox runs through the quiet winter forest.": 0.32}),
        ("b.md", {"Quarterly figures of the forest company.": 0.31}),
    )
    result = index.search(
        Query("which database driver handles connection pooling in the forest cluster", 5),
        FIRST_AXIS,
    )

    assert result.hits
    assert max(hit.score for hit in result.hits) < 0.4


LONG = " ".join(f"word{number}" for number in range(60))


def distinct_paths(index, *, limit=8, vector=FIRST_AXIS):
    hits = index.search(Query("fox", limit, wants_distinct_files=True), vector).hits
    return list(dict.fromkeys(hit.path for hit in hits))


@pytest.mark.parametrize("vector", [None, FIRST_AXIS], ids=["words", "hybrid"])
def test_near_copies_take_one_place_if_that_is_wanted(vector):
    copies = [(f"copy{n:02}.md", {f"fox fox {LONG} {n}": 0.9}) for n in range(12)]
    others = [(f"other{n}.md", {f"A fox with {n} tails.": 0.6}) for n in range(8)]
    index = directed(*copies, *others)

    paths = distinct_paths(index, vector=vector)
    plain = {hit.path for hit in index.search(Query("fox", 20), vector).hits}
    assert len(paths) == 8
    assert sum(path.startswith("copy") for path in paths) == 1
    assert len(plain) == 20


def test_a_file_is_not_saved_by_its_second_section():
    """Its best one says what the file above it says."""
    index = directed(
        ("a.md", {f"fox fox {LONG}": 0.9}),
        ("b.md", {f"fox fox {LONG} too": 0.88, "Another fox altogether.": 0.7}),
    )

    assert distinct_paths(index) == ["a.md"]


def test_a_file_that_repeats_only_a_lesser_hit_keeps_its_place():
    index = directed(
        ("a.md", {f"fox fox {LONG}": 0.9}),
        ("b.md", {"Fox fox.": 0.95, f"fox {LONG}": 0.5}),
    )

    assert sorted(distinct_paths(index)) == ["a.md", "b.md"]


def test_files_without_copies_are_found_as_ever():
    files = [(f"{n}.md", {f"Fox number {n}.": 0.5 + n / 50}) for n in range(20)]
    index = directed(*files)

    for wants in (False, True):
        hits = index.search(Query("fox", 5, wants_distinct_files=wants), FIRST_AXIS).hits
        assert [hit.path for hit in hits] == ["19.md", "18.md", "17.md", "16.md", "15.md"]


def test_more_equal_copies_than_candidates_do_not_hide_another_file():
    """The first round looks at 240 rows of each side, and all of them are copies."""
    copies = [(f"copy{n:03}.md", {f"fox fox {LONG}": 0.9}) for n in range(300)]
    index = directed(*copies, ("other.md", {"A fox is mentioned among other things.": 0.5}))

    assert distinct_paths(index) == ["copy000.md", "other.md"]


def test_files_that_a_content_hash_names_are_one_if_that_is_wanted():
    index = directed(("a.md", {"Fox.": 0.9}), ("b.md", {"Fox.": 0.9}))
    text = index.chunks("a.md")[1][0].content_hash

    hits = index.search(Query(text, 5, wants_distinct_files=True), None).hits
    assert [hit.path for hit in hits] == ["a.md"]


PARTS = ("Sort the letters of the office.", "Who saw the fox?")


def in_two_parts(**changes) -> Query:
    return Query(" ".join(PARTS), 5, parts=PARTS, **changes)


def test_each_part_of_a_long_query_has_words_and_a_vector_of_its_own():
    index = directed(
        ("fox.md", {"A fox.": 0.0}), ("near.md", {"Nothing like it.": 0.8}), ("far.md", {"No.": 0})
    )
    result = index.search(in_two_parts(), np.stack([FIRST_AXIS, NOWHERE]))

    assert {hit.path: hit.part for hit in result.hits} == {"fox.md": PARTS[1], "near.md": PARTS[0]}
    by_path = {hit.path: hit for hit in result.hits}
    alone = index.search(Query(PARTS[1], 5), NOWHERE).hits[0]
    assert by_path["fox.md"].text_score == alone.text_score
    assert by_path["near.md"].vector_score == pytest.approx(0.8)
    assert by_path["near.md"].text_score == 0


def test_a_hit_of_several_parts_is_shown_once_as_that_of_the_best():
    index = directed(("fox.md", {"Who saw the fox at the office?": 0.6}))

    (hit,) = index.search(in_two_parts(), np.stack([FIRST_AXIS, FIRST_AXIS])).hits

    assert hit.part == PARTS[1]


def test_a_snippet_shows_the_words_of_the_part_that_it_answers():
    filler = "Nothing was said about it for a very long time. " * 20
    index = directed(("a.md", {f"The office. {filler} He saw a fox. {filler}": 0.0}))

    (hit,) = index.search(in_two_parts(), None).hits

    assert hit.part == PARTS[1]
    assert "saw a fox" in hit.snippet


def test_words_answer_the_parts_of_a_long_query_alone_if_there_are_no_vectors():
    index = directed(("fox.md", {"A fox.": 0.5}))
    result = index.search(in_two_parts(), None)

    assert [hit.path for hit in result.hits] == ["fox.md"]
    assert result.degraded == "no query embedding"


def test_a_short_query_has_no_part_and_keeps_the_threshold():
    index = directed(("fox.md", {"A fox.": 0.5}))

    assert index.search(Query("fox", 5), FIRST_AXIS).hits[0].part == ""


def test_vectors_that_are_not_one_a_part_are_refused():
    index = directed(("fox.md", {"A fox.": 0.5}))

    with pytest.raises(ValueError, match="1 vectors for 2 parts"):
        index.search(in_two_parts(), FIRST_AXIS)


def test_orama_takes_no_parts():
    index = directed(("fox.md", {"A fox.": 0.5}), settings=IndexSettings(scoring="orama"))

    with pytest.raises(ValueError, match="as it is"):
        index.search(in_two_parts(), np.stack([FIRST_AXIS, FIRST_AXIS]))
