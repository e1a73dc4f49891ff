"""Which questions small workspaces answer."""

import dataclasses

import pytest

from memory.evaluation.known_items import known_items
from tests.unit.building import chunk, parsed


def asked(files, kind, limit=100):
    return {question.text: question for question in known_items(files, limit=limit)[kind]}


def titled(path, *headlines):
    chunks = tuple(chunk(f"body {number}", headlines=h) for number, h in enumerate(headlines))
    return dataclasses.replace(parsed(path), chunks=chunks)


def test_a_link_asks_for_its_target_without_the_files_that_link():
    files = [
        parsed("a.md", ["see [how we ship](b.md)"]),
        parsed("b.md", ["text"]),
        parsed("c.md", ["also [[b|How we ship]]"]),
    ]

    questions = asked(files, "link")

    assert list(questions) == ["How we ship"]
    assert questions["How we ship"].grades == {("b.md", ""): 1.0}
    assert questions["How we ship"].exclude == {"a.md", "c.md"}


def test_a_target_that_links_on_with_the_same_words_is_not_left_out():
    files = [parsed("a.md", ["[the plan](b.md)"]), parsed("b.md", ["[the plan](b.md)"])]

    assert asked(files, "link")["the plan"].exclude == {"a.md"}


def test_words_that_lead_to_two_files_are_no_question():
    files = [
        parsed("a.md", ["[here](b.md) and [here](c.md)"]),
        parsed("b.md", ["x"]),
        parsed("c.md", ["y"]),
    ]

    assert asked(files, "link") == {}


@pytest.mark.parametrize(
    "text",
    ["b_c.md", "b c", "B-C", "sub/b_c", "https://example.org/x", "www.example.org", "!!!", "x.txt"],
)
def test_a_name_or_an_address_is_no_question(text):
    files = [parsed("a.md", [f"[{text}](sub/b_c.md)"]), parsed("sub/b_c.md", ["x"])]

    assert asked(files, "link") == {}


def test_a_heading_that_occurs_once_asks_for_its_file():
    files = [
        titled("a.md", "# Big Title", "# Big Title > ## Getting *started*", "## One"),
        titled(
            "b.md",
            "# B > ## Same words",
            "# B > ### Deep down > there",
            "### \u53cc\u8bed\u8bf4\u660e",
        ),
        titled("c.md", "## same words"),
    ]

    questions = asked(files, "heading")

    assert {text: set(question.relevant_paths) for text, question in questions.items()} == {
        "Getting started": {"a.md"},
        "Deep down > there": {"b.md"},
        "\u53cc\u8bed\u8bf4\u660e": {"b.md"},
    }


def test_later_parts_of_a_long_section_do_not_repeat_its_heading():
    first = chunk("one", headlines="## Long section")
    second = dataclasses.replace(chunk("two", headlines="## Long section"), part=2)
    file = dataclasses.replace(parsed("a.md"), chunks=(first, second))

    assert list(asked([file], "heading")) == ["Long section"]


def test_a_description_asks_for_its_file_else_the_title_does():
    files = [
        parsed("a.md", description="All about our releases", title="Some other title"),
        parsed("b.md", description="too short", title="A much longer title"),
        parsed("c.md", title="Short one"),
        parsed("d.md", description="Said of two files"),
        parsed("e.md", description="said of two files"),
    ]

    questions = asked(files, "front matter")

    assert {text: set(question.relevant_paths) for text, question in questions.items()} == {
        "All about our releases": {"a.md"},
        "A much longer title": {"b.md"},
    }


def test_blank_and_odd_files_give_no_questions():
    files = [parsed("blank.md"), parsed("odd.md", ["\x00 [[ ](( [x](", "[[|]] [](a.md)"])]

    assert known_items(files, limit=5) == {"link": (), "heading": (), "front matter": ()}


def test_a_sample_is_the_same_for_the_same_files_and_hardly_changes_with_one():
    files = [titled(f"{number}.md", f"## Heading number {number}") for number in range(50)]

    sample = asked(files, "heading", limit=10)
    again = asked(reversed(files), "heading", limit=10)
    grown = asked([*files, titled("new.md", "## Another new heading")], "heading", limit=10)

    assert len(sample) == 10
    assert list(again) == list(sample) == sorted(sample)
    assert len(grown.keys() & sample.keys()) >= 9
