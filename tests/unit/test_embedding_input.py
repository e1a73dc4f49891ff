import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedding_input import TokenLimits, compose, estimate_tokens, frame
from memory.messages import Chunk


def count_words(text):
    return len(text.split())


def chunk(headlines="# A", context="", content="text"):
    return Chunk(headlines, context, content, "", 1, 1, 1, 1)


LIMITS = TokenLimits(40, count_words)


def test_the_input_is_headlines_context_and_content_between_blank_lines():
    assert compose(chunk("# A > ## B", "Who A is.", "What B is."), LIMITS) == (
        "# A > ## B\n\nWho A is.\n\nWhat B is."
    )


def test_what_is_empty_leaves_no_gap():
    assert compose(chunk("# A", "", "text"), LIMITS) == "# A\n\ntext"
    assert compose(chunk("# A", "Who A is.", ""), LIMITS) == "# A\n\nWho A is."


def test_the_context_takes_a_quarter_and_ends_with_a_word():
    context = "word " * 11

    assert frame("# A", context, LIMITS) == "# A\n\n" + " ".join(["word"] * 10)


def test_a_long_context_is_cut_once_for_all_chunks_of_a_file():
    counted = []

    def count(text):
        counted.append(text)
        return count_words(text)

    limits = TokenLimits(40, count)
    compose(chunk("# A", "word " * 500, "first"), limits)
    counted.clear()

    compose(chunk("# A > ## B", "word " * 500, "second"), limits)

    assert all(text.startswith("#") for text in counted)


def test_a_long_trail_loses_its_ancestors_first():
    trail = "# one two three four five > ## six seven eight > ### nine ten"

    assert frame(trail, "", LIMITS) == "## six seven eight > ### nine ten"


def test_a_heading_that_is_too_long_by_itself_loses_its_end():
    assert frame("# " + "x " * 20, "", LIMITS) == "# " + " ".join("x" * 9)


@given(st.text(max_size=300), st.text(max_size=300), st.integers(32, 64))
def test_the_frame_leaves_half_of_the_room(headlines, context, max_tokens):
    limits = TokenLimits(max_tokens, estimate_tokens)

    # One token for rounding: an estimate of two texts is at most the sum of both.
    assert estimate_tokens(frame(headlines, context, limits)) <= max_tokens // 4 * 2 + 1


def test_a_limit_without_room_for_text_is_refused():
    with pytest.raises(ValueError, match="at least 32"):
        TokenLimits(31, count_words)


# Tokens of the uncased WordPiece vocabulary of BERT, counted with its reference implementation.
@pytest.mark.parametrize(
    ("text", "num_tokens"),
    [
        ("Быстрая коричневая лиса прыгает через ленивую собаку и потом возвращается домой.", 70),
        ("빠른 갈색 여우가 게으른 개를 뛰어넘고 나서 집으로 돌아갑니다.", 50),
        ("素早い茶色の狐がのろまな犬を飛び越えて、家に帰りました。", 28),
        ("الثعلب البني السريع يقفز فوق الكلب الكسول ثم يعود إلى بيته", 48),
        ("Szybki brązowy lis przeskakuje nad leniwym psem i wraca do domu, źdźbło żółć", 38),
        ("The quick brown fox jumps over the lazy dog and then goes home to its family.", 17),
        ("if (x!=null && y[3]->z==0x7f) { return !foo(bar,&baz); }", 35),
    ],
)
def test_an_estimate_is_not_below_a_real_count(text, num_tokens):
    assert num_tokens <= estimate_tokens(text) <= 4 * num_tokens


def test_an_empty_text_has_no_tokens_and_a_surrogate_has_some():
    assert estimate_tokens("") == 0
    assert estimate_tokens("\ud800") >= 1


@given(st.text(), st.text())
def test_estimates_of_two_texts_cover_the_whole(one, other):
    assert estimate_tokens(one + other) <= estimate_tokens(one) + estimate_tokens(other)
