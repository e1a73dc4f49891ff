"""Text from files stays inert wherever it is shown (FAULTS 84, 87)."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory.sanitizing import printable_block, sanitize_cell, sanitize_code, sanitize_path
from tests.unit import hostile_texts

FRAGMENTS = (
    *hostile_texts.FRAGMENTS,
    "||",
    "\\",
    "``",
    "```",
    "\n",
    "\r\n",
    "\n| `evil.md` | 100 | x |\n",
    "![x](http://evil.example/?q=1)",
    "--- | --- | ---",
    "\ufe0f\U000e0100",
    "e\u0301" * 3,
    "&#124; &#96; &lt;b&gt;",
    "$$\\begin{x}$$",
    "~~~\n",
)
FRAMES = ("{}", "a{}", "{}b", "wiki/{}.md", " {} ", "{0}{0}")
PAYLOADS = [frame.format(fragment) for fragment in FRAGMENTS for frame in FRAMES]
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn"}


def parsed_rows(path, description):
    """Returns the cells of the table's body as a CommonMark parser reads them."""
    markdown = (
        "| File | Score | Description |\n| - | - | - |\n"
        f"| `{sanitize_path(path)}` | 42 | {sanitize_cell(description)} |\n"
    )
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    assert {token.type for token in tokens if token.level == 0} == {"table_open", "table_close"}
    body = tokens[[token.type for token in tokens].index("tbody_open") :]
    cells = [token for token in body if token.type == "inline"]
    return sum(token.type == "tr_open" for token in body), cells


def check_row(path, description):
    num_rows, cells = parsed_rows(path, description)
    assert num_rows == 1
    assert len(cells) == 3
    (code,) = cells[0].children
    assert (code.type, code.content) == ("code_inline", sanitize_path(path).replace("\\|", "|"))
    assert cells[1].content == "42"
    live = {"link_open", "image", "html_inline", "code_inline"}
    assert not live & {token.type for token in cells[2].children or ()}


def test_there_are_at_least_200_payloads():
    assert len(set(PAYLOADS)) >= 200


def test_hostile_paths_and_descriptions_never_leave_their_row():
    """FAULTS 84."""
    for payload in PAYLOADS:
        check_row(payload, payload)


@settings(max_examples=50)
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_path_and_description_stay_in_their_row(path, description):
    check_row(path, description)


@settings(max_examples=50)
@given(st.text(alphabet="\\|`[](){}<>#!*_~&; \n-a", max_size=40))
def test_any_markup_stays_in_its_row(text):
    check_row(text, text)


@settings(max_examples=50)
@given(st.text(alphabet=st.characters(), max_size=60))
def test_no_control_format_or_unassigned_character_survives(text):
    joiners = {"\u200c", "\u200d"}
    for shown in (sanitize_cell(text), sanitize_path(text), printable_block(text)):
        categories = {unicodedata.category(c) for c in shown if c not in joiners | {"\n", "\t"}}
        assert not categories & (FORBIDDEN - {"Cn"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("  two\t\n words ", "two words"),
        ("a|b", "a\\|b"),
        ("a\\b", "a\\\\b"),
        ("use `rm`", "use 'rm'"),
        ("# Title", "\\# Title"),
        ("C# and F#", "C# and F#"),
        ("[a](b)", "[a] (b)"),
        ("a < b", "a \u2039 b"),
        ("cafe\u0301", "caf\u00e9"),
        ("\u1fef", "'"),  # Greek varia is canonically a backtick
        ("a\u2800b", "a b"),
        ("line\u2028two\u0085three", "line two three"),
        ("ig\U000e0069nore", "ignore"),
        ("\ud800x", "x"),
        ("", ""),
    ],
)
def test_cell_examples(text, expected):
    assert sanitize_cell(text) == expected


def test_joiners_survive_only_where_a_script_needs_them():
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    conjunct = "\u0915\u094d\u200d\u0937"
    family = "\U0001f469\u200d\U0001f467"

    assert sanitize_cell(f"{persian} {conjunct} {family}") == f"{persian} {conjunct} {family}"
    assert sanitize_cell("a\u200cb\u200dc") == "abc"
    assert sanitize_cell("\u0645\u200c\u200c\u062e") == "\u0645\u062e"


def test_a_long_cell_is_cut_on_a_grapheme():
    family = "\U0001f469\u200d\U0001f467"
    cell = sanitize_cell(family * 100)

    assert cell == family * 66 + "\u2026"  # 66 * 3 + 1 = 199 of 200
    assert len(sanitize_cell("x" * 500)) == 200


def test_a_cut_never_separates_an_escape_from_its_pipe():
    assert sanitize_cell("|" * 300) == "\\|" * 199 + "\u2026"


def test_a_path_of_nothing_visible_is_still_a_code_span():
    assert sanitize_path("\u200b\n") == "?"


def test_a_backslash_before_a_pipe_cannot_free_the_pipe():
    assert sanitize_code("a\\|b\\c") == "a\uff3c\\|b\\c"


def test_a_block_keeps_lines_and_tabs_and_loses_escapes():
    """FAULTS 87."""
    text = "one\r\ntwo\rthree\n\tfour \x1b[31mred\x1b[0m\x9b2J\u202e \u2028end"

    assert printable_block(text) == "one\ntwo\nthree\n\tfour [31mred[0m2J \nend"


@pytest.mark.parametrize("unit", ["a\u0301\u0316", "\u0301\u0316", "\\", "\u200d", "|`", "\x1b"])
def test_time_is_linear_in_the_length_of_hostile_text(unit):
    text = unit * 30_000

    started = time.perf_counter()
    sanitize_cell(text)
    sanitize_code(text)

    # A quadratic step would take half a minute.
    assert time.perf_counter() - started < 5
