"""How is a chat model asked through the Mistral SDK?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, final

from memory.agent_run.chat import Reply, ToolCall, failure, malformed
from memory.errors import ChatError, ChatUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.agent_run.chat import Message
    from memory.agent_run.endpoints import Endpoint

_MS_PER_S = 1000


@final
class MistralChat:
    """A model of Mistral."""

    def __init__(self, endpoint: Endpoint) -> None:
        # Take a second to import, and no run may ever come.
        import httpx2  # noqa: PLC0415
        from mistralai.client import Mistral, errors  # noqa: PLC0415

        self._endpoint = endpoint
        self._errors, self._http = errors, httpx2
        # A redirect would take the key to another host; without a retry config nothing is retried.
        self._connections = httpx2.Client(follow_redirects=False)
        self._client = Mistral(
            api_key=endpoint.api_key, server_url=endpoint.base_url, client=self._connections
        )

    @property
    def provider(self) -> str:
        """Returns the name under which the model is configured."""
        return self._endpoint.provider

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Message], timeout_s: float
    ) -> Reply:
        """Returns the next message of a conversation.

        Raises:
            ChatError: there is no usable answer.
        """
        complete: Any = self._client.chat.complete  # its types want a class per role
        try:
            completion = complete(
                model=self._endpoint.model,
                messages=list(messages),
                tools=list(tools),
                timeout_ms=max(1, int(timeout_s * _MS_PER_S)),
            )
            return _reply(completion)
        except Exception as error:  # noqa: BLE001 - the SDK lets errors of the parser through
            raise self._as_chat_error(error) from None

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()

    def _as_chat_error(self, error: Exception) -> ChatError:
        match error:
            case self._errors.ResponseValidationError():
                return malformed(self.provider, error)
            case self._errors.MistralError():
                key = self._endpoint.api_key
                body = _json(error.body)
                return failure(self.provider, error.status_code, body, error.headers, key)
            case self._http.TimeoutException():
                return ChatUnavailable(self.provider, "no answer in time")
            case self._http.TransportError():
                return ChatUnavailable(self.provider, "cannot be reached")
        return malformed(self.provider, error)


def _reply(completion: Any) -> Reply:
    said = completion.choices[0].message
    calls, sent_back = [], []
    for number, call in enumerate(said.tool_calls or ()):
        arguments = call.function.arguments
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        # The SDK's own default for a call without an id is the text "null".
        call_id = call.id if call.id not in (None, "", "null") else f"call{number:05}"
        calls.append(ToolCall(call_id, call.function.name, written))
        function = {"name": call.function.name, "arguments": written}
        sent_back.append({"id": call_id, "type": "function", "function": function})
    message: Message = {"role": "assistant", **said.model_dump(include={"content"})}
    if sent_back:
        message["tool_calls"] = sent_back
    return Reply(
        text=_text(message.get("content")),
        tool_calls=tuple(calls),
        num_tokens=int(completion.usage.total_tokens or 0),
        message=message,
    )


def _text(content: object) -> str:
    """Returns the spoken part of a message; reasoning models send it in pieces."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _json(body: str) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None
