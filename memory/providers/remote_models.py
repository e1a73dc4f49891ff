"""What is known about an embedding model behind a network without asking for it?

Neither mean nor spread of a foreign model's cosines can be known here; they lie between 0.05 and
0.8. ``NOISE`` is in the middle: until the index is calibrated, a model of low noise loses hits that
share no word with the query, which the words still find, while one of high noise shows few that
mean nothing. ``SIMILARITY_FLOOR`` stays when it is calibrated, so it is low enough for the model
with the smallest cosines: the default of ``minVectorSimilarity``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.embedding_input import MIN_TOKENS, estimate_tokens
from memory.providers.access import (
    GOOGLE,
    MISTRAL,
    OPENAI,
    OPENAI_COMPATIBLE,
    ProviderAccess,
)
from memory.providers.base import ModelInfo, RequestLimits

NOISE = 0.5
SIMILARITY_FLOOR = 0.3
DEFAULT_MAX_TOKENS = 512
"""Of BERT and its kin, of which most models on servers of one's own are made."""
MAX_CONCURRENT = 4

LIMITS = {
    # 2,048 inputs and 300,000 tokens by the reference of ``embeddings.create``; tokens are counted
    # by an estimate, hence the margin. A request of 2,048 inputs has 16 MB of vectors and takes
    # long to repeat, so the count stays below as well.
    OPENAI: RequestLimits(max_inputs=512, max_tokens=250_000, max_concurrent=MAX_CONCURRENT),
    # 100 requests in a ``batchEmbedContents``; no limit of tokens is published, so that of 100
    # full inputs of gemini-embedding-001.
    GOOGLE: RequestLimits(max_inputs=100, max_tokens=200_000, max_concurrent=MAX_CONCURRENT),
    # 16,384 tokens ("Too many tokens in batch"); of the count only that 150 are taken is known.
    MISTRAL: RequestLimits(max_inputs=128, max_tokens=16_000, max_concurrent=MAX_CONCURRENT),
    # A server of one's own: text-embeddings-inference takes 32 inputs (``max-client-batch-size``),
    # others more. 8,192 tokens are 16 full inputs of a BERT, which a processor without accelerator
    # embeds well within the time a request may take.
    OPENAI_COMPATIBLE: RequestLimits(
        max_inputs=32, max_tokens=8_192, max_concurrent=MAX_CONCURRENT
    ),
}


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the maker of a model, or of a family of models, says about it."""

    dim: int = 0
    """0 where servers or sizes differ."""
    max_tokens: int = DEFAULT_MAX_TOKENS
    document_prefix: str = ""
    query_prefix: str = ""
    noise: float = NOISE
    similarity_floor: float = SIMILARITY_FLOOR


_UNKNOWN = _Facts()
_NATIVE = {
    (OPENAI, "text-embedding-3-small"): _Facts(1536, 8191),
    (OPENAI, "text-embedding-3-large"): _Facts(3072, 8191),
    (OPENAI, "text-embedding-ada-002"): _Facts(1536, 8191),
    (MISTRAL, "mistral-embed"): _Facts(1024, 8192),
    (MISTRAL, "codestral-embed"): _Facts(1536, 8192),
    # Told by a task type in the request, see ``google_embedder``.
    (GOOGLE, "gemini-embedding-001"): _Facts(3072, 2048),
    # It ignores task types and is told in the text: ai.google.dev/gemini-api/docs/embeddings, and
    # embeddings-benchmark/mteb pull request 4851, which measured both.
    (GOOGLE, "gemini-embedding-2"): _Facts(
        3072, 8192, "title: none | text: ", "task: search result | query: "
    ),
}
_SEARCH_SENTENCE = "Represent this sentence for searching relevant passages: "
_QWEN_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_FAMILIES = (
    # huggingface.co/nomic-ai/nomic-embed-text-v1.5: "requires prefixes"; most servers run it with
    # the 2,048 tokens it was trained with.
    (
        r"nomic-embed-text",
        _Facts(max_tokens=2048, document_prefix="search_document: ", query_prefix="search_query: "),
    ),
    # huggingface.co/intfloat/e5-mistral-7b-instruct, multilingual-e5-large-instruct: an instruction
    # before queries only.
    (
        r"e5-.*instruct",
        _Facts(query_prefix=f"Instruct: {_QWEN_TASK}\nQuery: ", noise=0.77, similarity_floor=0.82),
    ),
    # huggingface.co/intfloat/multilingual-e5-large and e5-base-v2: "query: " and "passage: ". Noise
    # and floor as measured for multilingual-e5-small, since all are trained with temperature 0.01.
    (
        r"(^|[-_/])e5-(small|base|large)",
        _Facts(
            document_prefix="passage: ", query_prefix="query: ", noise=0.77, similarity_floor=0.82
        ),
    ),
    # huggingface.co/BAAI/bge-large-en-v1.5 (bge-m3 needs no instruction).
    (r"bge-(small|base|large)-en", _Facts(query_prefix=_SEARCH_SENTENCE)),
    (r"bge-m3", _Facts(max_tokens=8192)),
    # huggingface.co/mixedbread-ai/mxbai-embed-large-v1; Snowflake/snowflake-arctic-embed-m.
    (r"mxbai-embed-(large|2d)", _Facts(query_prefix=_SEARCH_SENTENCE)),
    (r"snowflake-arctic-embed(-(xs|s|m|l))?$", _Facts(query_prefix=_SEARCH_SENTENCE)),
    # github.com/QwenLM/Qwen3-Embedding: get_detailed_instruct, queries only.
    (
        r"qwen3-embedding",
        _Facts(max_tokens=8192, query_prefix=f"Instruct: {_QWEN_TASK}\nQuery:"),
    ),
    # huggingface.co/google/embeddinggemma-300m.
    (
        r"embedding-?gemma",
        _Facts(
            max_tokens=2048,
            document_prefix="title: none | text: ",
            query_prefix="task: search result | query: ",
        ),
    ),
)


def remote_model_info(provider: str, model: str, access: ProviderAccess) -> ModelInfo:
    """Returns what is known about a model behind a network.

    Args:
        provider: Id of its entry under ``inference``.
        model: Name as the provider calls it.
        access: How the provider is reached.
    """
    facts = _facts(access.protocol, model)
    # Chunks are cut to this length, and the prefix comes on top of them.
    room = facts.max_tokens - estimate_tokens(facts.document_prefix)
    return ModelInfo(
        provider=provider,
        model=model,
        dim=facts.dim,
        max_tokens=max(room, MIN_TOKENS),
        noise=facts.noise,
        similarity_floor=facts.similarity_floor,
        base_url=access.base_url if access.protocol == OPENAI_COMPATIBLE else "",
        limits=LIMITS[access.protocol],
        document_prefix=facts.document_prefix,
        query_prefix=facts.query_prefix,
    )


def _facts(protocol: str, model: str) -> _Facts:
    if protocol != OPENAI_COMPATIBLE:
        name = model.removeprefix("models/").removesuffix("-preview")
        return _NATIVE.get((protocol, name), _native_default(protocol))
    # Servers call a model ``nomic-embed-text:latest`` or ``nomic-ai/nomic-embed-text-v1.5``.
    name = model.lower().partition(":")[0]
    return next((facts for pattern, facts in _FAMILIES if re.search(pattern, name)), _UNKNOWN)


def _native_default(protocol: str) -> _Facts:
    # Every embedding model of these two took 8,192 tokens or more so far.
    return _Facts(max_tokens=2048 if protocol == GOOGLE else 8191)
