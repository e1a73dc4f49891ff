"""What may a run do, and what is answered to a call it gets wrong?

Exactly the tools that the handler names exist; whatever else is asked for is an error that the
model is told, so that it can do better. Which tools those are depends on the handler's file alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from memory.agent_run.files import MAX_WRITE_BYTES, RunFiles, ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.agent_run.chat import Message, ToolCall

logger = logging.getLogger(__name__)

SearchTool = Callable[[str, int], str]
"""Query and number of files -> text for the model; may raise ToolError."""

MAX_RESULT_CHARACTERS = 64_000
MAX_ARGUMENT_CHARACTERS = 4 * MAX_WRITE_BYTES
MAX_QUERY_CHARACTERS = 2_000
MAX_FILES_FOUND = 20


class _Arguments(BaseModel):
    """Arguments of one tool: strict about types, nothing extra; null is the same as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


class _Read(_Arguments):
    path: str = Field(description="Workspace-relative path, such as wiki/people/alice.md.")
    first_line: int = Field(1, ge=1, alias="from", description="First line, counted from 1.")
    lines: int = Field(2000, ge=1, le=2000, description="Most lines to return.")


class _List(_Arguments):
    path: str = Field(description="Workspace-relative folder; empty for the workspace itself.")


class _Write(_Arguments):
    path: str = Field(description="Workspace-relative path of a markdown file.")
    content: str = Field(description="The whole new content of the file.")


class _Search(_Arguments):
    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What to find.")
    limit: int = Field(5, ge=1, le=MAX_FILES_FOUND, description="Most files to return.")


@dataclass(frozen=True, slots=True)
class _Tool:
    description: str
    arguments: type[_Arguments]
    call: Callable[[Any], str]


class Toolbox:
    """The tools of one run.

    Args:
        names: Tools that the handler names.
        files: What they read and write.
        search: Answers ``memory_search``.
    """

    def __init__(self, names: Sequence[str], files: RunFiles, search: SearchTool) -> None:
        self._files = files
        self._search = search
        self._tools = {name: tool for name, tool in self._known().items() if name in names}
        self.num_errors = 0
        """Calls that were answered with an error."""
        self.last_refused_write = ""
        """Why the last ``fs_write`` that failed did."""

    def specifications(self) -> list[Message]:
        """Returns the tools as a model is told of them."""
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": tool.description,
                    "parameters": _schema(tool.arguments),
                },
            }
            for name, tool in self._tools.items()
        ]

    def answer(self, call: ToolCall) -> str:
        """Returns the result of a call, or what is wrong with it; never raises for a bad call."""
        try:
            result = self._result(call)
        except ToolError as error:
            self.num_errors += 1
            if call.name == "fs_write":
                self.last_refused_write = str(error)
            logger.info("a call of %.40r was refused", call.name)
            return f"error: {error}"
        if len(result) > MAX_RESULT_CHARACTERS:
            return f"{result[:MAX_RESULT_CHARACTERS]}\n[cut off]"
        return result

    def _result(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(f"there is no such tool; there are {', '.join(self._tools)}")
        if len(call.arguments) > MAX_ARGUMENT_CHARACTERS:
            raise ToolError(f"the arguments are longer than {MAX_ARGUMENT_CHARACTERS} characters")
        try:
            arguments = tool.arguments.model_validate_json(_encodable(call.arguments) or "{}")
        except ValidationError as error:
            raise ToolError(f"bad arguments: {_what(error)}") from None
        return tool.call(arguments)

    def _known(self) -> dict[str, _Tool]:
        files = self._files
        return {
            "fs_list": _Tool(
                "Lists the markdown files and folders in a folder.",
                _List,
                lambda given: files.listing(given.path),
            ),
            "fs_read": _Tool(
                "Returns a markdown file of the workspace, or some lines of it.",
                _Read,
                lambda given: files.read(given.path, given.first_line, given.lines),
            ),
            "fs_write": _Tool(
                "Creates a markdown file, or replaces one that you have read in full. Give the"
                " whole content, including everything of the old one that shall stay.",
                _Write,
                lambda given: files.write(given.path, given.content),
            ),
            "memory_search": _Tool(
                "Searches the memory; returns the best files with scores, lines and snippets.",
                _Search,
                lambda given: self._search(given.query, given.limit),
            ),
        }


def _schema(arguments: type[_Arguments]) -> Message:
    """Returns a JSON schema without what providers have no use for."""
    schema = arguments.model_json_schema(by_alias=True)
    fields = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
    }
    return {
        "type": "object",
        "properties": fields,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _encodable(text: str) -> str:
    """Returns text that pydantic takes; a lone surrogate makes the JSON invalid."""
    return text.encode("utf-8", "replace").decode()


def _what(error: ValidationError) -> str:
    """Returns the first problem without the value, which may be anything."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"])[:60]
    return f"{where}: {first['msg'][:200]}" if where else first["msg"][:200]
