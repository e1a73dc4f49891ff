"""Which embedder does the configuration ask for?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.errors import ConfigError, ProviderRejected
from memory.providers.access import GOOGLE, MISTRAL
from memory.providers.local import (
    E5_SMALL,
    LOCAL,
    MINILM,
    USE_MULTILINGUAL,
    local_model,
)

if TYPE_CHECKING:
    from memory.providers.access import ProviderAccess
    from memory.providers.base import Embedder, ModelInfo, TokenCounter
    from memory.providers.local import LocalModel
    from memory.providers.one_by_one import Encoder
    from memory.providers.remote import EmbeddingApi
    from memory.providers.request_slots import RequestSlots
    from memory.providers.wire import Wire

_REINSTALL = "pip install --force-reinstall agent-memory-actors"
_REMEDIES = {GOOGLE: "pip install 'agent-memory-actors[google]'"}


def model_info(provider: str, model: str | None, access: ProviderAccess | None = None) -> ModelInfo:
    """Returns what is known about the configured model; loads nothing.

    Args:
        provider: ``local`` or the id of an entry under ``inference``.
        model: Name of the model.
        access: From ``provider_access``; None for ``local``.

    Raises:
        ConfigError: provider or model cannot be used; the message names those that can.
    """
    if provider == LOCAL:
        return local_model(model).info
    if access is None:
        raise ConfigError(_unusable(provider))
    if not model:
        raise ConfigError("memory.embeddings.model is missing")
    from memory.providers.remote_models import remote_model_info  # noqa: PLC0415 - as below

    return remote_model_info(provider, model, access)


def open_embedder(
    info: ModelInfo, access: ProviderAccess | None = None, slots: RequestSlots | None = None
) -> Embedder:
    """Loads the model or the SDK, which takes up to 2 s and 0.3 GB; makes no request.

    Args:
        info: The model.
        access: To its provider; None for ``local``.
        slots: Bounds the requests that several threads make at once, questions apart.

    Raises:
        ConfigError: there is no such model.
        ProviderRejected: its package is missing or damaged.
    """
    if info.provider == LOCAL:
        from memory.providers.one_by_one import OneByOneEmbedder  # noqa: PLC0415 - as the models

        return OneByOneEmbedder(info, _load(local_model(info.model)))
    if access is None:
        raise ConfigError(_unusable(info.provider))
    return _open_remote(info, access, slots)


def token_counter(info: ModelInfo) -> TokenCounter:
    """Returns the counter of the model, exact or never too low; loads no onnxruntime.

    Raises:
        ProviderRejected: the package that holds the vocabulary is missing or damaged.
    """
    # Each of these modules costs an import that only its own model needs.
    if info.provider == LOCAL and info.model == MINILM:
        from memory.providers.wordpiece import word_piece_counter  # noqa: PLC0415

        return word_piece_counter()
    if info.provider == LOCAL and info.model == E5_SMALL:
        from memory.providers.e5_small import e5_small_counter  # noqa: PLC0415

        return e5_small_counter(local_model(E5_SMALL))
    # The tokenizer of universal-sentence-encoder takes 1 s and 45 MB to load, and the model has no
    # longest input that an estimate could miss. Providers behind a network do not show theirs.
    from memory.embedding_input import estimate_tokens  # noqa: PLC0415

    return estimate_tokens


def _load(model: LocalModel) -> Encoder:
    # Each of these modules needs a package that the other models do without.
    if model.info.model == USE_MULTILINGUAL:
        from memory.providers.use_multilingual import UseMultilingualEncoder  # noqa: PLC0415

        return UseMultilingualEncoder(model)
    if model.info.model == E5_SMALL:
        from memory.providers.e5_small import E5SmallEncoder  # noqa: PLC0415

        return E5SmallEncoder(model)
    from memory.providers.minilm import MiniLmEncoder  # noqa: PLC0415

    return MiniLmEncoder(model)


def _open_remote(info: ModelInfo, access: ProviderAccess, slots: RequestSlots | None) -> Embedder:
    # The HTTP client and each SDK cost 0.3 to 1.5 s, which the other models do without.
    try:
        from memory.providers.remote import RemoteEmbedder  # noqa: PLC0415
        from memory.providers.wire import Timeouts, Wire  # noqa: PLC0415

        wire = Wire(Timeouts())
        return RemoteEmbedder(info, _api(info.model, access, wire), wire, access.key, slots)
    except ImportError as error:
        reason = f"package {error.name or 'unknown'} is missing"
        remedy = _REMEDIES.get(access.protocol, _REINSTALL)
        refusal = ProviderRejected(info.provider, f"{reason}; run: {remedy}")
    raise refusal


def _api(model: str, access: ProviderAccess, wire: Wire) -> EmbeddingApi:
    if access.protocol == GOOGLE:
        from memory.providers.google_embedder import GoogleApi  # noqa: PLC0415

        return GoogleApi(model, access, wire)
    if access.protocol == MISTRAL:
        from memory.providers.mistral_embedder import MistralApi  # noqa: PLC0415

        return MistralApi(model, access, wire)
    from memory.providers.openai_embedder import OpenAiApi  # noqa: PLC0415

    return OpenAiApi(model, access, wire)


def _unusable(provider: str) -> str:
    # Only a configuration that is refused needs it; the module costs 0.1 s.
    from memory.embedding_config import provider_problem  # noqa: PLC0415

    return provider_problem(provider) or f"provider {provider} needs a model"
