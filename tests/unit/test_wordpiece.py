"""Is a text cut as BERT (uncased) cuts it?"""

from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.providers.wordpiece import word_piece_counter, word_piece_tokenizer

TOKENIZER = word_piece_tokenizer()
COUNT = word_piece_counter()
PUBLISHED_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"


def test_the_vocabulary_is_the_published_file():
    vocabulary = files("memory.providers").joinpath("bert_uncased_vocab.txt").read_bytes()

    assert hashlib.sha256(vocabulary).hexdigest() == PUBLISHED_SHA256


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Examples of the tests and the guides of google-research/bert and of transformers.
        ("unaffable", "una ##ffa ##ble"),
        ("embeddings", "em ##bed ##ding ##s"),
        ("John Johanson's house", "john johan ##son ' s house"),
        ("ah\u535azz", "ah 博 z ##z"),
        (" \tHeLLo!how  \n Are yoU?  ", "hello ! how are you ?"),
        ("H\u00e9llo He\u0301llo", "hello hello"),
        ("a\0b\u200bc\ufffd", "abc"),
        ("a" * 101, "[UNK]"),
        ("[CLS] a [SEP]", "[CLS] a [SEP]"),
        ("", ""),
    ],
)
def test_a_text_is_cut_as_published(text, tokens):
    assert TOKENIZER.encode(text, add_special_tokens=False).tokens == tokens.split()


def test_the_numbers_of_the_tokens_are_those_of_bert():
    assert TOKENIZER.encode("Hello, world!").ids == [101, 7592, 1010, 2088, 999, 102]


@pytest.mark.parametrize(("text", "count"), [("", 0), ("hello world", 2), ("embeddings", 4)])
def test_special_tokens_are_not_counted(text, count):
    assert COUNT(text) == count


@given(st.text(st.characters(), max_size=40))
def test_what_the_model_sees_is_what_is_counted(text):
    """Whatever the text, lone surrogates included, and however long it is."""
    repeated = f"{text} " * 20

    assert COUNT(repeated) == 20 * COUNT(text)
