"""Does all-MiniLM-L6-v2 answer as its makers' code does?"""

from __future__ import annotations

import numpy as np
import pytest

from memory.providers.local import MINILM
from memory.providers.wordpiece import word_piece_tokenizer
from tests.local_models import loaded, references

REFERENCES = references(MINILM)


@pytest.fixture(scope="module")
def embedder():
    return loaded(MINILM)


@pytest.fixture(scope="module")
def vectors(embedder):
    return embedder.embed_documents([reference.text for reference in REFERENCES])


def test_vectors_equal_those_of_the_reference_tokenizer_and_the_same_weights(vectors):
    expected = np.array([reference.vector for reference in REFERENCES])

    assert (vectors * expected).sum(axis=1).min() > 0.999


def test_vectors_are_close_to_those_of_the_original_weights(vectors):
    rows = [
        (vector, reference.original)
        for vector, reference in zip(vectors, REFERENCES, strict=True)
        if reference.text
    ]

    assert min(float(vector @ original) for vector, original in rows) > 0.999


def test_a_question_is_embedded_like_a_document(embedder):
    assert (embedder.embed_query("kettle") == embedder.embed_documents(["kettle"])[0]).all()


def test_a_batch_gives_the_very_bytes_of_single_texts(embedder, vectors):
    """So an index built in one go equals one that grew (FAULTS, invariant I1)."""
    longest = max(range(len(REFERENCES)), key=lambda i: len(REFERENCES[i].text))
    alone = embedder.embed_documents([REFERENCES[longest].text])[0]

    assert alone.tobytes() == vectors[longest].tobytes()


def test_what_the_model_does_not_take_changes_nothing(embedder):
    limit = embedder.info.max_tokens - 2
    fitting = "kettle " * limit
    assert len(word_piece_tokenizer().encode(fitting).ids) == embedder.info.max_tokens

    vectors = embedder.embed_documents([fitting, fitting + "harbour " * 50])

    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_the_last_token_that_fits_is_seen(embedder):
    limit = embedder.info.max_tokens - 2
    vectors = embedder.embed_documents(["kettle " * limit, "kettle " * (limit - 1) + "harbour"])

    assert vectors[0] @ vectors[1] < 0.9999
