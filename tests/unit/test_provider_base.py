"""Is a wrong answer of a model refused whole, and a right one normalised?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import BadEmbedding
from memory.providers.base import checked_vectors, well_formed

ANY_TEXT = st.text(st.characters(), max_size=30)  # lone surrogates included


@given(ANY_TEXT)
def test_a_well_formed_text_can_be_encoded_and_holds_no_nul(text):
    assert "\0" not in well_formed(text)
    assert well_formed(text).encode("utf-8").decode("utf-8") == well_formed(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_text_that_is_well_formed_stays_as_it_is(text):
    assert well_formed(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("a\udc00", "a\ufffd"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude42", "\U0001f642"),
        ("a\0b", "a\ufffdb"),
    ],
)
def test_what_no_tokenizer_takes_is_replaced(text, expected):
    """FAULTS 62: two halves that belong together become the character they stand for."""
    assert well_formed(text) == expected


def test_vectors_are_normalised():
    vectors = checked_vectors("fake", [[3, 4], [0, -2]], count=2, dim=2)

    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, -1]]


def test_the_answer_itself_is_not_changed():
    answer = np.array([[3, 4]], np.float32)

    checked_vectors("fake", answer, count=1, dim=2)

    assert answer.tolist() == [[3, 4]]


def test_an_unknown_dimension_is_taken_from_the_answer():
    assert checked_vectors("fake", [[1, 0, 0]], count=1, dim=0).shape == (1, 3)


def test_no_texts_need_no_answer():
    assert checked_vectors("fake", [], count=0, dim=7).shape == (0, 7)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([[1, 0]], id="one short"),
        pytest.param([[1, 0], [0, 1], [1, 1]], id="one too many"),
        pytest.param([[1, 0], [1]], id="ragged"),
        pytest.param([[1, 0], [None, 1]], id="null"),
        pytest.param([[1, 0], ["x", 1]], id="text"),
        pytest.param([[1, 0], [float("nan"), 1]], id="not a number"),
        pytest.param([[1, 0], [float("inf"), 1]], id="infinite"),
        pytest.param([[1, 0], [1e300, 1]], id="infinite as float32"),
        pytest.param([[1, 0], [10**400, 1]], id="giant"),
        pytest.param([[1, 0], [0, 0]], id="zero"),
        pytest.param([1, 0], id="flat"),
        pytest.param([], id="nothing"),
        pytest.param([[], []], id="no numbers"),
    ],
)
@pytest.mark.parametrize("dim", [0, 2])
def test_a_wrong_answer_is_refused_whole(answer, dim):
    """FAULTS 55."""
    with pytest.raises(BadEmbedding):
        checked_vectors("fake", answer, count=2, dim=dim)


def test_another_dimension_is_refused():
    with pytest.raises(BadEmbedding, match=r"expected shape \(1, 2\), got \(1, 3\)"):
        checked_vectors("fake", [[1, 0, 0]], count=1, dim=2)
