"""Are copies told from texts that only look alike?"""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memory import near_duplicates
from memory.near_duplicates import MAX_REFUSED, DistinctTexts, nearly_same, wording

WORDS = [f"{first}{second}" for first in "bcdfghklmn" for second in ("ale", "est", "ust", "ink")]
NOTE = """\
We met the supplier in Lyon on Tuesday and agreed to move the delivery of the pumps to the first
week of June, because the new seals will not arrive before May.

- Anna writes the contract and sends it to both sides.
- Piotr asks the warehouse whether there is room for forty boxes.
- The old pumps stay in use until the new ones have run for a month.

If the seals are late again, we buy them from the firm in Turin, which costs a tenth more but has
them in stock."""
CHINESE = (
    "我们星期二在里昂会见了供应商,同意把水泵的交货时间推迟到六月的第一个星期,因为新的密封件五月之前"
    "不会到货。安娜负责起草合同,然后发给双方。如果密封件再次迟到,我们就从都灵的公司购买。"
)
TEXTS = st.lists(st.sampled_from([*WORDS, "\n", ".", "中文", "ไทย", "É"]), max_size=60).map(
    " ".join
)


def same(one, other, *, trails=("# Notes", "# Notes")):
    return nearly_same(wording(trails[0], one), wording(trails[1], other))


def distinct(texts):
    found = DistinctTexts()
    return [text for text in texts if found.admits("# Notes", text)]


def random_text(seed, num_words=60):
    # Of so many words no two texts have a run of three in common but by rare chance.
    chosen = random.Random(seed)
    return " ".join(f"w{chosen.randrange(10**6)}" for _ in range(num_words))


def with_words_changed(text, *, every):
    words = text.split(" ")
    words[::every] = [f"other{number}" for number in range(len(words[::every]))]
    return " ".join(words)


@pytest.mark.parametrize(
    "edited",
    [
        NOTE.upper(),
        NOTE.replace(" ", " \t ").replace("\n", "\r\n"),
        NOTE.replace("Tuesday", "Wednesday").replace("forty", "sixty"),
        with_words_changed(NOTE, every=20),
        f"{NOTE}\n\nP.S. The firm in Turin called: they have only thirty of them left.",
        "\n".join(reversed(NOTE.split("\n"))),
        NOTE.replace("- ", "* ").replace(",", ";"),
    ],
    ids=["case", "white space", "two words", "a twentieth", "a paragraph", "order", "marks"],
)
def test_an_edited_copy_is_the_same(edited):
    assert same(NOTE, edited)


def test_an_edited_copy_without_spaces_between_words_is_the_same():
    assert same(CHINESE, CHINESE.replace("里昂", "巴黎").replace("六月", "七月"))
    assert same(CHINESE, CHINESE[40:] + CHINESE[:40])


def test_texts_of_one_language_and_subject_differ():
    other = (
        "The supplier from Lyon called on Monday. The pumps of the last delivery leak, because the"
        " seals do not stand the heat. He offers to send new ones until the end of May, and wants"
        " to know how many of the boxes in the warehouse have been opened."
    )

    assert not same(NOTE, other)
    assert not same(
        CHINESE, "供应商星期一从里昂打来电话。上次交货的水泵漏水,因为密封件不耐热。" * 2
    )


def test_a_quotation_is_not_the_text_that_quotes_it():
    """The longer one says much that the shorter one does not."""
    quoted = random_text(1, 40)

    assert same(quoted, f"{quoted} {random_text(2, 30)}")
    assert not same(quoted, f"{quoted} {random_text(2, 60)}")


def test_half_of_the_shingles_in_common_make_texts_the_same():
    """62 words are 60 shingles; of 80 distinct ones in all 40 are common, then 39 of 81."""
    start = random_text(1, 42)

    assert same(f"{start} {random_text(2, 20)}", f"{start} {random_text(3, 20)}")
    shorter = start.rsplit(" ", 1)[0]
    assert not same(f"{shorter} {random_text(2, 21)}", f"{shorter} {random_text(3, 21)}")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Buy milk.", " buy\n MILK. ", True),
        ("Buy milk.", "Buy milk and bread.", False),
        ("Start: 2014-06-10\nIssue: 14803", "Start: 2014-06-10\nIssue: 14812", False),
        ("---", "***", False),
        ("", "", True),
        ("Buy milk.", NOTE, False),
    ],
)
def test_short_texts_are_the_same_only_if_they_are_equal(one, other, expected):
    assert same(one, other) is expected
    assert same(other, one) is expected


@pytest.mark.parametrize(
    ("trails", "expected"),
    [
        (("# Alice", "# Bob"), False),
        (("# note", "# note (1)"), True),
        (("# Alice > ## Contact", "# Alice"), True),
    ],
)
def test_short_texts_need_headings_that_do_not_contradict_each_other(trails, expected):
    assert same("TODO", "TODO", trails=trails) is expected


def test_long_texts_are_the_same_whatever_they_are_called():
    assert same(NOTE, NOTE, trails=("# Lyon", "# Backup of May"))


@given(TEXTS)
def test_a_text_is_the_same_as_itself(text):
    assert same(text, text)


@given(TEXTS, TEXTS, st.sampled_from(["# A", "# B", "# A B"]))
def test_the_order_of_two_texts_does_not_matter(one, other, trail):
    assert same(one, other, trails=("# A", trail)) == same(other, one, trails=(trail, "# A"))


@settings(max_examples=40)
@given(st.lists(TEXTS, max_size=12))
def test_what_is_kept_is_in_order_pairwise_different_and_stands_for_the_rest(texts):
    kept = distinct(texts)

    assert kept == [text for text in dict.fromkeys(texts) if text in kept]
    assert not any(same(one, other) for n, one in enumerate(kept) for other in kept[:n])
    assert all(any(same(text, other) for other in kept) for text in texts)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 10**6), max_size=12, unique=True))
def test_nothing_is_dropped_when_all_differ(seeds):
    texts = [random_text(seed) for seed in seeds]
    assume(len({word for text in texts for word in text.split()}) > 50 * len(texts))

    assert distinct(texts) == texts


def test_more_different_texts_than_may_be_refused_are_all_kept():
    texts = [f"Short note {number}." for number in range(MAX_REFUSED + 10)]

    assert distinct(texts) == texts


def test_equal_copies_are_not_taken_apart(monkeypatch):
    num_calls = 0
    real = near_duplicates.wording

    def counted(headlines, content):
        nonlocal num_calls
        num_calls += 1
        return real(headlines, content)

    monkeypatch.setattr(near_duplicates, "wording", counted)

    assert distinct([NOTE] * 1000 + [CHINESE]) == [NOTE, CHINESE]
    assert num_calls == 2


def test_an_answer_ends_when_too_many_copies_were_compared():
    copies = [f"{NOTE} {number}" for number in range(MAX_REFUSED + 1)]

    assert distinct([*copies[:-1], CHINESE]) == [copies[0], CHINESE]
    assert distinct([*copies, CHINESE]) == [copies[0]]
