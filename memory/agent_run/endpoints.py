"""Where is the chat model of a run, and who speaks to it?

Every provider but Mistral is asked through the OpenAI SDK, at the OpenAI-compatible address that
its own documentation gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from memory.config import CUSTOM_PROVIDER_TYPE
from memory.errors import ConfigError, HandlerUnusable

if TYPE_CHECKING:
    from memory.config import CustomProvider, InferenceSettings, Settings

Sdk = Literal["openai", "mistral"]

MISTRAL = "mistral"
BASE_URLS = {
    # "Primarily intended to test and compare model capabilities", tools included:
    # https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk
    "anthropic": "https://api.anthropic.com/v1",
    "deepseek": "https://api.deepseek.com",  # https://api-docs.deepseek.com
    # https://ai.google.dev/gemini-api/docs/openai
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "grok": "https://api.x.ai/v1",  # https://docs.x.ai/api/integrations
    "groq": "https://api.groq.com/openai/v1",  # https://console.groq.com/docs/openai
    # the server of the SDK itself, which appends /v1: https://docs.mistral.ai/api
    MISTRAL: "https://api.mistral.ai",
    "openai": "https://api.openai.com/v1",  # https://platform.openai.com/docs/api-reference
}
"""Providers of ``inference.apiKeys`` that chat, and where."""
_NO_MODEL = "no model is configured; set inference.defaultModel, or model: in the handler"
_NO_KEY = "none"
"""What a server that asks for no key is sent; the SDK insists on one."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A chat model that can be asked."""

    provider: str
    model: str
    sdk: Sdk
    base_url: str
    api_key: str = field(repr=False)


def off_reason(settings: Settings) -> str | None:
    """Returns the one line that says why no run can ever come; None if one can.

    Which model a run has is known only once the handler's file is read.
    """
    inference = settings.inference
    if not settings.memory.save_handler:
        return "memory.saveHandler is false, so the host handles saved facts"
    if not (inference.default_model or inference.api_keys or inference.custom_providers):
        return _NO_MODEL
    return None


def endpoint_for(name: str, inference: InferenceSettings) -> Endpoint:
    """Returns the chat model of a handler.

    Args:
        name: ``provider/model``; empty takes ``inference.defaultModel``.
        inference: Keys and addresses; an entry of ``customProviders`` wins.

    Raises:
        HandlerUnusable: no model is configured, or this one cannot be asked; one line.
    """
    named = name or (inference.default_model or "").strip()
    if not named:
        raise HandlerUnusable(_NO_MODEL)
    provider, slash, model = (part.strip() for part in named.partition("/"))
    if not (provider and slash and model):
        raise HandlerUnusable(f"model {named[:60]!r} is not written as provider/model")
    custom = inference.custom_providers.get(provider)
    try:
        key = inference.api_key(provider)
    except ConfigError as error:
        raise HandlerUnusable(str(error)) from None
    if custom is not None:
        return _custom(provider, model, custom, key)
    return _native(provider, model, key)


def _custom(provider: str, model: str, custom: CustomProvider, key: str | None) -> Endpoint:
    if custom.type != CUSTOM_PROVIDER_TYPE:
        raise HandlerUnusable(
            f"inference.customProviders.{provider}: only type {CUSTOM_PROVIDER_TYPE} can run"
            f" handlers, not {custom.type}"
        )
    return Endpoint(provider, model, "openai", custom.base_url, key or _NO_KEY)


def _native(provider: str, model: str, key: str | None) -> Endpoint:
    if provider not in BASE_URLS:
        raise HandlerUnusable(
            f"provider {provider[:60]!r} of the handler's model is not in"
            f" inference.customProviders and none of {', '.join(sorted(BASE_URLS))}"
        )
    if not key:
        raise HandlerUnusable(f"provider {provider} has no key; set inference.apiKeys.{provider}")
    sdk: Sdk = "mistral" if provider == MISTRAL else "openai"
    return Endpoint(provider, model, sdk, BASE_URLS[provider], key)
