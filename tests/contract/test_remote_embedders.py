"""What do the providers behind a network make of answers that are wrong, late or missing?"""

from __future__ import annotations

import json
import logging
import platform
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memory.errors import (
    BadEmbedding,
    EmbeddingError,
    InputRejected,
    ProviderRejected,
    ProviderUnavailable,
)
from memory.providers.access import GOOGLE, MISTRAL, OPENAI, OPENAI_COMPATIBLE
from memory.providers.factory import _api, model_info
from memory.providers.remote import RemoteEmbedder
from memory.providers.wire import Timeouts, Wire
from tests.contract.conftest import REMOTE_MODELS, opened
from tests.embedding_server import CANARY, WRONG_INDICES, WRONG_VECTORS, EmbeddingServer, Fault

NATIVE = (OPENAI, GOOGLE, MISTRAL)
INDEXED = (OPENAI, MISTRAL, OPENAI_COMPATIBLE)
TEXTS = ("the kettle whistles all day", "rain fell on the kettle", "a")


@pytest.fixture(scope="module")
def embedders(server):
    return {protocol: opened(server, protocol) for protocol in REMOTE_MODELS}


@pytest.fixture(params=REMOTE_MODELS)
def embedder(request, embedders):
    return embedders[request.param]


@pytest.fixture(autouse=True)
def no_fault_is_left(server):
    yield
    assert not server.faults


def expected(server, embedder, texts):
    return [server.vector(embedder.info.document_prefix + text) for text in texts]


@pytest.mark.parametrize("kind", WRONG_VECTORS)
@pytest.mark.parametrize("protocol", NATIVE)
def test_vectors_that_cannot_be_used_are_refused(server, embedders, protocol, kind):
    """FAULTS 55: 12 kinds and 3 SDKs."""
    server.faults.append(Fault(kind))
    num_requests = server.num_requests

    with pytest.raises(BadEmbedding) as error:
        embedders[protocol].embed_documents(TEXTS)

    assert server.num_requests == num_requests + 1
    assert str(error.value).startswith(f"{protocol}: ")


@pytest.mark.parametrize("kind", WRONG_VECTORS)
def test_vectors_of_a_gateway_that_cannot_be_used_are_refused(server, embedders, kind):
    server.faults.append(Fault(kind))

    with pytest.raises(BadEmbedding):
        embedders[OPENAI_COMPATIBLE].embed_documents(TEXTS)


@pytest.mark.parametrize("kind", WRONG_INDICES)
@pytest.mark.parametrize("protocol", INDEXED)
def test_indices_that_are_not_those_of_the_texts_are_refused(server, embedders, protocol, kind):
    """FAULTS 55; an answer of Gemini has an order only."""
    server.faults.append(Fault(kind))

    with pytest.raises(BadEmbedding, match="indices"):
        embedders[protocol].embed_documents(TEXTS)


@pytest.mark.parametrize("protocol", INDEXED)
def test_a_reversed_answer_is_put_in_order_by_its_indices(server, embedders, protocol):
    server.faults.append(Fault("reversed"))
    embedder = embedders[protocol]

    vectors = embedder.embed_documents(TEXTS)

    assert np.allclose(vectors, expected(server, embedder, TEXTS), atol=1e-6)


def test_an_answer_is_that_of_the_server(server, embedder):
    vectors = embedder.embed_documents(TEXTS)

    assert np.allclose(vectors, expected(server, embedder, TEXTS), atol=1e-6)


@pytest.mark.parametrize("kind", ["html", "cut", "reset", "not_json"])
def test_what_is_no_answer_may_be_one_later(server, embedder, kind):
    """FAULTS 53."""
    server.faults.append(Fault(kind))
    num_requests = server.num_requests

    with pytest.raises(ProviderUnavailable):
        embedder.embed_documents(TEXTS)

    assert server.num_requests == num_requests + 1


@pytest.mark.parametrize("protocol", REMOTE_MODELS)
def test_a_server_that_hangs_is_given_up(protocol):
    with EmbeddingServer() as server:
        access = server.access(protocol)
        info = model_info(protocol, REMOTE_MODELS[protocol], access)
        wire = Wire(Timeouts(connect_s=1, documents_s=0.05, query_s=0.05))
        embedder = RemoteEmbedder(info, _api(info.model, access, wire), wire, access.key)
        server.faults += [Fault("hang"), Fault("hang")]

        with pytest.raises(ProviderUnavailable, match="in time"):
            embedder.embed_documents(TEXTS)
        with pytest.raises(ProviderUnavailable, match="in time"):
            embedder.embed_query("kettle")


@pytest.mark.parametrize("protocol", REMOTE_MODELS)
def test_a_server_that_is_not_there_may_be_there_later(protocol):
    with EmbeddingServer() as server:
        embedder = opened(server, protocol)

    with pytest.raises(ProviderUnavailable, match="no connection"):
        embedder.embed_documents(TEXTS)


def test_a_redirect_is_not_followed(server, embedder):
    """FAULTS 63: the key would go to whoever it names."""
    with EmbeddingServer() as elsewhere:
        server.faults.append(Fault("redirect", text=elsewhere.url))
        num_requests = server.num_requests

        with pytest.raises(ProviderRejected, match="redirect"):
            embedder.embed_documents(TEXTS)

        assert elsewhere.num_requests == 0
        assert server.num_requests == num_requests + 1


def test_a_refusal_shows_neither_the_key_nor_the_texts(server, embedder, caplog):
    """FAULTS 64: providers repeat both."""
    server.faults.append(Fault("echo"))

    with pytest.raises(ProviderRejected) as error:
        embedder.embed_documents(TEXTS)

    shown = f"{error.value} {error.value!r} {error.value.args}"
    runs = {CANARY[start : start + 8] for start in range(len(CANARY) - 7)}
    assert "401" in shown
    assert [run for run in runs if run in shown] == []
    assert "kettle" not in shown
    assert len(error.value.reason) < 250
    assert error.value.__context__ is None


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"message": "an input is not text"}, InputRejected),
        (413, {"message": "no"}, InputRejected),
        (422, {"detail": [{"msg": "field required"}]}, InputRejected),
        (400, {"error": {"message": "API key not valid.", "status": "X"}}, ProviderRejected),
        (400, {"message": "Invalid model: x", "type": "invalid_model"}, ProviderRejected),
        (401, {}, ProviderRejected),
        (402, {}, ProviderRejected),
        (403, {}, ProviderRejected),
        (404, {}, ProviderRejected),
        (429, {"error": {"code": "insufficient_quota", "message": "plan"}}, ProviderRejected),
        (429, {"error": {"message": "check your plan and billing"}}, ProviderUnavailable),
        (408, {}, ProviderUnavailable),
        (409, {}, ProviderUnavailable),
        (500, {}, ProviderUnavailable),
        (503, {}, ProviderUnavailable),
        (529, {}, ProviderUnavailable),
    ],
)
def test_a_status_becomes_the_error_that_says_what_to_do(server, embedder, status, body, kind):
    server.faults.append(Fault("status", status=status, text=json.dumps(body)))
    num_requests = server.num_requests

    with pytest.raises(EmbeddingError, match=str(status)) as error:
        embedder.embed_documents(TEXTS)

    assert type(error.value) is kind
    assert server.num_requests == num_requests + 1


def test_the_wait_that_a_server_asks_for_is_handed_on(server, embedder):
    """FAULTS 51."""
    server.faults.append(Fault("status", status=429, headers={"retry-after": "7"}))

    with pytest.raises(ProviderUnavailable) as error:
        embedder.embed_documents(TEXTS)

    assert error.value.retry_after_s == 7


@pytest.mark.parametrize("model", ["gemini-embedding-001", "gemini-embedding-2"])
def test_gemini_gives_each_text_a_vector_of_its_own(server, model):
    """FAULTS 56: the SDK makes one content of a list of strings for the later model."""
    embedder = opened(server, GOOGLE, model)

    vectors = embedder.embed_documents(TEXTS)

    prefix = embedder.info.document_prefix
    assert np.allclose(vectors, [server.vector(prefix + text) for text in TEXTS], atol=1e-6)
    assert server.requests[-1].texts == [prefix + text for text in TEXTS]


def test_gemini_is_told_what_is_a_question(server):
    embedder = opened(server, GOOGLE)
    embedder.embed_documents(TEXTS)
    embedder.embed_query("what whistles?")

    document, question = server.requests[-2:]

    assert (document.task, question.task) == ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")


def test_a_later_gemini_is_told_in_the_text_alone(server):
    embedder = opened(server, GOOGLE, "gemini-embedding-2")

    embedder.embed_query("what whistles?")

    assert server.requests[-1].task is None
    assert server.requests[-1].texts == ["task: search result | query: what whistles?"]


@pytest.mark.parametrize("protocol", INDEXED)
def test_an_answer_of_another_model_is_told_once(server, protocol, caplog):
    """FAULTS 60."""
    embedder = opened(server, protocol)
    server.faults += [Fault("other_model"), Fault("other_model")]

    for _time in range(2):
        embedder.embed_documents(TEXTS)

    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told == [f"{protocol}: asked for model {embedder.info.model}, answered by another-model"]


def test_tokens_of_all_threads_are_counted_once(server, embedder):
    embedder.take_num_tokens()
    texts = [f"kettle number {number}" for number in range(5)]
    before = server.num_tokens

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(embedder.embed_documents, [texts] * 8))

    assert embedder.take_num_tokens() == server.num_tokens - before
    assert embedder.take_num_tokens() == 0


def test_a_giant_question_is_cut_to_what_the_model_takes(server, embedder):
    embedder.embed_query("kettle " * 50_000)

    (sent,) = server.requests[-1].texts
    assert sent.startswith(embedder.info.query_prefix + "kettle kettle ")
    assert 100 < len(sent.split()) < embedder.info.max_tokens


def test_a_dimension_that_was_learned_is_held_on_to(server):
    """FAULTS 59: a server may get another model under the same name."""
    access = server.access(OPENAI_COMPATIBLE)
    info = model_info("gateway", "some-model", access)
    wire = Wire(Timeouts())
    embedder = RemoteEmbedder(info, _api(info.model, access, wire), wire, access.key)
    assert info.dim == 0
    assert embedder.embed_documents(TEXTS).shape == (3, server.dim)
    server.faults.append(Fault("wrong_dim"))

    with pytest.raises(BadEmbedding, match="expected shape"):
        embedder.embed_documents(TEXTS)


def test_a_server_without_a_key_gets_none_of_the_environment(server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, CANARY)
    access = server.access(OPENAI_COMPATIBLE, key="")
    info = model_info("gateway", "some-model", access)
    wire = Wire(Timeouts())

    RemoteEmbedder(info, _api(info.model, access, wire), wire).embed_documents(TEXTS)

    assert CANARY not in str(server.requests[-1].headers)


def test_a_request_tells_nothing_about_the_machine(server, embedder):
    embedder.embed_query("what whistles?")

    told = str(server.requests[-1].headers).lower()
    assert platform.system().lower() not in told
    assert platform.machine().lower() not in told


def test_mistral_puts_no_text_into_traces(server, monkeypatch):
    """Its SDK does once the environment says so."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
    monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", "global")

    opened(server, MISTRAL).embed_documents(TEXTS)

    assert exporter.get_finished_spans() == ()


@pytest.mark.parametrize("protocol", NATIVE)
def test_the_environment_does_not_send_the_key_elsewhere(server, protocol, monkeypatch):
    with EmbeddingServer() as elsewhere:
        for name in ("OPENAI_BASE_URL", "MISTRAL_SERVER_URL", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, elsewhere.url)
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("MISTRAL_DEBUG", "1")

        opened(server, protocol).embed_documents(TEXTS)

        assert elsewhere.num_requests == 0
