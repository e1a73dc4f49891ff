"""Is every line of a file in a chunk, where it says it is?"""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory import front_matter
from tests.unit.markdown_files import (
    MARKDOWN,
    NARROW,
    ODD_FILES,
    WIDE,
    headings_of_the_oracle,
    parse,
    sections,
    text_below,
)

EOLS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.mark.parametrize("limits", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("text", ODD_FILES.values(), ids=ODD_FILES)
def test_no_line_of_an_odd_file_is_lost(text, limits):
    """FAULTS 46."""
    check_lines(text, limits)


@given(MARKDOWN, st.sampled_from([WIDE, NARROW]))
@example("---\ntitle: t\n---\n---\n---\n", WIDE)
@settings(max_examples=150, deadline=None)
def test_no_line_of_any_markdown_is_lost(text, limits):
    """FAULTS 46: it is in a chunk, in a trail of headings, or in the front matter."""
    check_lines(text, limits)


def check_lines(text, limits):
    _matter, first_line = front_matter.split(text)
    chunks = parse(text, limits=limits).chunks
    lines = text.split("\n")
    in_headings = {
        line: title
        for start, end, _level, title in headings_of_the_oracle(text_below(text, first_line))
        for line in range(first_line + start, first_line + end)
    }
    if first_line:
        assert lines[0].rstrip() == "---"
        assert lines[first_line - 1].rstrip() in {"---", "..."}
    for number, line in enumerate(lines[first_line:], first_line):
        here = [chunk for chunk in chunks if chunk.start_line <= number + 1 <= chunk.end_line]
        is_in_trail = number in in_headings and any(
            in_headings[number] in chunk.headlines for chunk in here
        )
        # A line that was cut between two parts is found word by word, a long word in pieces.
        assert is_in_trail or all(is_held(word, here) for word in line.split()), (number + 1, line)


def is_held(word, chunks):
    """Tells whether chunks hold a word, or at least a piece of one that no part has room for."""
    pieces = {piece for chunk in chunks for piece in chunk.content.split()}
    return any(word in piece or (len(word) > 100 and piece in word) for piece in pieces)


@given(MARKDOWN)
@settings(max_examples=150, deadline=None)
def test_a_section_is_the_lines_that_it_cites(text):
    """SPEC C3 and C8."""
    lines = text.split("\n")

    chunks = parse(text).chunks

    for chunk in chunks:
        cited = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert cited.endswith(chunk.content)
        assert chunk.content == "" or (
            chunk.content.split("\n")[0].strip() and chunk.content.split("\n")[-1].strip()
        )
    assert all(one.end_line < other.start_line for one, other in pairwise(chunks))


def test_a_body_is_kept_verbatim_between_its_blank_ends():
    assert sections("# A\n\n \n    code\n\n\n*text*  \n\n# B\n") == [
        ("# A", "    code\n\n\n*text*  "),
        ("# B", ""),
    ]


def test_lines_are_counted_in_the_file():
    """SPEC C8."""
    text = "---\ntitle: t\n---\n\nbefore\n\n# A\n\ntext\nmore\n\nB\nb\n---\n\n## C\nend\n"

    assert [(chunk.start_line, chunk.end_line) for chunk in parse(text).chunks] == [
        (5, 5),
        (7, 10),
        (12, 14),
        (16, 17),
    ]


@given(MARKDOWN, st.data())
@settings(max_examples=125, deadline=None)
def test_line_ends_and_byte_order_mark_do_not_matter(text, data):
    """FAULTS 41: eight files each, 1,000 in all."""
    expected = parse(text).chunks

    for file in (text, *with_other_line_ends(text, data)):
        for mark in ("", "\ufeff"):
            assert parse(mark + file).chunks == expected


def with_other_line_ends(text, data):
    first, *lines = text.split("\n")
    mixed = first
    for line in lines:
        end = data.draw(EOLS)
        # A lone CR followed by LF would be one line end.
        mixed += ("\r\n" if end == "\n" and mixed.endswith("\r") else end) + line
    return text.replace("\n", "\r\n"), text.replace("\n", "\r"), mixed
