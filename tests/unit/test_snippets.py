"""Does a snippet show the words that were found, within its limit, on whole words?"""

import regex
from hypothesis import given
from hypothesis import strategies as st

from memory.analysis import Analyzer
from memory.snippets import snippet

ANALYZER = Analyzer("english")
FILLER = "lorem ipsum dolor sit amet " * 40


def shown(content, query, **options):
    return snippet(content, set(ANALYZER.query_terms(query)), ANALYZER, **options)


def test_a_short_text_is_shown_whole_on_one_line():
    assert shown("one\n\n  two\tthree\n", "two") == "one two three"


def test_the_snippet_surrounds_the_words_of_the_query():
    piece = shown(f"{FILLER}The budget meeting moved to Atlanta. {FILLER}", "meetings budget")

    assert "The budget meeting moved to Atlanta." in piece
    assert 250 < len(piece) <= 300
    assert piece.index("budget") in range(80, 220)


def test_the_place_with_the_most_different_words_wins():
    content = f"budget budget budget {FILLER} budget of the Atlanta office {FILLER}"

    assert "Atlanta office" in shown(content, "budget atlanta office", limit=100)


def test_a_text_without_the_words_is_shown_from_its_beginning():
    assert shown(FILLER, "absent", limit=20) == "lorem ipsum dolor"


def test_the_end_of_a_text_fills_the_snippet():
    piece = shown(f"{FILLER}budget", "budget", limit=60)

    assert piece.endswith("budget")
    assert len(piece) > 40


def test_words_are_not_cut():
    piece = shown(f"{FILLER} budget {FILLER}", "budget", limit=77)

    assert set(piece.split()) <= {"lorem", "ipsum", "dolor", "sit", "amet", "budget"}


def test_text_without_spaces_is_cut_to_the_limit():
    piece = shown("文字" * 300 + "数据库" + "文字" * 300, "数据库", limit=50)

    assert "数据库" in piece
    assert 40 < len(piece) <= 50


@given(st.text(), st.text(max_size=20), st.integers(1, 40))
def test_a_snippet_is_a_piece_of_the_text_within_the_limit(content, query, limit):
    piece = shown(content, query, limit=limit)

    assert len(piece) <= limit
    assert piece in " ".join(content.split())


@given(st.text(alphabet="ae\u0301\u0302👩\u200d👧🇩🇪 "), st.integers(20, 40))
def test_a_snippet_does_not_begin_or_end_inside_a_grapheme_cluster(content, limit):
    text = " ".join(content.split())
    borders = {match.end() for match in regex.finditer(r"\X", text)} | {0}

    piece = shown(content, "a", limit=limit)

    starts = [match.start() for match in regex.finditer(regex.escape(piece), text, overlapped=True)]
    assert any(start in borders and start + len(piece) in borders for start in starts)
