import time

import pytest

from memory.front_matter import FrontMatter, split

KIB_16 = 16 * 1024


def read(block: str) -> FrontMatter:
    return split(f"---\n{block}\n---\nbody")[0]


def test_the_fields_are_read_and_the_body_begins_after_the_fence():
    text = "---\ntitle: A  title\ndescription: Does *this*\ntags: [a, '#b', a]\n---\n# H"

    matter, line = split(text)

    assert matter == FrontMatter(title="A title", description="Does this", tags=("a", "b"))
    assert text.split("\n")[line] == "# H"


def test_dots_close_the_front_matter_as_well():
    assert split("--- \ntitle: x\n...\nbody") == (FrontMatter(title="x"), 3)


def test_empty_and_commented_front_matter_is_front_matter():
    assert split("---\n---\nbody") == (FrontMatter(), 2)
    assert split("---\n# title: off\n---\nbody") == (FrontMatter(), 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "---\ntitle: never closed\n",
        "\n---\ntitle: not at the first byte\n---\n",
        " ---\ntitle: x\n---\n",
        "----\ntitle: x\n---\n",
        "---\nJust some prose after a rule.\n---\n",
        "---\n- a list\n- of items\n---\n",
        "---\n{ broken\n---\n",
    ],
)
def test_a_rule_is_not_front_matter(text):
    # FAULTS 47: what is not understood stays in the body, where it is found.
    assert split(text) == (FrontMatter(), 0)


def test_more_than_sixteen_kib_is_body():
    # FAULTS 47
    assert split("---\ntitle: " + "x" * KIB_16 + "\n---\n") == (FrontMatter(), 0)
    assert split("---\ntitle: " + "é" * (KIB_16 // 2) + "\n---\n") == (FrontMatter(), 0)


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("one", ("one",)),
        ("one two", ("one", "two")),
        ("machine learning, ai", ("machine learning", "ai")),
        ('"#one #two"', ("one", "two")),
        ("[one, 2, null, '']", ("one", "2")),
        ("\n  - one\n  - two", ("one", "two")),
        ("[#one, two]", ("one", "two")),
        ("{a: b}", ()),
        ("[[one], two]", ("two",)),
    ],
)
def test_tags_are_a_list_or_a_string(value, tags):
    assert read(f"tags: {value}").tags == tags


def test_dates_are_kept_as_written_and_sorted_by_key():
    matter = read("updated: 2024-01-02 03:04\nDate: 2024-01-01\ncreated: [x]\nother: 2020-01-01")

    assert matter.dates == (("date", "2024-01-01"), ("updated", "2024-01-02 03:04"))


@pytest.mark.parametrize("value", ["null", "~", "", "[a, b]", "{a: b}"])
def test_what_is_not_a_string_is_no_description(value):
    assert read(f"title: t\ndescription: {value}") == FrontMatter(title="t")


@pytest.mark.parametrize(
    ("block", "description"),
    [
        ("description: Learn: more\ntitle: t", "Learn: more"),
        ("description: 'quoted'\ntitle: t\n\tx", "quoted"),
        ("description: a: b: c\ntitle: t", "a: b: c"),
        ("description: |\n  two\n  lines\ntitle: t", "two lines"),
        ("description: !!python/object/apply:os.system [x]\ntitle: t", ""),
        ("description: 12\ntitle: t", "12"),
        ("description: '" + "word " * 100 + "'\ntitle: t", ("word " * 40)[:-1] + "…"),
    ],
)
def test_a_description_that_yaml_dislikes_does_not_spoil_the_rest(block, description):
    matter = read(block)

    assert matter.title == "t"
    assert matter.description == description


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{this}: &{this} [{','.join([f'*{before}'] * 9)}]\n"
    for before, this in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "bomb in tags": BOMB + "tags: *i",
    "bomb as description": BOMB + "description: *i",
    "deep flow list": "a: " + "[" * 8000,
    "closed deep flow list": "a: " + "[" * 8000 + "]" * 8000,
    "deep flow map": "{a: " * 4000,
    "deep block map": "\n".join(" " * depth + "a:" for depth in range(170)),
    "dashes": "- " * 8000,
    "question marks": "? " * 8000,
    "flow keys": "{" + ",".join(f"k{i}: v" for i in range(1700)) + "}",
    "keys": "\n".join(f"k{i}: v" for i in range(1500)),
    "anchors": "\n".join(f"k{i}: &a{i} x" for i in range(1000)),
    "digits": "a: " + "9" * 5000,
    "tab": "a:\tb\n\tc: d",
    "open quote": 'a: "' + "x" * 16000,
    "blanks before a colon": "a" + " " * 16000,
    "unhashable key": "[a]: b",
    "self reference": "a: &a [*a]",
    "unknown alias": "a: *nowhere",
    "surrogate": 'title: "\\ud800"',
    "merge": "a: &a {b: c}\nd:\n  <<: *a",
    "control characters": "title: a\x01b\nx: \x85",
    "object": "a: !!python/object/new:os.system [x]",
}


@pytest.mark.parametrize("block", HOSTILE.values(), ids=HOSTILE)
def test_hostile_front_matter_costs_no_time(block):
    # FAULTS 47
    start = time.process_time()
    matter, _line = split(f"---\n{block}\n---\nbody")
    elapsed_s = time.process_time() - start

    assert isinstance(matter.title, str)
    assert len(matter.tags) <= 1
    assert elapsed_s < 1
