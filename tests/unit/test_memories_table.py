"""What a table holds of what is relevant."""

import pytest

from memory.config import MemorySettings, Settings
from memory.evaluation.asking import Asked, answer_measures, ranking
from memory.evaluation.memories_table import MemoriesTable, TableFigures
from memory.evaluation.question import Question
from memory.messages import Hit
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put


def settings(*, floor=0.0, limit=8):
    memory = MemorySettings(min_score_to_mention=floor, max_system_prompt_memory_results=limit)
    return Settings(memory=memory)


@pytest.fixture(scope="module")
def index():
    """Three files about apples, the first most of all, and one about something else."""
    embedder = HashEmbedder()
    index = new_index(embedder)
    put(index, embedder, parsed("a.md", ["apple apple apple"]))
    put(index, embedder, parsed("b.md", ["apple among several other words of a longer text"]))
    put(
        index, embedder, parsed("c.md", ["apple among very many other words of one more long text"])
    )
    put(index, embedder, parsed("d.md", ["granite"]))
    return index


def asking(*relevant, exclude=()):
    grades = {(path, ""): 1.0 for path in relevant}
    return Asked(Question("apple", grades, frozenset(exclude)), None)


def hit(path, headlines="# A"):
    return Hit(path, headlines, 1, 2, 0.5, 0.5, 0.5, "", 1, 1)


def test_rows_are_counted_with_what_is_right_of_them(index):
    table = MemoriesTable(index, settings())

    assert table.figures(asking("a.md", "d.md")) == TableFigures(3, 0.5, 0.5, pytest.approx(1 / 3))


def test_a_floor_costs_recall(index):
    table = MemoriesTable(index, settings(floor=1.0))

    assert table.figures(asking("a.md")) == TableFigures(0, 0.0, 1.0, None)


def test_an_excluded_file_makes_room_for_the_next(index):
    table = MemoriesTable(index, settings(limit=1))

    assert table.figures(asking("b.md")).recall == 0
    assert table.figures(asking("b.md", exclude=["a.md"])) == TableFigures(1, 1.0, 1.0, 1.0)


def test_only_a_prompt_that_something_answers_has_rows(index):
    table = MemoriesTable(index, settings())

    assert table.has_rows("apple", None)
    assert not table.has_rows("submarine", None)


def test_answers_are_measured_without_excluded_files(index):
    assert answer_measures(index, asking("b.md"))["MRR"] == 0.5
    assert answer_measures(index, asking("b.md", exclude=["a.md"]))["MRR"] == 1.0


def test_files_are_ranked_by_their_best_hit_and_sections_by_their_title():
    hits = [hit("a.md", "# A > ## One"), hit("a.md", "# A > ## Two"), hit("b.md", "# B")]
    by_file = Question("q", {("a.md", ""): 1.0})
    by_section = Question("q", {("a.md", "Two"): 1.0}, frozenset({"b.md"}))

    assert ranking(hits, by_file) == [("a.md", ""), ("b.md", "")]
    assert ranking(hits, by_section) == [("a.md", "One"), ("a.md", "Two")]
