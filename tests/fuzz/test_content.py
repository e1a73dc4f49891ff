"""Can any text of a file break what is made of it?

``benchmarks/chaos/fuzzing.py`` hammers the properties of this folder for longer, and lets the code
that is reached choose the bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from memory import front_matter, splitting
from memory.embedding_input import TokenLimits, estimate_tokens, join
from memory.globs import Globs
from memory.markdown import decode
from memory.sanitizing import printable_block, sanitize_cell, sanitize_code, sanitize_line
from tests.unit.hostile_texts import FRAGMENTS
from tests.unit.markdown_files import MARKDOWN, PIECES, parse

LIMITS = TokenLimits(48, estimate_tokens)
ANY_TEXT = st.text(st.characters(), max_size=200)
TEXTS = ANY_TEXT | MARKDOWN | st.lists(st.sampled_from([*PIECES, *FRAGMENTS])).map("\n".join)
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})


@given(TEXTS)
@settings(max_examples=60)
def test_every_chunk_stands_in_the_file_at_the_lines_it_cites(text):
    data = text.encode("utf-8", "replace")
    lines = decode(data)[0].split("\n")
    file = parse(data, limits=LIMITS)

    for chunk in file.chunks:
        cited = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert chunk.content in cited
        assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
    starts = [chunk.start_line for chunk in file.chunks]
    assert starts == sorted(starts)


@given(TEXTS)
@settings(max_examples=60)
def test_no_letter_of_a_file_is_lost(text):
    """What is in no chunk is in a heading, which is a trail, or in the front matter."""
    data = text.encode("utf-8", "replace")
    decoded = decode(data)[0]
    num_lines = front_matter.split(decoded)[1]
    file = parse(data, limits=LIMITS)

    held = "\n".join(f"{chunk.headlines}\n{chunk.content}" for chunk in file.chunks)
    body = "\n".join(decoded.split("\n")[num_lines:])
    assert Counter(filter(str.isalnum, body)) <= Counter(filter(str.isalnum, held))


@given(TEXTS, st.integers(32, 200))
@settings(max_examples=60)
def test_parts_fit_and_leave_out_nothing_but_blanks(text, most):
    content = text.strip("\n")
    limits = TokenLimits(most, estimate_tokens)
    parts = splitting.split(content, "# A", limits)

    end = 0
    for first, last in parts:
        assert not content[end:first].strip()
        assert limits.fits(join("# A", content[first:last])) or last - first <= 1
        end = max(end, last)
    assert not content[end:].strip()


@given(TEXTS | st.text(alphabet="[]{}:,-?*&!|>'\"# \n\tab1~%@", max_size=200))
@settings(max_examples=60)
def test_front_matter_is_a_few_strings_whatever_it_holds(block):
    block = block.encode("utf-8", "replace").decode()
    found, first_line = front_matter.split(f"---\n{block}\n---\nbody")

    assert 0 <= first_line <= block.count("\n") + 3
    assert len(found.description) <= 200
    assert all(type(text) is str for text in (found.title, *found.tags))


def unescaped(cell):
    return re.sub(r"\\([\\|&#])", r"\1", cell)


@given(TEXTS, st.integers(1, 250))
@settings(max_examples=80)
def test_what_is_shown_is_one_row_without_anything_that_acts_and_stays_as_it_is(text, limit):
    path = sanitize_code(text, limit, in_table=False)
    block = printable_block(text)

    assert sanitize_code(path, limit, in_table=False) == path
    assert printable_block(block) == block
    for shown in (sanitize_cell(text, limit), sanitize_line(text, limit), path):
        assert len(shown.splitlines()) <= 1
        assert not {unicodedata.category(c) for c in shown if c not in "\u200c\u200d"} & UNSEEN
    cell = sanitize_cell(text, limit)
    assert sanitize_cell(unescaped(cell), limit) == cell
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", cell)


def matches(pattern, path):
    """Returns whether a path matches: column by column of the table of all prefixes."""
    reached = [True] + [False] * len(path)
    for piece in pattern:
        if piece == "*":
            reached = [any(reached[: end + 1]) for end in range(len(path) + 1)]
        else:
            pairs = zip(path, reached, strict=False)
            reached = [False] + [before and piece == c for c, before in pairs]
    return reached[-1]


NARROW = st.text("ab*/.", max_size=12)


@given(NARROW | ANY_TEXT, NARROW | ANY_TEXT)
@settings(max_examples=150)
def test_a_glob_matches_what_an_independent_matcher_says(pattern, path):
    pattern, path = (unicodedata.normalize("NFC", text) for text in (pattern, path))

    assert Globs([pattern]).matches(path) == matches(pattern, path)
