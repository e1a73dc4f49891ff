"""What does config.yml allow, and what do its values mean?

The file belongs to the whole daemon: groups other than ``core``, ``inference`` and ``memory`` are
not looked at. Keys are camelCase in the file and snake_case here. Settings are frozen and can be
pickled; API keys are resolved from the environment only when somebody asks for one.
"""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from memory.config_complaints import complaints, stray_groups
from memory.errors import ConfigError
from memory.yaml_file import YamlFile, read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

logger = logging.getLogger(__name__)

LOCAL = "local"
DEFAULT_LOCAL_MODEL = "all-minilm-l6-v2"
NATIVE_PROVIDERS = ("openai", "google", "mistral")
CHAT_ONLY_PROVIDERS = ("anthropic", "deepseek", "grok", "groq")
CUSTOM_PROVIDER_TYPE = "openai-compatible"
DEFAULT_LANGUAGE = "english"

_ENVIRONMENT = re.compile(r"env:(\w+)|\$\{(\w+)\}")


def _as_tuple(value: object) -> object:
    # One glob may be written without the brackets of a list (SPEC W3).
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _known_language(name: str) -> str:
    # Loads the stemmers, which a configuration that names no language does not need.
    from memory.analysis import LANGUAGES  # noqa: PLC0415

    if name.lower() in LANGUAGES:
        return name.lower()
    logger.error(
        "memory.language: %r is not supported, using %s; supported: %s",
        name,
        DEFAULT_LANGUAGE,
        ", ".join(sorted(LANGUAGES)),
    )
    return DEFAULT_LANGUAGE


def _web_address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("does not start with http:// or https://")
    try:
        parts = urlsplit(url)
        is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:  # whose text may quote the address
        raise ValueError("is not an address") from None
    if not is_plain:
        # An address stands in the index and in messages, where a secret must not.
        raise ValueError("holds more than host, port and path; a secret belongs into apiKey")
    return url.rstrip("/")


Patterns = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Language = Annotated[str, AfterValidator(_known_language)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
Limit = Annotated[int, Field(ge=1, le=1000)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]


class Group(BaseModel):
    """One group of keys: frozen, strict about types, camelCase in the file."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        allow_inf_nan=False,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        strict=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_means_default(cls, data: Any) -> Any:
        # In YAML a key whose value is commented out reads as null.
        if data is None:
            return {}
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


class CoreSettings(Group):
    """``core``: settings of the platform that the memory follows."""

    model_config = ConfigDict(extra="ignore")

    writable_paths: Patterns = ("wiki/**",)
    """Globs of the files the agent writes itself."""
    workspace: str | None = None
    """Folder of markdown files, relative to the configuration file."""


class CustomProvider(Group):
    """``inference.customProviders.<id>``: a gateway that speaks a known protocol."""

    type: str
    base_url: WebAddress
    api_key: SecretStr | None = None


class InferenceSettings(Group):
    """``inference``: who answers calls to models."""

    api_keys: dict[str, SecretStr] = {}
    custom_providers: dict[str, CustomProvider] = {}
    default_model: str | None = None

    def api_key(self, provider: str) -> str | None:
        """Returns the key of a provider, read from the environment if it is given as a name.

        Raises:
            ConfigError: the environment variable is not set.
        """
        custom = self.custom_providers.get(provider)
        secret = custom.api_key if custom else self.api_keys.get(provider)
        if secret is None:
            return None
        written = secret.get_secret_value()
        match = _ENVIRONMENT.fullmatch(written)
        if match is None:
            return written
        name = match[1] or match[2]
        value = os.environ.get(name)
        if not value:
            raise ConfigError(f"API key of {provider}: environment variable {name} is not set")
        return value


def _default_model(values: dict[str, Any]) -> str | None:
    return DEFAULT_LOCAL_MODEL if values.get("provider") == LOCAL else None


def _default_max_delay(values: dict[str, Any]) -> float:
    return 10 * float(values.get("persist_to_disk_delay", 0))


class EmbeddingsSettings(Group):
    """``memory.embeddings``: which model turns text into vectors."""

    provider: str | None = None
    model: str | None = Field(default_factory=_default_model)
    price_per_million_tokens: float | None = Field(default=None, ge=0)
    token_budget: int | None = Field(default=None, ge=1)


class HybridWeights(Group):
    """``memory.hybridWeights``: share of each side in a score; only their ratio matters."""

    vector: Weight = 0.5
    text: Weight = 0.5

    @model_validator(mode="after")
    def _one_side_counts(self) -> HybridWeights:
        if not self.vector and not self.text:
            raise ValueError("vector and text cannot both be 0")
        return self


class MemorySettings(Group):
    """``memory``: everything about this plugin."""

    embeddings: EmbeddingsSettings = EmbeddingsSettings()
    min_score_to_mention: Share = 0.55
    """Files whose best hit scores at or below it are not mentioned in ``# Memories``."""
    min_vector_similarity: Share = 0.3
    """Least cosine of a hit that only the vector side found."""
    max_system_prompt_memory_results: Limit = 8
    """Most files in ``# Memories``."""
    max_tool_memory_results: Limit = 5
    """Most files in an answer of ``memory_search`` that names no limit."""
    exclude_globs: Patterns = ()
    language: Language = DEFAULT_LANGUAGE
    hybrid_weights: HybridWeights = HybridWeights()
    scoring: Literal["absolute", "orama"] = "absolute"
    """Scores that mean the same for every query, or those of Orama (SPEC S5)."""
    persist_to_disk_delay: Seconds = 30.0
    """Seconds without a change before the index is written."""
    persist_to_disk_max_delay: Seconds = Field(default_factory=_default_max_delay)
    """Seconds after which it is written although changes keep coming."""
    max_file_bytes: int = Field(default=10 * 1024 * 1024, ge=1)
    max_chunk_tokens: int | None = Field(default=None, ge=32, le=8192)
    """Longest chunk in tokens of the model; None takes what the model takes, at most 1,024."""
    save_handler: bool = True
    """Whether saved facts are handled here, as soon as a model is configured (SPEC A6)."""
    reconcile_interval: float = Field(default=60.0, ge=1, le=86_400)
    """Seconds between two comparisons of disk and index."""
    reread_interval: float = Field(default=86_400.0, ge=60, le=31_536_000)
    """Seconds in which each file is read once more although nothing tells of a change."""


class Settings(Group):
    """The groups of config.yml that matter here."""

    model_config = ConfigDict(extra="ignore")

    core: CoreSettings = CoreSettings()
    inference: InferenceSettings = InferenceSettings()
    memory: MemorySettings = MemorySettings()


def load(path: Path) -> Settings:
    """Reads and checks a configuration file.

    Raises:
        ConfigError: one line per problem, each naming file, line, key and remedy.
    """
    return _checked(read_yaml(path), path)


def from_mapping(config: Mapping[str, Any], path: Path) -> Settings:
    """Checks a configuration that somebody has read already.

    Args:
        config: As in the file.
        path: What stands in complaints for the file.

    Raises:
        ConfigError: one line per problem, each naming the key and the remedy.
    """
    return _checked(YamlFile(dict(config), {}), path)


def _checked(file: YamlFile, path: Path) -> Settings:
    for complaint in stray_groups(file, Settings):
        logger.warning("%s: %s", path, complaint)
    try:
        return Settings.model_validate(file.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError("\n".join(complaints(error, path, file, Settings))) from None
