"""Does a file of any bytes and any size become chunks in time?"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.embedding_input import TokenLimits, estimate_tokens
from tests.unit.markdown_files import NARROW, WIDE, parse


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
