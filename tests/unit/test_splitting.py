"""Long sections become parts that fit, and nothing of them is lost (SPEC C7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.embedding_input import TokenLimits, compose, estimate_tokens
from memory.markdown import parse_file
from memory.providers.factory import model_info, token_counter
from memory.workspace import SourceFile

COUNTERS = {
    "estimate": estimate_tokens,
    "wordpiece": token_counter(model_info("local", "all-minilm-l6-v2")),
}
WORDS = st.sampled_from(
    ["sea", "harbour", "x" * 70, "\u8239", "\U0001f600", "a.b-c", "Ships.", "\n"]
)


def parse(text: str, limits: TokenLimits):
    data = text.encode()
    return parse_file(SourceFile("n.md", "n.md", 1, len(data), 1, data), limits=limits).chunks


@pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)
@given(words=st.lists(WORDS, min_size=1, max_size=400), max_tokens=st.integers(32, 128))
@settings(max_examples=40, deadline=None)
def test_every_embedding_input_fits_the_model(count, words, max_tokens):
    """FAULTS 44."""
    limits = TokenLimits(max_tokens, count)

    for chunk in parse("# Title of it\n\n" + " ".join(words), limits):
        assert limits.fits(compose(chunk, limits))


def test_parts_are_numbered_share_the_trail_and_keep_every_word_in_order():
    words = [f"word{number}" for number in range(900)]
    text = "# Ship\n\n## Log\n\n" + "\n\n".join(
        " ".join(words[start : start + 60]) + "." for start in range(0, 900, 60)
    )

    parts = [
        chunk
        for chunk in parse(text, TokenLimits(256, estimate_tokens))
        if chunk.headlines == "# Ship > ## Log"
    ]

    assert len(parts) > 3
    assert [part.part for part in parts] == list(range(1, len(parts) + 1))
    assert {part.num_parts for part in parts} == {len(parts)}
    seen = [word.rstrip(".") for part in parts for word in part.content.split()]
    assert list(dict.fromkeys(seen)) == words
    assert len(seen) < 1.3 * len(words)


def test_a_short_section_is_one_part():
    (chunk,) = parse("# A\n\nShort.", TokenLimits(64, estimate_tokens))

    assert (chunk.part, chunk.num_parts) == (1, 1)
