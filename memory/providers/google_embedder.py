"""How does Gemini embed through its SDK, ``google-genai``?"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from google import genai
from google.genai import types

from memory.providers.remote import Answer

if TYPE_CHECKING:
    from memory.providers.access import ProviderAccess
    from memory.providers.wire import Wire

_BASE_URL = "https://generativelanguage.googleapis.com"
_TOLD_BY_TASK_TYPE = "gemini-embedding-001"
"""Later models ignore task types and have prefixes, see ``remote_models``."""


@final
class GoogleApi:
    """``batchEmbedContents`` of the Gemini API, asked for one model."""

    def __init__(self, model: str, access: ProviderAccess, wire: Wire) -> None:
        self._model = model
        self._has_task_type = model.removeprefix("models/") == _TOLD_BY_TASK_TYPE
        # What is not given here the SDK takes from the environment: another service, another
        # address. Without retry options it makes one try.
        self._client = genai.Client(
            vertexai=False,
            api_key=access.key,
            http_options=types.HttpOptions(
                base_url=access.base_url or _BASE_URL,
                api_version="v1beta",
                httpx_client=wire.client,
            ),
        )

    def embed(self, texts: list[str], *, is_query: bool, timeout_s: float) -> Answer:
        """Makes one request with one content per text: a list of strings would be one content."""
        task = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        answer = self._client.models.embed_content(
            model=self._model,
            contents=[types.Content(parts=[types.Part(text=text)]) for text in texts],
            config=types.EmbedContentConfig(
                task_type=task if self._has_task_type else None,
                http_options=types.HttpOptions(timeout=round(timeout_s * 1000)),
            ),
        )
        usage = answer.usage_metadata
        return Answer(
            vectors=[item.values for item in answer.embeddings or ()],
            num_tokens=usage.prompt_token_count if usage else None,
        )
