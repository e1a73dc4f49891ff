"""What is asked of a chat model, and what does it answer?

Messages and tools travel in the shape of OpenAI's chat completions, which both SDKs take. What the
assistant said is sent back as it came: DeepSeek insists on its ``reasoning_content`` beside tool
calls (https://api-docs.deepseek.com/guides/thinking_mode), Gemini on its thought signatures inside
of them (https://ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from memory.errors import ChatRejected, ChatUnavailable, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memory.errors import ChatError

Message = dict[str, Any]

_REJECTED = {
    401: "the API key is refused",
    402: "there is no credit left",
    403: "the API key does not allow it",
    404: "no such model or address",
}
_PASSING = frozenset({408, 409, 425, 429})
_QUOTA = "insufficient_quota"
_CODE = re.compile(r"[A-Za-z][\w.\[\]-]{0,63}")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called."""

    call_id: str
    name: str
    arguments: str
    """JSON as the model wrote it, so perhaps none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said once."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    num_tokens: int
    """Of request and reply together; 0 if the provider does not say."""
    message: Message = field(repr=False)
    """The assistant's message as it is sent back."""


class ChatClient(Protocol):
    """One chat model, asked without retries."""

    @property
    def provider(self) -> str:
        """Returns the name under which it is configured."""
        ...

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Message], timeout_s: float
    ) -> Reply:
        """Returns the next message of a conversation.

        Args:
            messages: The conversation so far.
            tools: What the model may call; none is called here.
            timeout_s: Longest silence of the server, seconds.

        Raises:
            ChatError: there is no usable answer; without the key, the prompt or the answer.
        """
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


def failure(
    provider: str, status: int, body: object, headers: Mapping[str, str], key: str
) -> ChatError:
    """Returns the error that an HTTP answer means.

    Of the body only the fields ``code``, ``type`` and ``param`` are used, because the message may
    quote the key (as OpenAI's 401 does) or the prompt.

    Args:
        provider: Name for the message.
        status: HTTP status.
        body: Parsed JSON, or anything else.
        headers: Looked up in lower case.
        key: What must not appear in the error.
    """
    codes = _codes(body, key)
    shown = f" ({', '.join(codes)})" if codes else ""
    if status in _REJECTED or _QUOTA in codes:
        why = _REJECTED.get(status, "the quota is used up")
        return ChatRejected(provider, f"{why}, HTTP {status}{shown}")
    if status in _PASSING or status >= 500:  # noqa: PLR2004 - the class of server errors
        reason = f"cannot answer now, HTTP {status}{shown}"
        return ChatUnavailable(provider, reason, _retry_after_s(headers))
    if status < 400:  # noqa: PLR2004 - a redirect would take the key to another host
        return ChatRejected(provider, f"HTTP {status}: redirects are not followed")
    return RequestRefused(provider, f"refuses the request, HTTP {status}{shown}")


def malformed(provider: str, error: Exception) -> ChatUnavailable:
    """Returns the error for an answer that is none: HTML, half a body, missing fields."""
    return ChatUnavailable(provider, f"malformed answer ({type(error).__name__})")


def _codes(body: object, key: str) -> tuple[str, ...]:
    if not isinstance(body, dict):
        return ()
    nested = body.get("error")
    fields = nested if isinstance(nested, dict) else body
    found = (fields.get(name) for name in ("code", "type", "param"))
    named = (code for code in found if isinstance(code, str) and _CODE.fullmatch(code))
    return tuple(dict.fromkeys(code for code in named if key not in code and code not in key))


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
