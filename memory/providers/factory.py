"""Which embedder does the configuration ask for?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.errors import ConfigError
from memory.providers.local import (
    E5_SMALL,
    LOCAL,
    MINILM,
    USE_MULTILINGUAL,
    local_model,
)

if TYPE_CHECKING:
    from memory.providers.base import Embedder, ModelInfo, TokenCounter
    from memory.providers.local import LocalModel
    from memory.providers.one_by_one import Encoder


def model_info(provider: str, model: str | None) -> ModelInfo:
    """Returns what is known about the configured model; loads nothing.

    Raises:
        ConfigError: provider or model cannot be used; the message names those that can.
    """
    if provider != LOCAL:
        raise ConfigError(_unusable(provider))
    return local_model(model).info


def open_embedder(info: ModelInfo) -> Embedder:
    """Loads the model, which takes up to 2 s and 0.3 GB.

    Raises:
        ConfigError: there is no such model.
        ProviderRejected: its package is missing or damaged.
    """
    from memory.providers.one_by_one import OneByOneEmbedder  # noqa: PLC0415 - as the models

    if info.provider != LOCAL:
        raise ConfigError(_unusable(info.provider))
    return OneByOneEmbedder(info, _load(local_model(info.model)))


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
    # longest input that an estimate could miss.
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


def _unusable(provider: str) -> str:
    # Only a configuration that is refused needs them; the module costs 0.1 s.
    from memory.config import (  # noqa: PLC0415
        CHAT_ONLY_PROVIDERS,
        CUSTOM_PROVIDER_TYPE,
        NATIVE_PROVIDERS,
    )

    if provider in CHAT_ONLY_PROVIDERS:
        return (
            f"{provider}: this provider does not expose embeddings; {LOCAL},"
            f" {', '.join(NATIVE_PROVIDERS)} and {CUSTOM_PROVIDER_TYPE} do"
        )
    return f"{provider}: this version embeds with memory.embeddings.provider: {LOCAL} only"
