"""Does every embedder keep the promises of the protocol?

A new embedder joins by one more entry in ``LOCAL_EMBEDDERS`` or ``REMOTE_MODELS``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory.providers.local import E5_SMALL, MINILM, USE_MULTILINGUAL
from tests.contract.conftest import REMOTE_MODELS, opened
from tests.doubles import HashEmbedder
from tests.local_models import loaded

LOCAL_EMBEDDERS = {
    "hash": HashEmbedder,
    MINILM: lambda: loaded(MINILM),
    USE_MULTILINGUAL: lambda: loaded(USE_MULTILINGUAL),
    E5_SMALL: lambda: loaded(E5_SMALL),
}
SLOW = {USE_MULTILINGUAL, E5_SMALL}
TEXTS = ("The kettle whistles.", "a", "Rain fell on the harbour all day long.", "def f(): pass")
BLANK = ("", " \n\t ")
HOSTILE = {
    "NUL": "kettle\0pot",
    "lone surrogate": "\ud83d kettle \ude42",
    "control characters": "\x01\x1b[31m\x7f",
    "noncharacter": "\uffff\U0010ffff",
    "special tokens": "[CLS] [SEP] [PAD] [MASK] <s> </s> <unk>",
    "letter of 18 letters": "\ufdfa" * 8,
    "combining marks": "e" + "\u0301" * 40,
    "giant": "the kettle whistles " * 50_000,
}


LOCAL_PARAMS = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in LOCAL_EMBEDDERS
]


@pytest.fixture(scope="module", params=LOCAL_PARAMS)
def local_embedder(request):
    return LOCAL_EMBEDDERS[request.param]()


@pytest.fixture(scope="module", params=REMOTE_MODELS)
def remote_embedder(request, server):
    return opened(server, request.param)


@pytest.fixture(scope="module", params=[*LOCAL_PARAMS, *REMOTE_MODELS])
def embedder(request, server):
    if request.param in REMOTE_MODELS:
        return opened(server, request.param)
    return LOCAL_EMBEDDERS[request.param]()


class Gated(Sequence):
    """Texts of which the last is handed out only after a question was answered."""

    def __init__(self, texts):
        self.texts = texts
        self.is_running = threading.Event()
        self.is_answered = threading.Event()

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        if index == len(self.texts) - 1:
            self.is_running.set()
            assert self.is_answered.wait(timeout=30)
        return self.texts[index]


def test_each_text_has_one_unit_vector(embedder):
    vectors = embedder.embed_documents(TEXTS)

    assert vectors.shape == (len(TEXTS), embedder.info.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)


def test_no_texts_have_no_vectors(embedder):
    assert embedder.embed_documents(()).shape == (0, embedder.info.dim)


def test_a_question_has_one_unit_vector(embedder):
    vector = embedder.embed_query("What whistles?")

    assert vector.shape == (embedder.info.dim,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_vectors_come_in_the_order_of_the_texts(embedder):
    forth = embedder.embed_documents(TEXTS)
    back = embedder.embed_documents(TEXTS[::-1])

    assert np.allclose(forth, back[::-1], atol=1e-5)
    assert len({vector.tobytes() for vector in forth}) == len(TEXTS)


def test_a_batch_gives_the_same_vectors_as_single_texts(embedder):
    batch = embedder.embed_documents(TEXTS)
    singles = np.concatenate([embedder.embed_documents([text]) for text in TEXTS])

    assert (batch * singles).sum(axis=1).min() > 0.99999


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_is_refused(embedder, text):
    """FAULTS 62: a file may hold anything."""
    vector = embedder.embed_documents([text])[0]

    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", BLANK)
def test_a_model_inside_the_process_takes_blank_texts_and_questions(local_embedder, text):
    """FAULTS 61."""
    assert np.linalg.norm(local_embedder.embed_documents([text])) == pytest.approx(1, abs=1e-6)
    assert np.linalg.norm(local_embedder.embed_query(text)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", BLANK)
def test_a_blank_text_is_never_sent(remote_embedder, server, text):
    """FAULTS 61: providers refuse it, and with it all others of its request."""
    num_requests = server.num_requests

    with pytest.raises(ValueError, match="blank"):
        remote_embedder.embed_documents(["kettle", text])
    with pytest.raises(ValueError, match="blank"):
        remote_embedder.embed_query(text)

    assert server.num_requests == num_requests


@pytest.mark.parametrize("text", ["\0", "\ud83d kettle \ude42", "\uffff"])
def test_no_question_is_refused(embedder, text):
    """FAULTS 62, 81."""
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1, abs=1e-6)


def test_a_question_is_answered_while_a_batch_is_under_way(embedder):
    texts = Gated(TEXTS)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(embedder.embed_documents, texts)
        assert texts.is_running.wait(timeout=30)
        question = embedder.embed_query("What whistles?")
        texts.is_answered.set()

        assert len(batch.result(timeout=30)) == len(TEXTS)
    assert np.allclose(question, embedder.embed_query("What whistles?"), atol=1e-5)


def test_threads_do_not_disturb_each_other(embedder):
    alone = embedder.embed_documents(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(embedder.embed_documents, [TEXTS] * 8))

    assert all(np.allclose(vectors, alone, atol=1e-5) for vectors in together)
