"""What happens between a model and its tools, and when does it end?

The model is asked, the tools it calls are answered, and it is asked again, until it calls none or a
limit is reached: steps, tokens, time, calls that it gets wrong.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.agent_run.outcome import Outcome, concluded, failed
from memory.agent_run.patience import PatientChat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memory.agent_run.chat import ChatClient, Message, Reply
    from memory.agent_run.files import RunFiles
    from memory.agent_run.toolbox import Toolbox
    from memory.clock import Clock

logger = logging.getLogger(__name__)

_CHARACTERS_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends, whatever its model wants."""

    max_steps: int = 24
    """Times the model is asked. The handler of the template wants a search for every noun, and
    some models call one tool at a time."""
    max_tokens: int = 400_000
    """Tokens of all requests and replies together."""
    max_tool_errors: int = 10
    max_calls_per_step: int = 16
    max_seconds: float = 600.0


class AgentRun:
    """One run of a handler.

    Args:
        client: The model.
        toolbox: Its tools.
        files: What they wrote.
        limits: When it ends.
        clock: Time of the limit.
        wait: Returns after so many seconds, or at once and True when the run must end.
    """

    def __init__(
        self,
        *,
        client: ChatClient,
        toolbox: Toolbox,
        files: RunFiles,
        clock: Clock,
        wait: Callable[[float], bool],
        limits: Limits | None = None,
    ) -> None:
        self._chat = PatientChat(client, clock, wait)
        self._toolbox = toolbox
        self._files = files
        self._limits = limits or Limits()
        self._clock = clock
        self._num_steps = self._num_tokens = 0

    def to_end(self, messages: Sequence[Message]) -> Outcome:
        """Runs until there is an outcome.

        Args:
            messages: System prompt and data.

        Raises:
            ChatError: the model does not answer; what was written before stays written.
        """
        conversation, tools = list(messages), self._toolbox.specifications()
        deadline = self._clock.monotonic() + self._limits.max_seconds
        while (over := self._limit_reached(deadline)) is None:
            reply = self._chat.complete(conversation, tools, deadline)
            self._count(reply, conversation)
            if not reply.tool_calls:
                written, refused = self._files.written, self._toolbox.last_refused_write
                return self._outcome(*concluded(reply.text, written, refused))
            if not self._chat.wait(0):  # nobody waits for what a run that must end writes
                conversation += self._answers(reply)
        return self._outcome(*failed(over, self._files.written))

    def _limit_reached(self, deadline: float) -> str | None:
        limits = self._limits
        if self._chat.wait(0):
            return "the run was stopped"
        if self._num_steps >= limits.max_steps:
            return "step limit"
        if self._num_tokens >= limits.max_tokens:
            return "token limit"
        if self._toolbox.num_errors >= limits.max_tool_errors:
            return "too many bad tool calls"
        return "time limit" if self._clock.monotonic() >= deadline else None

    def _count(self, reply: Reply, conversation: Sequence[Message]) -> None:
        self._num_steps += 1
        sent = sum(len(str(message)) for message in conversation) + len(str(reply.message))
        self._num_tokens += reply.num_tokens or sent // _CHARACTERS_PER_TOKEN

    def _answers(self, reply: Reply) -> list[Message]:
        """Returns the reply and a result for each of its calls, as the protocol wants."""
        answers: list[Message] = [reply.message]
        for number, call in enumerate(reply.tool_calls):
            if number < self._limits.max_calls_per_step:
                result = self._toolbox.answer(call)
            else:
                result = f"error: at most {self._limits.max_calls_per_step} calls at a time"
            answers.append({"role": "tool", "tool_call_id": call.call_id, "content": result})
        return answers

    def _outcome(self, line: str, is_done: bool) -> Outcome:  # noqa: FBT001 - parts of one result
        errors = self._toolbox.num_errors
        logger.info("%d steps, %d tokens, %d bad calls", self._num_steps, self._num_tokens, errors)
        return Outcome(line, is_done, self._num_steps, self._num_tokens, errors)
