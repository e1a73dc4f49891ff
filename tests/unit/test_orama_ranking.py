"""Does the memory rank as Orama does when its configuration asks for it?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from memory.config import MemorySettings
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import FileUpdate, Query
from memory.providers.base import ModelInfo
from tests.unit.building import ENGLISH, parsed

ORAMA = IndexSettings(scoring="orama")
FIRST_AXIS = np.array([1, 0, 0], np.float32)
MODEL = ModelInfo("fake", "axes", 3, 512, noise=0.2, similarity_floor=0.6)


def put(index: MemoryIndex, path: str, sections: dict[str, float]) -> None:
    """Gives each section its cosine to the first axis."""
    file = parsed(path, list(sections))
    vectors = np.array(
        [[cosine, math.sqrt(1 - cosine**2), 0] for cosine in sections.values()], np.float32
    )
    index.apply(FileUpdate(path, file, tuple(c.content_hash for c in file.chunks), vectors))


def orama(*files: tuple[str, dict[str, float]], settings: IndexSettings = ORAMA) -> MemoryIndex:
    index = MemoryIndex(MODEL, ENGLISH, settings, epoch="e")
    for path, sections in files:
        put(index, path, sections)
    return index


def scores(index: MemoryIndex, text: str, vector: np.ndarray | None = FIRST_AXIS) -> dict:
    return {hit.path: hit.score for hit in index.search(Query(text, 10), vector).hits}


def test_each_side_is_divided_by_its_maximum():
    index = orama(("a.md", {"A fox.": 0.0}), ("b.md", {"An owl.": 0.8}), ("c.md", {"A cat.": 0.4}))

    assert scores(index, "fox") == pytest.approx({"a.md": 0.5, "b.md": 0.5, "c.md": 0.25})


def test_a_hit_shows_its_sides():
    index = orama(("a.md", {"A fox.": 0.7}), ("b.md", {"An owl.": 0.8}))
    first, second = index.search(Query("fox", 10), FIRST_AXIS).hits

    assert (first.path, second.path) == ("a.md", "b.md")
    assert (first.text_score, second.text_score) == (1, 0)
    assert (first.vector_score, second.vector_score) == pytest.approx((0.7, 0.8))
    assert first.snippet == "A fox."


def test_the_floor_is_the_configured_one_whatever_the_model_asks_for():
    sections = {"a.md": 0.31, "b.md": 0.29}
    index = orama(*((path, {path: cosine}) for path, cosine in sections.items()))

    assert scores(index, "zzzz") == {"a.md": 0.5}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (Weights(text=3, vector=1), {"a.md": 0.75, "b.md": 0.25}),
        # As in Orama, a zero makes both even.
        (Weights(text=0, vector=1), {"a.md": 0.5, "b.md": 0.5}),
    ],
)
def test_weights_are_scaled_so_that_no_score_is_above_1(weights, expected):
    settings = IndexSettings(scoring="orama", weights=weights)
    index = orama(("a.md", {"A fox.": 0.0}), ("b.md", {"An owl.": 0.8}), settings=settings)

    assert scores(index, "fox") == pytest.approx(expected)


def test_without_a_vector_the_best_hit_scores_1():
    index = orama(("a.md", {"Fox fur.": 0.9}), ("b.md", {"A fox met a goose.": 0.9}))
    alone = scores(index, "fox", None)

    assert list(alone) == ["a.md", "b.md"]
    assert alone["a.md"] == 1
    assert 0 < alone["b.md"] < 1


def test_a_beginning_of_a_word_finds_it():
    index = orama(("a.md", {"Kubernetes": 0.0}), ("b.md", {"An owl.": 0.0}))

    assert list(scores(index, "kube")) == ["a.md"]


def test_equal_chunks_come_by_path():
    index = orama(*((path, {"A fox.": 0.5}) for path in ("c.md", "a.md", "b.md")))

    assert list(scores(index, "fox")) == ["a.md", "b.md", "c.md"]


def test_a_long_file_shows_three_hits():
    """SPEC S7."""
    index = orama(("a.md", {f"Fox {n}.": 0.9 for n in range(9)}), ("b.md", {"A lazy fox.": 0.4}))

    paths = [hit.path for hit in index.search(Query("fox", 2), FIRST_AXIS).hits]
    assert sorted(paths) == ["a.md", "a.md", "a.md", "b.md"]


def test_a_change_is_found_by_the_next_search():
    index = orama(("a.md", {"A fox.": 0.0}))

    assert list(scores(index, "owl")) == []
    put(index, "a.md", {"An owl.": 0.0})
    assert list(scores(index, "owl")) == ["a.md"]
    assert list(scores(index, "fox")) == []


@pytest.mark.parametrize("vector", [FIRST_AXIS, None])
def test_an_empty_index_has_no_answer(vector):
    assert scores(orama(), "fox", vector) == {}


def test_the_configuration_chooses():
    memory = MemorySettings.model_validate({"scoring": "orama"})

    assert IndexSettings.of(memory).scoring == "orama"
    assert IndexSettings.of(MemorySettings()).scoring == "absolute"
