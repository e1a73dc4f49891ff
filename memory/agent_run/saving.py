"""How is one ``skills:memory`` event handled, from its file to the line that says what was done?"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.agent_run.endpoints import endpoint_for
from memory.agent_run.files import RunFiles
from memory.agent_run.handler import resolve
from memory.agent_run.mistral_chat import MistralChat
from memory.agent_run.openai_chat import OpenAiChat
from memory.agent_run.prompts import NONCE_BYTES, messages
from memory.agent_run.run import AgentRun
from memory.agent_run.toolbox import Toolbox
from memory.globs import Globs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memory.agent_run.chat import ChatClient
    from memory.agent_run.endpoints import Endpoint
    from memory.agent_run.outcome import Outcome
    from memory.agent_run.run import Limits
    from memory.agent_run.toolbox import SearchTool
    from memory.clock import Clock
    from memory.config import Settings
    from memory.outbox import SkillEvent


def connect(endpoint: Endpoint) -> ChatClient:
    """Returns a client of the SDK that speaks to an endpoint."""
    return MistralChat(endpoint) if endpoint.sdk == "mistral" else OpenAiChat(endpoint)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every run needs."""

    settings: Settings
    workspace: Path
    search: SearchTool
    """Answers ``memory_search``."""
    clock: Clock
    wait: Callable[[float], bool]
    """Returns after so many seconds, or at once and True when the run must end."""
    connect: Callable[[Endpoint], ChatClient] = connect
    limits: Limits | None = None


def handle(event: SkillEvent, around: Surroundings) -> Outcome:
    """Runs the handler of an event.

    The handler's file is read anew for each event, so an edit of it counts at once.

    Raises:
        HandlerUnusable: there is no handler or no model for it; no model was asked.
        WorkspaceError: the workspace cannot be read for now.
        ChatError: the model does not answer.
    """
    settings = around.settings
    handler = resolve(around.workspace, event.skill)
    client = around.connect(endpoint_for(handler.model, settings.inference))
    try:
        files = RunFiles(
            around.workspace,
            writable=Globs(settings.core.writable_paths),
            exclude=Globs(settings.memory.exclude_globs),
            max_file_bytes=settings.memory.max_file_bytes,
        )
        run = AgentRun(
            client=client,
            toolbox=Toolbox(handler.tools, files, around.search),
            files=files,
            clock=around.clock,
            wait=around.wait,
            limits=around.limits,
        )
        return run.to_end(messages(handler, event, secrets.token_hex(NONCE_BYTES)))
    finally:
        client.close()
