"""How is a chat model asked through the OpenAI SDK?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, final

from memory.agent_run.chat import Reply, ToolCall, failure, malformed
from memory.errors import ChatError, ChatUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.agent_run.chat import Message
    from memory.agent_run.endpoints import Endpoint

_SENT_BACK = ("role", "content", "tool_calls", "reasoning_content")


@final
class OpenAiChat:
    """A model behind any endpoint with OpenAI's chat completions."""

    def __init__(self, endpoint: Endpoint) -> None:
        # Takes a second to import, and no run may ever come.
        import openai  # noqa: PLC0415

        self._endpoint = endpoint
        self._errors = openai
        # A redirect would take the key to another host; retries are made within the run's limit.
        # An empty admin key keeps the SDK from reading one out of the environment.
        self._client = openai.OpenAI(
            api_key=endpoint.api_key,
            admin_api_key="",
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )
        # Read from the environment too, and meant for OpenAI alone.
        self._client.organization = self._client.project = None

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
        create: Any = self._client.chat.completions.create  # its types want a class per role
        try:
            completion = create(
                model=self._endpoint.model,
                messages=list(messages),
                tools=list(tools),
                timeout=timeout_s,
            )
            return _reply(completion)
        except Exception as error:  # noqa: BLE001 - the SDK lets errors of the parser through
            raise self._as_chat_error(error) from None

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _as_chat_error(self, error: Exception) -> ChatError:
        match error:
            case self._errors.APIStatusError():
                response = error.response
                key = self._endpoint.api_key
                return failure(
                    self.provider, response.status_code, error.body, response.headers, key
                )
            case self._errors.APITimeoutError():
                return ChatUnavailable(self.provider, "no answer in time")
            case self._errors.APIConnectionError():
                return ChatUnavailable(self.provider, "cannot be reached")
        return malformed(self.provider, error)


def _reply(completion: Any) -> Reply:
    said = completion.choices[0].message
    dumped = said.model_dump(exclude_unset=True)
    message: Message = {name: dumped[name] for name in _SENT_BACK if name in dumped}
    message |= {"role": "assistant", "content": dumped.get("content")}
    calls = _with_ids(message)
    text = message["content"]
    usage = completion.usage
    return Reply(
        text=text if isinstance(text, str) else "",
        tool_calls=calls,
        num_tokens=int(getattr(usage, "total_tokens", 0) or 0),
        message=message,
    )


def _with_ids(message: Message) -> tuple[ToolCall, ...]:
    """Returns the calls of a message; gives those an id that have none, as some servers do."""
    calls = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        if not isinstance(function["arguments"], str):
            function["arguments"] = json.dumps(function["arguments"])
        call["id"] = str(call.get("id") or f"call-{number}")
        call["type"] = "function"
        calls.append(ToolCall(call["id"], str(function["name"]), function["arguments"]))
    if not calls:
        message.pop("tool_calls", None)
    return tuple(calls)
