"""How does Mistral embed through its SDK, ``mistralai``?"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mistralai.client import Mistral
from mistralai.client.utils.logger import NoOpLogger

from memory.providers.remote import Answer

if TYPE_CHECKING:
    from memory.providers.access import ProviderAccess
    from memory.providers.wire import Wire

_BASE_URL = "https://api.mistral.ai"


@final
class MistralApi:
    """The endpoint ``embeddings`` of Mistral, asked for one model."""

    def __init__(self, model: str, access: ProviderAccess, wire: Wire) -> None:
        self._model = model
        # The SDK's own logger, which an environment variable switches on, writes the key and texts.
        self._client = Mistral(
            api_key=access.key,
            server_url=access.base_url or _BASE_URL,
            client=wire.client,
            retry_config=None,
            debug_logger=NoOpLogger(),
        )
        # Spans hold the texts; another environment variable would send them away.
        vars(self._client.sdk_configuration)["telemetry"] = False

    def embed(self, texts: list[str], *, is_query: bool, timeout_s: float) -> Answer:  # noqa: ARG002 - Mistral's models make no difference
        """Makes one request."""
        answer = self._client.embeddings.create(
            model=self._model, inputs=texts, timeout_ms=round(timeout_s * 1000)
        )
        return Answer(
            vectors=[item.embedding for item in answer.data],
            indices=[item.index for item in answer.data],
            model=answer.model,
            num_tokens=answer.usage.total_tokens,
        )
