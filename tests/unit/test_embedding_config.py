"""Does the configuration lead to a provider, or to one line that says what is missing?"""

from __future__ import annotations

import pickle

import pytest

from memory.config import EmbeddingsSettings, InferenceSettings, MemorySettings, Settings
from memory.embedding_config import (
    access_to_model,
    configured_model,
    disabled_reason,
    model_of_index,
    provider_access,
)
from memory.embedding_input import INPUT_FORMAT_VERSION
from memory.errors import ConfigError
from memory.identity import Identity
from memory.providers.access import OPENAI_COMPATIBLE

KEY = "sk-canary-0123456789"
GATEWAY = {"type": "openai-compatible", "baseUrl": "http://127.0.0.1:8080/v1/"}


def inference(**groups):
    return InferenceSettings.model_validate(groups)


def settings(provider, model, **groups):
    return Settings(
        memory=MemorySettings(embeddings=EmbeddingsSettings(provider=provider, model=model)),
        inference=inference(**groups),
    )


@pytest.mark.parametrize("provider", ["openai", "google", "mistral"])
def test_a_native_provider_is_reached_with_its_key(provider, monkeypatch):
    monkeypatch.setenv("MEMORY_TEST_KEY", f" {KEY}\n")

    access = provider_access(provider, inference(apiKeys={provider: "env:MEMORY_TEST_KEY"}))

    assert (access.protocol, access.base_url, access.key) == (provider, "", KEY)


def test_a_gateway_is_reached_at_its_address_with_or_without_a_key():
    without = provider_access("gw", inference(customProviders={"gw": GATEWAY}))
    keyed = provider_access("gw", inference(customProviders={"gw": {**GATEWAY, "apiKey": KEY}}))

    assert without.protocol == keyed.protocol == OPENAI_COMPATIBLE
    assert without.base_url == "http://127.0.0.1:8080/v1"
    assert (without.key, keyed.key) == ("", KEY)


def test_local_needs_no_access():
    assert provider_access("local", inference()) is None


def test_an_access_travels_without_showing_its_key():
    access = provider_access("openai", inference(apiKeys={"openai": KEY}))

    copied = pickle.loads(pickle.dumps(access))

    assert copied == access
    assert copied.key == KEY
    assert KEY[:8] not in f"{access!r} {access} {copied!r}"


@pytest.mark.parametrize(
    ("provider", "groups", "told"),
    [
        ("openai", {}, r"neither inference\.apiKeys .* nor inference\.customProviders"),
        ("gw", {}, r"neither inference\.apiKeys .* nor inference\.customProviders"),
        ("openai", {"apiKeys": {"openai": " "}}, r"inference\.apiKeys\.openai is empty"),
        ("openai", {"apiKeys": {"openai": "env:MEMORY_NO_KEY"}}, "MEMORY_NO_KEY is not set"),
        ("openai", {"apiKeys": {"openai": f"{KEY}\u2026"}}, "holds a character that no key has"),
        ("groq", {"apiKeys": {"groq": KEY}}, "does not expose embeddings"),
    ],
)
def test_a_provider_that_cannot_be_reached_is_told_with_the_place(
    provider, groups, told, monkeypatch
):
    monkeypatch.delenv("MEMORY_NO_KEY", raising=False)

    with pytest.raises(ConfigError, match=told) as error:
        provider_access(provider, inference(**groups))

    assert KEY not in str(error.value)


@pytest.mark.parametrize(
    ("written", "meant"), [("lokal", "local"), ("Local", "local"), ("opnai", "openai")]
)
def test_a_misspelt_provider_is_corrected_before_a_model_is_asked_for(written, meant):
    assert f"did you mean {meant}?" in disabled_reason(settings(written, None))


def test_a_misspelt_gateway_is_corrected():
    reason = disabled_reason(settings("my-gatway", "m", customProviders={"my-gateway": GATEWAY}))

    assert "did you mean my-gateway?" in reason


def test_a_configured_model_has_the_address_of_its_gateway():
    configured = settings("gw", "nomic-embed-text", customProviders={"gw": GATEWAY})

    info, access = configured_model(configured)

    assert (info.provider, info.base_url) == ("gw", access.base_url)


def test_the_model_of_an_index_is_known_without_a_key():
    native = model_of_index(Identity("openai", "text-embedding-3-small", 1536, "", 1))
    gateway = model_of_index(Identity("gw", "nomic-embed-text", 768, "http://x/v1", 1))

    assert (native.dim, native.base_url) == (1536, "")
    assert (gateway.base_url, gateway.query_prefix) == ("http://x/v1", "search_query: ")


def test_the_key_of_a_gateway_does_not_go_to_the_address_an_index_names():
    model = model_of_index(Identity("gw", "m", 8, "http://elsewhere/v1", 1))

    with pytest.raises(ConfigError, match="http://elsewhere/v1, which is not the configured one"):
        access_to_model(model, inference(customProviders={"gw": GATEWAY}))


def test_what_a_model_is_told_before_a_document_is_part_of_the_identity():
    told = configured_model(settings("gw", "nomic-embed-text", customProviders={"gw": GATEWAY}))[0]
    untold = configured_model(settings("gw", "some-model", customProviders={"gw": GATEWAY}))[0]

    assert Identity.of(untold).input_format == INPUT_FORMAT_VERSION
    assert Identity.of(told).input_format != INPUT_FORMAT_VERSION
    assert Identity.of(told).input_format & 0xFF == INPUT_FORMAT_VERSION
