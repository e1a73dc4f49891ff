"""Chunks of whole files: trails, sections, metadata (SPEC C1 to C9)."""

import pytest
from hypothesis import given, settings

from memory import front_matter
from memory.embedding_input import compose, estimate_tokens
from memory.hashing import content_hash
from memory.markdown import MAX_CONTEXT_CHARACTERS, MAX_HEADING_CHARACTERS
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


def test_a_trail_names_the_headings_above_and_the_section():
    text = "# Adam Smith\nWho.\n## Meetings\nAll.\n### Atlanta 2026-05-12\nTalk.\n## Notes\nN."

    assert sections(text) == [
        ("# Adam Smith", "Who."),
        ("# Adam Smith > ## Meetings", "All."),
        ("# Adam Smith > ## Meetings > ### Atlanta 2026-05-12", "Talk."),
        ("# Adam Smith > ## Notes", "N."),
    ]


def test_levels_may_be_skipped_and_a_new_heading_ends_all_below_it():
    text = "### C\n1\n# A\n2\n### D\n3\n### G\n3\n## B\n4\n### E\n5\n# F\n6"

    assert sections(text) == [
        ("### C", "1"),
        ("# A", "2"),
        ("# A > ### D", "3"),
        ("# A > ### G", "3"),
        ("# A > ## B", "4"),
        ("# A > ## B > ### E", "5"),
        ("# F", "6"),
    ]


@pytest.mark.parametrize(
    "inside",
    [
        "#### Four\ntext",
        "###### Six ######",
        "#tag",
        "\\# A",
        "text\n    # A",
        "```\n# A\n```",
        "~~~~\n# A\n~~~\n# A\n~~~~~",
        "```\n# A\n\n## never closed",
        "- # A\n- ## B",
        "> # A\n> text",
        "<div>\n# A\n</div>",
        "<!--\n\n# A\n\n## B\n-->",
        "text\n\n---\ntext",
    ],
)
def test_what_is_no_heading_stays_in_its_section(inside):
    """FAULTS 45."""
    assert sections(f"# T\n{inside}") == [("# T", inside)]


@pytest.mark.parametrize(
    ("heading", "trail"),
    [
        ("   ### A", "### A"),
        ("## A ##", "## A"),
        ("#\tA   B", "# A B"),
        ("#", "#"),
        ("A\n=", "# A"),
        ("A\nB\n---", "## A B"),
        ("# *A* [b](c) `d`", "# *A* [b](c) `d`"),
    ],
)
def test_a_heading_ends_the_section_before_it(heading, trail):
    assert sections(f"text\n\n{heading}\nbody")[1:] == [(trail, "body")]


@pytest.mark.parametrize("text", ODD_FILES.values(), ids=ODD_FILES)
def test_headings_of_odd_files_are_those_of_a_plain_parser(text):
    """FAULTS 45."""
    check_headings(text)


@given(MARKDOWN)
@settings(max_examples=150, deadline=None)
def test_headings_of_any_markdown_are_those_of_a_plain_parser(text):
    """FAULTS 45."""
    check_headings(text)


def check_headings(text):
    _matter, first_line = front_matter.split(text)
    expected = [
        (first_line + 1 + start, f"{'#' * level} {title}".rstrip())
        for start, _end, level, title in headings_of_the_oracle(text_below(text, first_line))
    ]

    chunks = parse(text).chunks

    found = [(chunk.start_line, chunk.headlines) for chunk in chunks]
    if found and (not expected or found[0][0] < expected[0][0]):
        assert found.pop(0)[1] == "# notes"
    assert [line for line, _trail in found] == [line for line, _title in expected]
    for (_line, trail), (_same, title) in zip(found, expected, strict=True):
        assert trail.endswith(title) or title.startswith(trail.removesuffix("…"))


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("# A\n\nFirst.\n\nSecond.\n\n## B\n\nThird.", "First."),
        ("Before.\n\n# A\n\nFirst.", "First."),
        ("Before.\n\n## B\n\nSection.\n\n# A\n\nFirst.", "First."),
        ("# A\n\n## B\n\nIn a section.", "In a section."),
        ("Before.\n\n# A\n\n- only\n- lists", "Before."),
        ("## B\n\nNo h1.", "No h1."),
        (
            "# A\n- list\n\n> quote\n\n![i](j)\n\n[r]: s\n\n    code\n\nProse\nin two.",
            "Prose\nin two.",
        ),
        ("---\ndescription: Said *so*.\n---\n# A\n- list", "Said so."),
        ("---\ndescription: Said so.\n---\n# A\nProse.", "Prose."),
        ("---\ndescription: Said so.\n---\n- list", "Said so."),
        ("# A\n- list", ""),
    ],
)
def test_the_context_is_the_first_plain_paragraph(text, context):
    """SPEC C4."""
    assert {chunk.context for chunk in parse(text).chunks} == {context}


def test_a_giant_first_paragraph_is_cut_in_the_context_but_not_in_the_content():
    paragraph = ("word " * 2000).rstrip()

    (chunk,) = parse(paragraph).chunks

    assert len(chunk.context) <= MAX_CONTEXT_CHARACTERS
    assert chunk.content == paragraph


def test_front_matter_is_metadata_and_no_content():
    """SPEC C5."""
    file = parse(
        "---\ntitle: The title\ndescription: The description\ntags: [one, two]\n"
        "created: 2026-05-12\n# no heading\n---\n# A\n\ntext"
    )

    assert (file.title, file.description) == ("The title", "The description")
    assert (file.tags, file.dates) == (("one", "two"), (("created", "2026-05-12"),))
    assert [(chunk.headlines, chunk.content) for chunk in file.chunks] == [("# A", "text")]


def test_a_file_is_described_by_its_first_paragraph():
    """SPEC A2."""
    file = parse("# Alice\n\n- born 1990\n\nShe *leads*\nresearch.\n\n## More")

    assert (file.summary, file.description) == ("She leads research.", "")


def test_text_before_the_first_heading_is_named_after_the_file():
    """FAULTS 46, SPEC C6."""
    chunks = parse("before\n\n# A\ntext", path="wiki/alice-smith.md").chunks

    assert [(chunk.headlines, chunk.content) for chunk in chunks] == [
        ("# alice-smith", "before"),
        ("# A", "text"),
    ]


@pytest.mark.parametrize("text", ["plain text", "#### four\n\ntext", "- a\n- # b", "```\n# x"])
def test_a_file_without_headings_is_one_chunk(text):
    """FAULTS 46."""
    assert sections(text) == [("# notes", text)]


def test_a_heading_without_body_stays_findable():
    (chunk,) = parse("\n# Alone\n\n").chunks

    assert (chunk.headlines, chunk.content) == ("# Alone", "")
    assert (chunk.start_line, chunk.end_line) == (2, 2)
    assert compose(chunk, WIDE) == "# Alone"


@pytest.mark.parametrize("text", ["", "\n", " \t\r\n\u00a0", "\ufeff"])
def test_a_blank_file_has_no_chunk_but_is_known(text):
    """FAULTS 41, SPEC C6."""
    file = parse(text)

    assert file.chunks == ()
    assert (file.path, file.size) == ("wiki/notes.md", len(text.encode()))


def test_a_file_of_front_matter_alone_stays_findable():
    (chunk,) = parse("---\ntitle: t\ndescription: A film.\n---\n\n", path="Blade Runner.md").chunks

    assert (chunk.headlines, chunk.context, chunk.content) == ("# Blade Runner", "A film.", "")
    assert (chunk.start_line, chunk.end_line) == (1, 4)


def test_equal_sections_share_the_hash_and_keep_their_places():
    """FAULTS 46 and 49."""
    first, second, third = parse("# A\nSame.\n# A\nSame.\n# A\nOther.").chunks

    assert first.content_hash == second.content_hash != third.content_hash
    assert [chunk.start_line for chunk in (first, second, third)] == [1, 3, 5]
    assert first.content_hash == content_hash("# A", "Same.", "Same.")


def test_the_hash_ignores_where_the_section_stands_and_how_the_file_is_called():
    """FAULTS 49, SPEC C8."""
    (moved,) = parse("\n\n\n# A\n\nText.\n", path="b.md").chunks
    (chunk,) = parse("# A\nText.", path="a.md").chunks

    assert moved.content_hash == chunk.content_hash


def test_text_that_moves_from_the_heading_to_the_body_changes_the_hash():
    """FAULTS 48."""
    (one,) = parse("# A b\n- c").chunks
    (other,) = parse("# A\n- b c").chunks

    assert one.content_hash != other.content_hash


def test_an_edited_paragraph_changes_one_hash():
    """SPEC D1."""
    before = parse("# A\nIntro.\n" + "".join(f"## S{n}\nText {n}.\n" for n in range(50)))
    after = parse("# A\nIntro.\n" + "".join(f"## S{n}\nText {n % 49}.\n" for n in range(50)))

    old, new = ({chunk.content_hash for chunk in file.chunks} for file in (before, after))
    assert len(new - old) == 1


def test_a_long_heading_is_cut_in_the_trail_and_kept_in_the_content():
    heading = "# " + "word " * 300 + "end"

    chunk, below = parse(f"{heading}\n\ntext\n## B\nx").chunks

    assert len(chunk.headlines) <= MAX_HEADING_CHARACTERS
    assert chunk.content == f"{heading}\n\ntext"
    assert below.headlines == f"{chunk.headlines} > ## B"


def test_a_long_heading_does_not_hide_what_it_says_from_the_model():
    """FAULTS 44: of a heading that takes more than its share, the content says all."""
    words = [f"w{number}" for number in range(40)]

    chunks = parse(f"# {' '.join(words)}\n\ntext", limits=NARROW).chunks

    inputs = [compose(chunk, NARROW) for chunk in chunks]
    assert all(any(word in text.split() for text in inputs) for word in [*words, "text"])
    assert all(estimate_tokens(text) + 2 <= 64 for text in inputs)
