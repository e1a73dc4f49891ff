"""Does a snippet show the words that were found, within its limit, on whole words?"""

from collections import Counter

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.analysis import LANGUAGES, Analyzer
from memory.snippets import Snippets

ANALYZER = Analyzer("english")
ANALYZERS = {language: Analyzer(language) for language in sorted(LANGUAGES)}
FILLER = "lorem ipsum dolor sit amet " * 40


def shown(content, query, **options):
    return Snippets(set(ANALYZER.query_terms(query)), ANALYZER, **options).of(content)


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


def snippet_by_full_analysis(content, terms, analyzer, limit):
    """Returns the snippet as the definition has it, every word analysed."""
    text = " ".join(content.split())
    if len(text) <= limit:
        return text
    spans = ((start, end, terms.intersection(found)) for start, end, found in analyzer.spans(text))
    matches = [each for each in spans if each[2]]
    start, end, best_count, first = 0, 0, 0, 0
    inside = Counter()
    for match_start, match_end, found in matches:
        inside.update(found)
        while matches[first][0] < match_start and match_end - matches[first][0] > limit:
            inside.subtract(matches[first][2])
            first += 1
        count = sum(occurrences > 0 for occurrences in inside.values())
        if count > best_count:
            start, best_count = matches[first][0], count
            end = min(match_end, start + limit)
    start = min(max(0, start - (limit - (end - start)) // 2), len(text) - limit)
    end = start + limit
    if start and (space := text.find(" ", start - 1, start + 30)) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", max(0, end - 30), end + 1)) > start:
        end = space
    return text[start:end].strip()


ENDINGS = [
    *("", "s", "e", "es", "ed", "ing", "y", "ies", "ied", "ying", "ation", "ational", "ized"),
    *("ability", "able", "ence", "ences", "emment", "amment", "euse", "aux", "al", "iveness"),
    *("heden", "heid", "en", "er", "ene", "logia", "encia", "ucion", "enza", "ului", "nak"),
]
STEMS = st.text("abdeilmnoprstuy", min_size=1, max_size=6)
WORDS = st.tuples(STEMS, st.sampled_from(ENDINGS)).map("".join)
DECORATIONS = st.sampled_from(
    [
        "{}",
        "{}",
        "{}",
        "({}),",
        "{}.",
        "**{}**",
        "x-{}",
        "{}-x",
        "{}'s",
        "get_{}",
        "{}2",
        "v2.6{}",
        "\u201c{}\u201d",
        "{}\u2019s",
    ]
)
WRITTEN = st.tuples(DECORATIONS, WORDS, st.sampled_from([str, str, str.title, str.upper]))


@pytest.mark.parametrize(
    "language", ["dutch", "english", "french", "german", "irish", "russian", "spanish", "swedish"]
)
@settings(max_examples=40)
@given(st.lists(WRITTEN, min_size=1, max_size=40), st.data(), st.integers(1, 90))
def test_the_words_that_are_not_analysed_change_no_snippet(language, written, data, limit):
    analyzer = ANALYZERS[language]
    words = [decoration.format(case(word)) for decoration, word, case in written]
    wanted = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=4))
    terms = frozenset(term for word in wanted for term in analyzer.tokens(word))
    # Both ways to write a compound have its terms.
    content = "\n".join([*words, *(f"{word[:2]}-{word[2:]}" for word in wanted)])

    piece = Snippets(terms, analyzer, limit).of(content)

    assert piece == snippet_by_full_analysis(content, terms, analyzer, limit)


@given(st.text(st.characters(max_codepoint=126)), st.text(max_size=20), st.integers(1, 40))
def test_any_ascii_text_has_the_snippet_of_its_full_analysis(content, query, limit):
    terms = frozenset(ANALYZER.tokens(f"{query} {content[:10]}"))

    piece = Snippets(terms, ANALYZER, limit).of(content)

    assert piece == snippet_by_full_analysis(content, terms, ANALYZER, limit)


@pytest.mark.parametrize(
    ("language", "query", "shown_words"),
    [
        ("english", "e-mail", "sent an Email to"),
        ("english", "email", "sent an e-mail to"),
        ("english", "die", "was dying then"),
        ("english", "hope", "still hoping for"),
        ("english", "happiness", "a happy end"),
        ("english", "code", "call getCode2 here"),
        ("english", "cafe", "in the Caf\u00e9\u2019s garden"),
        ("german", "Haus", "die Haeuser dort"),
        ("irish", "bean", "an bhean seo"),
        (
            "russian",
            "\u043a\u043d\u0438\u0433\u0430",
            "\u0434\u0432\u0435 \u043a\u043d\u0438\u0433\u0438",
        ),
    ],
)
def test_every_spelling_of_a_word_is_shown(language, query, shown_words):
    analyzer = ANALYZERS[language]
    terms = analyzer.query_terms(query)

    piece = Snippets(terms, analyzer, 40).of(f"{FILLER}{shown_words} {FILLER}")

    assert shown_words.split()[1] in piece
