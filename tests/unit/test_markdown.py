"""Chunks of whole files (SPEC C1 to C9)."""

import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory import front_matter
from memory.embedding_input import TokenLimits, compose, estimate_tokens
from memory.hashing import content_hash
from memory.markdown import MAX_CONTEXT_CHARACTERS, MAX_HEADING_CHARACTERS, parse_file
from memory.workspace import SourceFile

WIDE = TokenLimits(1_000_000, estimate_tokens)
NARROW = TokenLimits(64, estimate_tokens)

ODD_FILES = {
    "blank": " \n\t\n\n",
    "only a heading": "# A",
    "only empty headings": "#\n##\n###",
    "headings without bodies": "# A\n## B\n### C\n# D\n",
    "deep headings": "#### four\n##### five\n###### six\ntext",
    "closing hashes": "## A ##\ntext\n# B #c\ntext\n# C \\#\ntext",
    "no blank after hashes": "#tag\n#another\ntext",
    "setext": "A\n===\ntext\nB\nover lines\n---\ntext",
    "rule, not setext": "A\n\n---\nB\n\n***\n___\n",
    "indented": "   # A\ntext\n    # code\n\n    # code",
    "fences": "```\n# code\n~~~\n# code\n```\n~~~~ x\n# code\n~~~\n~~~~~\n# A\n",
    "unclosed fence": "# A\n```py\n# code\n\n## code\n",
    "nested fence": "````md\n```\n# code\n```\n````\n# A\n",
    "fence in a list": "- item\n  ```\n  # code\n  ```\n# A\n",
    "html": "<div>\n# html\n</div>\n\n# A\n<!--\n# hidden\n\n# hidden\n-->\n# B\n",
    "unclosed comment": "# A\n<!-- begins\n\n# hidden\n## hidden",
    "lists and quotes": "- # in list\n> # in quote\n\n1. ## in list\n\n   text\n\n# A\nx",
    "front matter": "---\ntitle: t\n# comment\n---\n# A\ntext",
    "broken front matter": "---\ntitle: a: b\n\tx\n---\ntext",
    "a rule on top": "---\n\ntext\n\n---\n\nmore",
    "unclosed front matter": "---\ntitle: t\n# A\ntext",
    "references": "[a]: http://x.y\n# A\n[b]: z\n\n[^1]: note",
    "table": "| a |\n| - |\n| # b |\n# A\n| c |\n| - |\nrow\n---\n",
    "same headings": "# A\nx\n# A\nx\n## B\nx\n## B\ny\n",
    "skipped levels": "### C\nx\n# A\ny\n### D\nz\n",
    "blanks of other kinds": "# A\n\u00a0\n\u2003text\u2003\n\x0c\n## B\x0b\n\u2028\nx",
    "control characters": "# A\x1b\n\x01\x7f\n## B\n\x85\nx",
    "surrogates in disguise": "# \ufffd\n\ufffd\n",
    "a long heading": "# " + "word " * 400 + "\ntext\n## B\ntext",
    "a long setext heading": "word word\n" * 300 + "---\ntext",
    "a long line": "# A\n" + "x" * 3000 + "\n## B",
    "deep list": "\n".join("  " * depth + "- # x" for depth in range(8)) + "\n\n# A\n",
    "trailing blanks": "# A   \n\n\n   code?   \n\ntext  \n\n\n# B\n\n\n",
}
PIECES = [
    *("", "", " ", "\t", "text", "more *text*", "text  ", "# A", "## B", "### C", "#### D"),
    *("#", "##", "## B ##", "   # A", "    # A", "\t# A", "#no", "===", "---", "***", "- # A"),
    *("> # A", "> text", "- item", "  more", "1. one", "```", "~~~", "````", "```py", "  ```"),
    *("<div>", "</div>", "<!--", "-->", "<pre>", "</pre>", "| a |", "| - |", "[a]: b", "\\# A"),
    *("title: t", "tags: [a]", "...", "\u00a0", "\u2028", "\x0c", "é", "e\u0301 # A", "A\\"),
]
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=14).map("\n".join)
# By default the parser gives up below ten lists in each other.
ORACLE = MarkdownIt("commonmark", {"maxNesting": 1000}).enable("table")


def parse(text, *, path="wiki/notes.md", limits=WIDE):
    data = text if isinstance(text, bytes) else text.encode()
    return parse_file(SourceFile(path, path, 1, len(data), 7, data), limits=limits)


def sections(text):
    return [(chunk.headlines, chunk.content) for chunk in parse(text).chunks]


def squeezed(text):
    return " ".join(text.split())


def headings_of_the_oracle(body):
    """Returns (first line, line after, level, text) of h1 to h3 outside of containers."""
    tokens = ORACLE.parse(body)
    return [
        (*token.map, int(token.tag[1]), squeezed(tokens[index + 1].content))
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and not token.level and token.tag in {"h1", "h2", "h3"}
    ]


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


def text_below(text, first_line):
    return "\n".join(text.split("\n")[first_line:])


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


EOLS = st.sampled_from(["\n", "\r\n", "\r"])


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


@pytest.mark.parametrize(
    ("data", "content", "num_replaced"),
    [
        (b"caf\xe9 au lait", "caf\ufffd au lait", 1),
        (b"\xff\xfe-N\x87e", "\ufffd\ufffd-N\ufffde", 3),
        (b"cut \xe4\xb8", "cut \ufffd", 1),
        (b"surrogate \xed\xa0\x80", "surrogate \ufffd\ufffd\ufffd", 3),
        (b"overlong \xc0\xaf", "overlong \ufffd\ufffd", 2),
        ("not replaced: \ufffd".encode(), "not replaced: \ufffd", 0),
        ("\ufeffmark".encode(), "mark", 0),
    ],
    ids=["latin-1", "utf-16", "cut", "surrogate", "overlong", "replacement", "mark"],
)
def test_invalid_bytes_are_replaced_and_counted(data, content, num_replaced):
    """FAULTS 42: counts by hand; one for each maximal part that could begin a character."""
    file = parse(data)

    assert [chunk.content for chunk in file.chunks] == [content]
    assert file.num_replaced_bytes == num_replaced


@given(st.binary(max_size=60), st.sampled_from([WIDE, NARROW]))
@settings(max_examples=150, deadline=None)
def test_no_bytes_make_the_parser_fail(data, limits):
    """FAULTS 42."""
    file = parse(data, limits=limits)

    assert all(chunk.headlines for chunk in file.chunks)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["word ", "x", "中", "[", "*a ", "<"])
def test_a_single_line_of_10_mb_takes_seconds_at_most(unit):
    """FAULTS 43."""
    data = (unit * (10 * 1024 * 1024 // len(unit.encode()))).encode()

    start = time.process_time()
    chunks = parse(data, limits=TokenLimits(1024, estimate_tokens)).chunks

    assert time.process_time() - start < 10
    assert chunks[-1].num_parts == len(chunks) > 1000


@pytest.mark.parametrize(
    "unit",
    [
        *("> ", "- ", "1. ", "- a\n", "#", "# a\n", "```\n", "<!--", "<div>\n", "[a]: b\n"),
        *("|a", "\t", "| a |\n| - |\n", "[a](b)\n\n", "![a](b)\n\n", "a\n===\n", "\\"),
        *("&amp;", "![[a]]", "\n\n"),
    ],
)
def test_hostile_files_take_linear_time(unit):
    """FAULTS 43: a quadratic step would take minutes."""
    data = (unit * (50_000 // len(unit))).encode()

    start = time.process_time()
    parse(data, limits=TokenLimits(1024, estimate_tokens))

    assert time.process_time() - start < 10
