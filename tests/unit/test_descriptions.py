import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memory.descriptions import first_paragraph, plain_text, summary_of
from memory.outline import blocks

MARKUP = st.lists(
    st.sampled_from(
        ["a", " ", "\n", "*", "_", "`", "[", "]", "(", ")", "<", ">", "!", "#", "|", "é"]
    ),
    max_size=40,
).map("".join)


def summary(text):
    return summary_of(blocks(text), text.split("\n"))


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("plain", "plain"),
        ("*a* **b** _c_ ~~d~~ `e`", "a b c d e"),
        ("in**side**word", "insideword"),
        ("[text](http://x.y 'title') <http://z.z>", "text http://z.z"),
        ("![alt](a.png) text", "alt text"),
        ("[[alice]] and [[people/bob|Bob]]", "alice and Bob"),
        ("![[embedded.png]] text", "text"),
        ("a<br>b <b>bold</b>", "a b bold"),
        ("two\nlines  \nthree", "two lines three"),
        ("a &amp; b \\* c", "a & b * c"),
        ("# Heading\n\ntext", "Heading text"),
        ("- [ ] task\n- [x] done", "task done"),
        ("see [x] here", "see [x] here"),
        ("> quote", "quote"),
        ("```py\ncode\n```", "code"),
        ("| a | b |\n| - | - |\n| c | d |", "a b c d"),
        ("note[^1] text", "note text"),
        ("<div>\n<!-- hidden\n-->a &lt; b</div>", "a < b"),
        ("a \t\u00a0 b", "a b"),
        ("", ""),
        ("***", ""),
    ],
)
def test_markup_is_stripped_and_blanks_collapse(markdown, expected):
    assert plain_text(markdown) == expected


def test_a_long_text_ends_in_an_ellipsis_inside_the_limit():
    assert plain_text("x" * 200) == "x" * 200
    assert plain_text("x" * 201) == "x" * 199 + "…"
    assert plain_text("ab cd", limit=4) == "ab…"


@given(MARKUP)
def test_plain_text_is_one_short_line(markdown):
    text = plain_text(markdown, limit=20)

    assert len(text) <= 20
    assert text == " ".join(text.split())


@pytest.mark.parametrize(
    "source", ["[" * 9000, "**a " * 3000, "![[" * 3000, "<a " * 3000, "<!--" * 3000, "`a``" * 3000]
)
def test_hostile_markup_is_bounded(source):
    start = time.process_time()

    plain_text(source)

    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "not_prose",
    [
        "- list",
        "> quote",
        "| a |\n| - |",
        "***",
        "    code",
        "```\ncode\n```",
        "<p>html</p>",
        "![alt](a.png) ![b](c.png)",
        "[![badge](a.png)](http://x.y)",
        "![[embedded]]",
        "[ref]: http://x.y",
        "[^1]: a foot note",
        "## heading",
        "setext\n---",
        "",
    ],
)
def test_the_first_paragraph_is_prose(not_prose):
    assert first_paragraph(
        blocks(f"{not_prose}\n\nProse *with* markup\nin two lines.\n\nMore.")
    ) == ("Prose *with* markup\nin two lines.")


def test_a_text_without_prose_has_no_first_paragraph():
    assert first_paragraph(blocks("# H\n\n- item")) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# H\n\n- item\n\nThe *first*\nparagraph.", "The first paragraph."),
        ("# H\n\n- first item\n- second", "first item"),
        ("# H\n***\n![](a.png)\n> quote", "quote"),
        ("```python\nprint()\n```", "print()"),
        ("<div align=center>\n<b>Name</b>", "Name"),
        ("# Only *headings*\n## here", "Only headings"),
        ("", ""),
        ("***", ""),
    ],
)
def test_a_summary_is_the_first_paragraph_or_else_the_first_line(text, expected):
    assert summary(text) == expected


def test_a_cut_summary_keeps_characters_whole():
    family = "👨\u200d👩\u200d👧\u200d👦"

    text = summary(family * 40)

    assert len(text) <= 200
    assert set(regex.findall(r"\X", text)) == {family, "…"}
