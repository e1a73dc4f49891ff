import logging
import os
import pickle

import pytest

from memory.config import (
    CHAT_ONLY_PROVIDERS,
    DEFAULT_LOCAL_MODEL,
    CustomProvider,
    EmbeddingsSettings,
    InferenceSettings,
    MemorySettings,
    Settings,
    load,
)
from memory.embedding_config import disabled_reason
from memory.errors import ConfigError
from memory.providers import local

SEED = """\
core:
  writablePaths: ["wiki/**", "notes/*"]
inference:
  apiKeys:
    openai: env:OPENAI_API_KEY
  customProviders:
    gateway: {type: openai-compatible, baseUrl: "http://127.0.0.1:8080/v1/", apiKey: sk-canary}
  defaultModel: openai/gpt
memory:
  embeddings: {provider: openai, model: text-embedding-3-small}
  minScoreToMention: 0.6
  minVectorSimilarity: 0
  maxSystemPromptMemoryResults: 3
  maxToolMemoryResults: 7
  excludeGlobs: drafts/*
  language: German
  hybridWeights: {vector: 2, text: 1}
  persistToDiskDelay: 5
scheduler:
  anything: [goes, here]
"""


@pytest.fixture
def load_text(tmp_path):
    def load_it(text):
        path = tmp_path / "config.yml"
        path.write_text(text, "utf-8")
        return load(path)

    return load_it


@pytest.fixture
def complaints(load_text):
    def complaints_about(text):
        with pytest.raises(ConfigError) as refused:
            load_text(text)
        return [line.split("config.yml:", 1)[1] for line in str(refused.value).splitlines()]

    return complaints_about


def test_a_whole_configuration_is_read_and_other_groups_are_ignored(load_text):
    settings = load_text(SEED)

    assert settings.core.writable_paths == ("wiki/**", "notes/*")
    assert settings.inference.default_model == "openai/gpt"
    assert settings.inference.custom_providers["gateway"].base_url == "http://127.0.0.1:8080/v1"
    memory = settings.memory
    assert (memory.embeddings.provider, memory.embeddings.model) == (
        "openai",
        "text-embedding-3-small",
    )
    assert (memory.min_score_to_mention, memory.min_vector_similarity) == (0.6, 0)
    assert (memory.max_system_prompt_memory_results, memory.max_tool_memory_results) == (3, 7)
    assert memory.exclude_globs == ("drafts/*",)
    assert memory.language == "german"
    assert (memory.hybrid_weights.vector, memory.hybrid_weights.text) == (2, 1)
    assert (memory.persist_to_disk_delay, memory.persist_to_disk_max_delay) == (5, 50)


@pytest.mark.parametrize("text", ["", "memory:\n", "memory:\n  excludeGlobs:\n  embeddings:\n"])
def test_empty_values_mean_the_defaults(load_text, text):
    settings = load_text(text)

    assert settings == Settings()
    memory = settings.memory
    assert settings.core.writable_paths == ("wiki/**",)
    assert (memory.min_score_to_mention, memory.min_vector_similarity) == (0.55, 0.3)
    assert (memory.max_system_prompt_memory_results, memory.max_tool_memory_results) == (8, 5)
    assert (memory.hybrid_weights.vector, memory.hybrid_weights.text) == (0.5, 0.5)
    assert (memory.persist_to_disk_delay, memory.persist_to_disk_max_delay) == (30, 300)
    assert (memory.language, memory.exclude_globs) == ("english", ())
    assert (memory.max_file_bytes, memory.max_chunk_tokens) == (10 * 2**20, None)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("minScoreToMention: 1.4", "minScoreToMention: 1.4 is outside 0\u20131"),
        ("minScoreToMention: high", "minScoreToMention: 'high' is not a number"),
        ("minScoreToMention: true", "minScoreToMention: True is not a number"),
        ("minScoreToMention: .nan", "minScoreToMention: nan is not a finite number"),
        ("minVectorSimilarity: -0.1", "minVectorSimilarity: -0.1 is outside 0\u20131"),
        ("maxToolMemoryResults: 0", "maxToolMemoryResults: 0 is outside 1\u20131000"),
        ("maxToolMemoryResults: 2.5", "maxToolMemoryResults: 2.5 is not a whole number"),
        ("maxFileBytes: 0", "maxFileBytes: 0 is less than 1"),
        ("maxChunkTokens: 5", "maxChunkTokens: 5 is outside 32\u20138192"),
        ("persistToDiskDelay: -1", "persistToDiskDelay: -1 is outside 0\u201386400"),
        ("excludeGlobs: [a, 3]", "excludeGlobs.1: 3 is not text"),
        ("excludeGlobs: {a: b}", "excludeGlobs: the value is not a list"),
        ("embeddings: local", "embeddings: 'local' is not keys and values"),
        ("hybridWeights: {vector: 0, text: 0}", "hybridWeights: vector and text cannot both be 0"),
        ("hybridWeights: {vector: -1}", "hybridWeights.vector: -1 is less than 0"),
        ("scoring: bm25", "scoring: 'bm25' is not 'absolute' or 'orama'"),
        ("minScoreToMenton: 1", "minScoreToMenton: unknown key, did you mean minScoreToMention?"),
        (
            "min_score_to_mention: 1",
            "min_score_to_mention: unknown key, did you mean minScoreToMention?",
        ),
        (
            "embeddings: {provder: local}",
            "embeddings.provder: unknown key, did you mean provider?",
        ),
        (
            "embeddings: {zzz: 1}",
            (
                "embeddings.zzz: unknown key, known are provider, model, pricePerMillionTokens,"
                " tokenBudget"
            ),
        ),
        ("embeddings: {tokenBudget: 0}", "embeddings.tokenBudget: 0 is less than 1"),
    ],
)
def test_a_wrong_value_or_key_is_one_line_with_its_place_and_remedy(complaints, line, complaint):
    assert complaints(f"memory:\n  {line}\n") == [f"2: memory.{complaint}"]


def test_every_problem_has_its_own_line(complaints):
    text = "memory:\n  minScoreToMention: 2\n  persistToDiskDelay: soon\n  colour: red\n"

    assert [line.split(":")[0] for line in complaints(text)] == ["2", "3", "4"]


def test_values_of_the_inference_group_are_never_shown(complaints):
    """FAULTS 64: they may be keys."""
    text = (
        "inference:\n"
        "  apiKeys: {openai: 12345678}\n"
        "  customProviders:\n"
        "    x: {type: openai-compatible, baseUrl: canary-url, apiKy: canary-key}\n"
    )

    lines = complaints(text)

    assert lines == [
        "2: inference.apiKeys.openai: the value is not text",
        "4: inference.customProviders.x.baseUrl: does not start with http:// or https://",
        "4: inference.customProviders.x.apiKy: unknown key, did you mean apiKey?",
    ]


@pytest.mark.parametrize(
    "address",
    [
        "http://canary@x/v1",
        "https://user:canary@x/v1",
        "https://x/v1?key=canary",
        "https://x/v1#canary",
        "https://[canary/v1",
        "https://canary\u2100/v1",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_shown(complaints, address):
    """It would stand in the index, in the status and in every error of the provider."""
    provider = f'{{type: openai-compatible, baseUrl: "{address}"}}'

    (line,) = complaints(f"inference: {{customProviders: {{x: {provider}}}}}\n")

    assert "baseUrl: " in line
    assert "canary" not in line


def test_misspelt_groups_and_platform_keys_are_ignored_with_a_warning(load_text, caplog):
    text = "memroy: {}\ncore: {writeablePaths: x, port: 80}\nmail: {}\n"

    assert load_text(text) == Settings()
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "memroy is ignored, did you mean memory?",
        "core.writeablePaths is ignored, did you mean writablePaths?",
    ]


def test_an_unknown_language_is_logged_with_the_supported_set_and_becomes_english(
    load_text, caplog
):
    settings = load_text("memory: {language: klingon}\n")

    assert settings.memory.language == "english"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    message = record.getMessage()
    assert "klingon" in message
    assert len(message.split("supported: ")[1].split(", ")) == 28


def test_keys_never_appear_in_the_repr_and_survive_pickling(load_text):
    settings = load_text(SEED)

    assert "canary" not in repr(settings)
    assert "canary" not in str(settings)
    copy = pickle.loads(pickle.dumps(settings))
    assert copy == settings
    assert copy.inference.api_key("gateway") == "sk-canary"


@pytest.mark.parametrize("written", ["env:MEMORY_TEST_KEY", "${MEMORY_TEST_KEY}"])
def test_a_key_is_read_from_the_environment_when_it_is_asked_for(monkeypatch, written):
    inference = InferenceSettings.model_validate({"apiKeys": {"openai": written}})
    monkeypatch.delenv("MEMORY_TEST_KEY", raising=False)

    with pytest.raises(ConfigError, match="environment variable MEMORY_TEST_KEY is not set"):
        inference.api_key("openai")

    monkeypatch.setitem(os.environ, "MEMORY_TEST_KEY", "sk-1")
    assert inference.api_key("openai") == "sk-1"
    assert inference.api_key("mistral") is None


def with_provider(provider, model="m", **inference):
    return Settings(
        memory=MemorySettings(embeddings=EmbeddingsSettings(provider=provider, model=model)),
        inference=InferenceSettings.model_validate(inference),
    )


@pytest.mark.parametrize(
    ("embeddings", "missing"),
    [
        ({}, "memory.embeddings.provider and memory.embeddings.model"),
        ({"provider": "openai"}, "memory.embeddings.model"),
        ({"model": "m"}, "memory.embeddings.provider"),
    ],
)
def test_without_provider_or_model_the_memory_says_what_is_pending(embeddings, missing):
    settings = Settings(memory=MemorySettings(embeddings=EmbeddingsSettings(**embeddings)))

    assert disabled_reason(settings) == f"memory: disabled — pending config (set {missing})"


def test_the_names_of_the_local_provider_are_those_of_the_factory():
    assert local.LOCAL == "local"
    assert local.MINILM == DEFAULT_LOCAL_MODEL


def test_the_local_provider_has_a_default_model():
    settings = Settings(memory=MemorySettings(embeddings=EmbeddingsSettings(provider="local")))

    assert settings.memory.embeddings.model == "all-minilm-l6-v2"
    assert disabled_reason(settings) is None


@pytest.mark.parametrize("provider", CHAT_ONLY_PROVIDERS)
def test_chat_only_providers_are_refused_with_the_names_of_those_that_embed(provider):
    """FAULTS 65."""
    assert disabled_reason(with_provider(provider, apiKeys={provider: "sk-1"})) == (
        f"memory: disabled — pending config ({provider}: this provider does not expose embeddings;"
        " local, openai, google, mistral and openai-compatible custom providers do)"
    )


def test_an_unknown_provider_is_told_both_places():
    reason = disabled_reason(with_provider("cohere"))

    assert "cohere is in neither inference.apiKeys" in reason
    assert "inference.customProviders" in reason


def test_declared_providers_can_start():
    gateway = CustomProvider(type="openai-compatible", base_url="http://x")

    assert disabled_reason(with_provider("openai", apiKeys={"openai": "sk-1"})) is None
    assert disabled_reason(with_provider("gw", customProviders={"gw": gateway})) is None
    assert "inference.apiKeys" in disabled_reason(with_provider("mistral"))


def test_a_custom_provider_of_another_type_is_refused_only_when_it_is_used():
    other = CustomProvider(type="anthropic-compatible", base_url="http://x")

    assert "not anthropic-compatible" in disabled_reason(
        with_provider("gw", customProviders={"gw": other})
    )
    assert disabled_reason(with_provider("local", customProviders={"gw": other})) is None
