"""How long may a chunk be under the configured model?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.embedding_input import TokenLimits
from memory.providers.factory import token_counter

if TYPE_CHECKING:
    from memory.providers.base import ModelInfo

DEFAULT_MAX_CHUNK_TOKENS = 1024
"""Longer sections are split even for a model that takes more: one vector says one thing."""


def chunk_limits(configured: int | None, info: ModelInfo) -> TokenLimits:
    """Returns the limits of embedding inputs: never more than the model takes (SPEC C7).

    Args:
        configured: ``memory.maxChunkTokens``; None for the default.
        info: The configured model.

    Raises:
        ProviderRejected: the model's vocabulary is missing or damaged.
    """
    most = min(configured or DEFAULT_MAX_CHUNK_TOKENS, info.max_tokens)
    return TokenLimits(most, token_counter(info))
