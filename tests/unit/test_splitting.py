"""Parts of sections that are too long for the model (SPEC C7)."""

import time
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.embedding_input import NUM_SPECIAL_TOKENS, TokenLimits, compose, estimate_tokens, join
from memory.markdown import parse_file
from memory.providers.factory import model_info, token_counter
from memory.providers.local import MINILM
from memory.splitting import split
from memory.workspace import SourceFile

WORD_PIECES = token_counter(model_info("local", MINILM))
COUNTERS = {"estimate": estimate_tokens, "word pieces": WORD_PIECES}
FAMILY = "👨\u200d👩\u200d👧\u200d👦"


def count_words(text):
    return len(text.split())


def count_characters(text):
    return len(text)


def numbered(first, last):
    return " ".join(f"w{number}" for number in range(first, last + 1))


def parts_of(content, limits, *, frame="# A"):
    return [content[start:end] for start, end in split(content, frame, limits)]


def parse(text, limits):
    data = text.encode()
    return parse_file(SourceFile("a.md", "a.md", 1, len(data), 7, data), limits=limits)


WORDS_40 = TokenLimits(40, count_words)
"""Room for 36 words after two special tokens and the frame ``# A``."""


def test_what_fits_is_not_split():
    assert parts_of(numbered(1, 36), WORDS_40) == [numbered(1, 36)]
    assert len(parts_of(numbered(1, 37), WORDS_40)) == 2
    assert split("", "# A", WORDS_40) == [(0, 0)]


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("\n\n", "\n"),
        ("\n", ". "),
        (". ", " "),
        ("? ", ", "),
        ("… ", " "),
        ('." ', " "),
        ("؟ ", " "),
        ("। ", " "),
        ("。", " "),
    ],
)
def test_a_part_ends_at_the_strongest_border_of_its_second_half(stronger, weaker):
    def lines_of(first, last):
        return weaker.join(numbered(start, start + 2) for start in range(first, last, 3))

    content = lines_of(1, 24) + stronger + lines_of(25, 60)

    parts = parts_of(content, WORDS_40)

    assert parts[0] == (lines_of(1, 24) + stronger).rstrip()


def test_a_border_in_the_first_half_would_waste_room():
    content = f"{numbered(1, 9)}\n\n{numbered(10, 90)}"

    first, *_rest = parts_of(content, WORDS_40)

    assert count_words(first) > 18


def test_the_next_part_repeats_the_last_sentence_if_it_is_short():
    content = f"{numbered(1, 30)}. It ends. {numbered(31, 70)}"

    first, second, *_rest = parts_of(content, WORDS_40)

    assert first.endswith(". It ends.")
    assert second.startswith("It ends. w31")


def test_else_it_repeats_words_but_a_tenth_at_most():
    content = numbered(100, 300)

    spans = split(content, "# A", WORDS_40)

    for (start, end), (following, _end) in pairwise(spans):
        assert 0 < end - following <= (end - start) / 10 + 1
        assert content[following - 1] == " "


def test_words_are_repeated_where_a_part_ends_with_its_sentence():
    content = ". ".join(numbered(first, first + 19) for first in range(100, 300, 20))

    first, second, *_rest = parts_of(content, WORDS_40)

    assert first.endswith("w119.")
    assert second.startswith("w119. w120")


AWKWARD = st.lists(
    st.sampled_from(
        [
            *(
                "word",
                "word ",
                " ",
                "\n",
                "\n\n",
                "\n \n",
                ". ",
                "x" * 40,
                "# A\n",
                "```\n",
                "- i\n",
            ),
            *(
                "中",
                "中文。",
                "한",
                "e\u0301",
                "é",
                FAMILY,
                "🇩🇪",
                "\u2028",
                "\t",
                "!?",
                "0x7f",
                "ก\u0e33",
            ),
            *(" " * 300, "\n" * 30, "ab" * 60, "\ufffd", "\x1b", "[CLS]", "##s", "ß" * 9, "ﷺ"),
        ]
    ),
    max_size=60,
).map("".join)


@pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)
@given(content=AWKWARD.map(str.strip), max_tokens=st.integers(32, 80))
@example(content="\n" * 600 + "a", max_tokens=32)
@example(content="a" + " " * 5000 + "b", max_tokens=32)
@example(content="word" + " " * 252 + "!?" + " " * 252 + "word", max_tokens=46)
@settings(max_examples=100, deadline=None)
def test_parts_fit_are_in_order_and_lose_nothing(count, content, max_tokens):
    """FAULTS 44."""
    limits = TokenLimits(max_tokens, count)

    spans = split(content, "# A > ## B", limits)

    held = {place for start, end in spans for place in range(start, end)}
    assert all(place in held for place, character in enumerate(content) if character.strip())
    assert all(one[0] <= other[0] and one[1] < other[1] for one, other in pairwise(spans))
    assert all(content[start:end].strip() for start, end in spans) or spans == [(0, 0)]
    assert all(
        count(join("# A > ## B", content[start:end])) + NUM_SPECIAL_TOKENS <= max_tokens
        for start, end in spans
    )


@pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)
@given(
    text=st.lists(
        st.one_of(
            AWKWARD, st.sampled_from(["\n# A\n", "\n## B b b\n", "\n### " + "c " * 60 + "\n"])
        ),
        max_size=8,
    ).map("".join),
    max_tokens=st.integers(32, 300),
)
@settings(max_examples=60, deadline=None)
def test_no_embedding_input_is_over_the_limit(count, text, max_tokens):
    """FAULTS 44: with trail, context and content."""
    limits = TokenLimits(max_tokens, count)

    for chunk in parse(text, limits).chunks:
        assert count(compose(chunk, limits)) + NUM_SPECIAL_TOKENS <= max_tokens


@pytest.mark.parametrize("cluster", [FAMILY, "e\u0301", "🇩🇪", "👍🏽", "ก\u0e33", "각"])
def test_what_a_reader_sees_as_one_character_is_not_cut(cluster):
    content = (cluster * 25 + "-") * 20

    spans = split(content, "# A", TokenLimits(128, count_characters))

    borders = {match.start() for match in regex.finditer(r"\X", content)} | {len(content)}
    assert len(spans) > 1
    assert {place for span in spans for place in span} <= borders


def test_one_endless_character_is_cut_all_the_same():
    content = "a" + "\u0301" * 2000

    spans = split(content, "# A", TokenLimits(64, count_characters))

    assert spans[0][0] == 0
    assert spans[-1][1] == len(content)
    assert all(end - start <= 64 for start, end in spans)


def test_blank_lines_cost_no_part():
    assert len(parts_of("first" + "\n" * 20_000 + "last", WORDS_40)) == 2


def test_a_part_keeps_the_indent_of_its_first_line():
    content = f"{numbered(1, 30)}.\n\n    code {numbered(31, 60)}"

    first, second = parts_of(content, WORDS_40)

    assert first == f"{numbered(1, 30)}."
    assert second == f"    code {numbered(31, 60)}"


def test_parts_of_a_section_are_numbered_and_share_the_trail():
    text = f"# A\n\nshort\n\n## B\n\n{numbered(1, 100)}\n\n## C\n\nshort"

    chunks = parse(text, WORDS_40).chunks

    assert {chunk.context for chunk in chunks} == {"short"}
    numbers = [(chunk.headlines, chunk.part, chunk.num_parts) for chunk in chunks]
    num_parts = len(chunks) - 2
    assert num_parts >= 3
    assert numbers == [
        ("# A", 1, 1),
        *[("# A > ## B", part, num_parts) for part in range(1, num_parts + 1)],
        ("# A > ## C", 1, 1),
    ]


def test_parts_keep_every_word_in_order_and_repeat_few():
    words = [f"w{number}" for number in range(900)]
    paragraphs = [" ".join(words[start : start + 60]) for start in range(0, 900, 60)]

    parts = parts_of("\n\n".join(paragraphs), TokenLimits(256, estimate_tokens))

    seen = [word for part in parts for word in part.split()]
    assert list(dict.fromkeys(seen)) == words
    assert len(words) < len(seen) < 1.15 * len(words)


def test_each_part_cites_its_own_lines():
    """SPEC C8."""
    lines = ["# A", "", *[f"line {number} of them" for number in range(60)]]

    chunks = parse("\n".join(lines), WORDS_40).chunks

    assert len(chunks) > 5
    assert (chunks[0].start_line, chunks[-1].end_line) == (1, 62)
    for chunk in chunks[1:]:
        cited = lines[chunk.start_line - 1 : chunk.end_line]
        held = chunk.content.split("\n")
        assert len(cited) == len(held)
        assert cited[0].endswith(held[0])
        assert cited[-1].startswith(held[-1])


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize(
    "unit",
    [
        "Some words of a sentence. ",
        "word ",
        "x",
        "中文字符",
        "한국어 ",
        FAMILY,
        "a\n",
        "\n\nline",
        "{}()",
    ],
)
def test_a_section_of_130000_characters_takes_seconds_at_most(count, unit):
    """FAULTS 44."""
    limits = TokenLimits(256, count)
    text = "# A\n\n" + unit * (130_000 // len(unit))

    start = time.process_time()
    chunks = parse(text, limits).chunks
    elapsed_s = time.process_time() - start

    assert elapsed_s < 10
    assert {chunk.headlines for chunk in chunks} == {"# A"}
    assert all(count(compose(chunk, limits)) + NUM_SPECIAL_TOKENS <= 256 for chunk in chunks)
