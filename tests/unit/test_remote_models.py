"""Is what is known about models behind a network what their makers say?"""

from __future__ import annotations

import pytest

from memory.chunk_limits import chunk_limits
from memory.providers.access import GOOGLE, MISTRAL, OPENAI, OPENAI_COMPATIBLE, ProviderAccess
from memory.providers.remote_models import remote_model_info


def info(protocol, model):
    return remote_model_info("p", model, ProviderAccess(protocol, "http://x/v1"))


@pytest.mark.parametrize(
    ("protocol", "model", "dim"),
    [
        (OPENAI, "text-embedding-3-small", 1536),
        (OPENAI, "text-embedding-3-large", 3072),
        (OPENAI, "text-embedding-ada-002", 1536),
        (MISTRAL, "mistral-embed", 1024),
        (MISTRAL, "codestral-embed", 1536),
        (GOOGLE, "gemini-embedding-001", 3072),
        (GOOGLE, "models/gemini-embedding-001", 3072),
        (GOOGLE, "gemini-embedding-2-preview", 3072),
        (OPENAI, "text-embedding-9", 0),
        (OPENAI_COMPATIBLE, "text-embedding-3-small", 0),
    ],
)
def test_dimensions_are_known_where_the_maker_serves_the_model(protocol, model, dim):
    assert info(protocol, model).dim == dim


@pytest.mark.parametrize(
    ("protocol", "max_inputs", "max_tokens"),
    [(OPENAI, 2048, 300_000), (MISTRAL, 128, 16_000), (GOOGLE, 100, 100 * 2048)],
)
def test_requests_stay_below_what_a_provider_takes(protocol, max_inputs, max_tokens):
    """FAULTS 57."""
    limits = info(protocol, "m").limits

    assert 0 < limits.max_inputs <= max_inputs
    assert 0 < limits.max_tokens <= max_tokens


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("nomic-embed-text", "search_document: ", "search_query: "),
        ("nomic-embed-text:latest", "search_document: ", "search_query: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_document: ", "search_query: "),
        ("intfloat/multilingual-e5-large", "passage: ", "query: "),
        ("e5-base-v2", "passage: ", "query: "),
        ("BAAI/bge-large-en-v1.5", "", "Represent this sentence for searching relevant passages: "),
        ("bge-m3", "", ""),
        ("mxbai-embed-large", "", "Represent this sentence for searching relevant passages: "),
        ("some-model", "", ""),
    ],
)
def test_a_model_is_told_what_its_maker_asks_for(model, document, query):
    found = info(OPENAI_COMPATIBLE, model)

    assert (found.document_prefix, found.query_prefix) == (document, query)


@pytest.mark.parametrize("model", ["Qwen/Qwen3-Embedding-0.6B", "multilingual-e5-large-instruct"])
def test_an_instruction_stands_before_questions_only(model):
    found = info(OPENAI_COMPATIBLE, model)

    assert found.document_prefix == ""
    assert found.query_prefix.startswith("Instruct: Given a web search query")


@pytest.mark.parametrize("model", ["nomic-embed-text", "e5-base-v2", "some-model", "bge-m3"])
def test_a_chunk_fits_with_what_stands_before_it(model):
    found = info(OPENAI_COMPATIBLE, model)
    limits = chunk_limits(None, found)
    known = {"nomic-embed-text": 2048, "bge-m3": 8192}

    assert limits.max_tokens + limits.count(found.document_prefix) <= known.get(model, 512)
