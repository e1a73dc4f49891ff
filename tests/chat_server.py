"""A chat server on loopback that says what its script says.

It speaks the chat completions of OpenAI and of Mistral, which differ in little, and misbehaves on
demand.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NUM_TOKENS = 100
"""What every answer claims to have cost."""


@dataclass(frozen=True)
class Turn:
    """One answer of the server."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def says(text: str | None, **extra: Any) -> Turn:
    """The model speaks and calls nothing."""
    return _completion({"role": "assistant", "content": text, **extra}, "stop")


def calls(*tools: tuple[str, Any], **extra: Any) -> Turn:
    """The model calls tools; arguments that are a string are sent as they are."""
    listed = [
        {
            "id": f"call{number:05}",
            "type": "function",
            "function": {"name": name, "arguments": _as_text(arguments)},
        }
        for number, (name, arguments) in enumerate(tools)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": listed, **extra}
    return _completion(message, "tool_calls")


def refuses(status: int, error: Mapping[str, Any] | None = None, **headers: str) -> Turn:
    """The server answers with an HTTP error."""
    body = json.dumps({"error": error or {}, **(error or {})}).encode()
    return Turn(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _completion(message: Mapping[str, Any], reason: str) -> Turn:
    usage = {"prompt_tokens": NUM_TOKENS - 1, "completion_tokens": 1, "total_tokens": NUM_TOKENS}
    answer = {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    }
    return Turn(json.dumps(answer).encode(), 200, {"content-type": "application/json"})


class ChatServer:
    """Answers the nth request with the nth turn; the last turn is repeated for ever.

    A script may also be a function, which sees the body of the request and decides.
    """

    def __init__(self) -> None:
        self.script: Sequence[Turn] | Callable[[Mapping[str, Any]], Turn] = (says("noop"),)
        self.requests: list[dict[str, Any]] = []
        """Bodies, in order."""
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._answered = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def answers(self, tool_call_id: str = "call00000") -> list[str]:
        """What the tools of that call id answered, as the last request tells it."""
        return [
            message["content"]
            for message in self.requests[-1]["messages"]
            if message["role"] == "tool" and message["tool_call_id"] == tool_call_id
        ]

    def has_answered(self, num_requests: int, timeout_s: float = 10.0) -> bool:
        """Waits for so many requests; returns False if they do not come in time."""
        with self._answered:
            return self._answered.wait_for(lambda: len(self.paths) >= num_requests, timeout_s)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def _turn(self, body: dict[str, Any], headers: dict[str, str], path: str) -> Turn:
        with self._answered:
            self.requests.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            self._answered.notify_all()
        if callable(self.script):
            return self.script(body)
        return self.script[min(len(self.requests), len(self.script)) - 1]


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # head and body in one packet, or each answer waits for an ACK

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            turn = server._turn(body, headers, self.path)
            self.send_response(turn.status)
            for name, value in {"content-type": "application/json", **turn.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(turn.body)))
            self.end_headers()
            with suppress(OSError):  # whoever asked may be gone
                self.wfile.write(turn.body)
                self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
