"""Can the memory embed as it is configured, and how is the provider reached?"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from pydantic import SecretStr

from memory.config import (
    CHAT_ONLY_PROVIDERS,
    CUSTOM_PROVIDER_TYPE,
    LOCAL,
    NATIVE_PROVIDERS,
    InferenceSettings,
)
from memory.errors import ConfigError
from memory.providers.access import OPENAI_COMPATIBLE, ProviderAccess

if TYPE_CHECKING:
    from memory.config import EmbeddingsSettings, Settings
    from memory.identity import Identity
    from memory.providers.base import ModelInfo

_KEY = re.compile(r"[!-~]+")


def disabled_reason(settings: Settings) -> str | None:
    """Returns the one line that says why the memory is off; None if it can start (SPEC E2)."""
    reason = _embedding_problem(settings.memory.embeddings, settings.inference)
    return f"memory: disabled \u2014 pending config ({reason})" if reason else None


def configured_model(settings: Settings) -> tuple[ModelInfo, ProviderAccess | None]:
    """Returns the configured model and how it is reached; loads nothing.

    Raises:
        ConfigError: it cannot be used as it is configured.
    """
    from memory.providers.factory import model_info  # noqa: PLC0415 - a listing needs no numpy

    embeddings = settings.memory.embeddings
    access = provider_access(str(embeddings.provider), settings.inference)
    return model_info(str(embeddings.provider), embeddings.model, access), access


def model_of_index(identity: Identity) -> ModelInfo:
    """Returns the model that made the vectors of an index, whatever is configured by now.

    Raises:
        ConfigError: this version does not know it.
    """
    from memory.providers.factory import model_info  # noqa: PLC0415 - as above

    is_native = identity.provider in NATIVE_PROVIDERS and not identity.base_url
    protocol = identity.provider if is_native else OPENAI_COMPATIBLE
    access = ProviderAccess(protocol, identity.base_url)
    return model_info(identity.provider, identity.model, access)


def access_to_model(model: ModelInfo, inference: InferenceSettings) -> ProviderAccess | None:
    """Returns how the model of an index is reached; None if it runs here.

    Raises:
        ConfigError: its provider is no longer configured, or at another address, where the vectors
            of a question may be others, and to which nobody meant to send this key.
    """
    access = provider_access(model.provider, inference)
    if access and access.base_url != model.base_url:
        raise ConfigError(
            f"the index was made with provider {model.provider} at"
            f" {model.base_url or 'its own address'}, which is not the configured one"
        )
    return access


def provider_access(provider: str, inference: InferenceSettings) -> ProviderAccess | None:
    """Returns how a provider is reached; None for the models that run here.

    Raises:
        ConfigError: it is not declared, exposes no embeddings, or its key cannot be read.
    """
    if provider == LOCAL:
        return None
    if problem := provider_problem(provider, inference):
        raise ConfigError(problem)
    custom = inference.custom_providers.get(provider)
    key = (inference.api_key(provider) or "").strip()
    place = f"inference.customProviders.{provider}.apiKey"
    if custom is None:
        place = f"inference.apiKeys.{provider}"
        if not key:
            raise ConfigError(f"{place} is empty; give the key, or env:NAME of a variable with it")
    if key and not _KEY.fullmatch(key):
        raise ConfigError(f"{place} holds a character that no key has")
    return ProviderAccess(
        OPENAI_COMPATIBLE if custom else provider,
        custom.base_url if custom else "",
        SecretStr(key) if key else None,
    )


def provider_problem(provider: str, inference: InferenceSettings | None = None) -> str | None:
    """Returns why a provider cannot embed, in one line; None if it can."""
    inference = inference or InferenceSettings()
    custom = inference.custom_providers.get(provider)
    if provider == LOCAL or (custom and custom.type == CUSTOM_PROVIDER_TYPE):
        return None
    if custom:
        return (
            f"inference.customProviders.{provider}: only type {CUSTOM_PROVIDER_TYPE} exposes"
            f" embeddings, not {custom.type}"
        )
    if provider in CHAT_ONLY_PROVIDERS:
        return (
            f"{provider}: this provider does not expose embeddings; {LOCAL},"
            f" {', '.join(NATIVE_PROVIDERS)} and {CUSTOM_PROVIDER_TYPE} custom providers do"
        )
    if provider in NATIVE_PROVIDERS and provider in inference.api_keys:
        return None
    return (
        f"provider {provider} is in neither inference.apiKeys ({', '.join(NATIVE_PROVIDERS)})"
        f" nor inference.customProviders; {_hint(provider, inference)}{LOCAL} needs no entry"
    )


def _embedding_problem(embeddings: EmbeddingsSettings, inference: InferenceSettings) -> str | None:
    # A provider that does not exist has no models, so it is named before a model is asked for.
    provider = embeddings.provider
    problem = provider_problem(provider, inference) if provider else None
    if problem and provider not in NATIVE_PROVIDERS:
        return problem
    named = {"provider": embeddings.provider, "model": embeddings.model}
    missing = [f"memory.embeddings.{key}" for key, value in named.items() if not value]
    return f"set {' and '.join(missing)}" if missing else problem


def _hint(provider: str, inference: InferenceSettings) -> str:
    known = [LOCAL, *NATIVE_PROVIDERS, *inference.custom_providers]
    near = difflib.get_close_matches(provider.lower(), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}? " if near and near[0] != provider else ""
