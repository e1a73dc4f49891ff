"""A loopback server that speaks the embedding protocols of OpenAI, Mistral and Gemini.

::

    with EmbeddingServer() as server:
        server.faults += [Fault("status", status=429, headers={"retry-after": "1"}), Fault("nan")]
        access = server.access("openai")          # where, and with which key
        ...
        assert server.num_requests == 2

Faults are used up one a request, in order; then every answer is like ``server.outage``, and
without that it is right. ``server.limits`` makes it refuse what the real providers refuse, in their
words. Every request is kept in ``server.requests``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import SecretStr

from memory.providers.access import GOOGLE, MISTRAL, OPENAI, OPENAI_COMPATIBLE, ProviderAccess

if TYPE_CHECKING:
    from collections.abc import Callable

CANARY = "sk-canary/KEY+that=nobody&may-see-0123456789"
"""A key with characters that are percent-encoded in addresses."""
PATHS = {OPENAI: "/openai/v1", OPENAI_COMPATIBLE: "/compatible/v1", MISTRAL: "/mistral", GOOGLE: ""}

WRONG_VECTORS = (
    "short",
    "long",
    "empty",
    "null_number",
    "null_vector",
    "no_vector",
    "ragged",
    "wrong_dim",
    "nan",
    "infinity",
    "zero",
    "bad_base64",
)
"""Answers with status 200 whose vectors cannot be used, in every protocol."""
WRONG_INDICES = ("duplicate_index", "missing_index", "index_out_of_range")
"""As ``WRONG_VECTORS``, where the protocol has indices."""
BROKEN = ("html", "cut", "reset", "hang", "not_json")
"""What is no answer at all."""


@dataclass(frozen=True)
class Fault:
    """What one answer shall be like.

    ``kind`` is one of ``WRONG_VECTORS``, ``WRONG_INDICES``, ``BROKEN``; ``reversed`` (items in
    another order, with their indices); ``other_model``; ``redirect`` (307 to the same path at
    ``text``); ``echo`` (401 that repeats the key, encoded too, and the texts); ``status`` (with
    ``status``, ``headers`` and ``text``, a JSON body).
    """

    kind: str
    status: int = 200
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ServerLimits:
    """What is refused with status 400."""

    max_inputs: int = 1_000_000
    max_tokens: int = 1_000_000_000
    max_tokens_per_input: int = 1_000_000_000


PUBLISHED = {
    OPENAI: ServerLimits(max_inputs=2048, max_tokens=300_000, max_tokens_per_input=8192),
    MISTRAL: ServerLimits(max_inputs=150, max_tokens=16_384, max_tokens_per_input=8192),
    GOOGLE: ServerLimits(max_inputs=100, max_tokens_per_input=2048),
}
"""What the providers take; of Mistral's count only that 150 pass is known (FAULTS 3.6)."""


@dataclass(frozen=True)
class Request:
    """What was asked."""

    path: str
    headers: dict[str, str]
    texts: list[str]
    task: str | None
    """Gemini's task type."""


class EmbeddingServer:
    """The server; ``with`` starts it in threads and ends it."""

    def __init__(self, dim: int = 8) -> None:
        self.dim = dim
        self.reset()
        self._lock = threading.Lock()
        self._released = threading.Event()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )

    def reset(self) -> None:
        """Makes it healthy, and forgets what was asked."""
        self.faults: deque[Fault] = deque()
        self.outage: Fault | None = None
        """What every answer is like for which ``faults`` has nothing."""
        self.limits = ServerLimits()
        self.count_tokens: Callable[[str], int] = _num_words
        """By default a token is a white-space separated word."""
        self.num_refused = 0
        """Requests that held poison or were beyond a limit."""
        self.poison: set[str] = set()
        """Words; a request with a text that holds one of them is refused with status 400."""
        self.requests: list[Request] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def num_requests(self) -> int:
        return len(self.requests)

    @property
    def num_inputs(self) -> int:
        return sum(len(request.texts) for request in self.requests)

    @property
    def num_tokens(self) -> int:
        return sum(self.count_tokens(text) for request in self.requests for text in request.texts)

    def access(self, protocol: str, key: str = CANARY) -> ProviderAccess:
        """Returns how to reach this server as a provider of that protocol."""
        return ProviderAccess(protocol, self.url + PATHS[protocol], SecretStr(key) if key else None)

    def vector(self, text: str) -> np.ndarray:
        """Returns the unit vector of a text, always the same one, shape (dim,), float64."""
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        vector = np.random.default_rng(seed).normal(size=self.dim)
        return vector / np.linalg.norm(vector)

    def release(self) -> None:
        """Lets requests that hang end."""
        self._released.set()

    def keep(self, request: Request) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            return self.faults.popleft() if self.faults else self.outage

    def wait(self) -> None:
        self._released.wait(timeout=30)

    def refusal(self, protocol: str, texts: list[str]) -> str | None:
        """Returns the body with which these texts are refused; None if they are not."""
        counts = [self.count_tokens(text) for text in texts]
        number, total, longest = len(texts), sum(counts), max(counts, default=0)
        if any(word in text for word in self.poison for text in texts):
            body = _error("an input cannot be embedded")
        elif number > self.limits.max_inputs:
            body = _too_many_inputs(protocol, number, self.limits.max_inputs)
        elif total > self.limits.max_tokens:
            body = _too_many_tokens(protocol, total, self.limits.max_tokens)
        elif longest > self.limits.max_tokens_per_input:
            most = self.limits.max_tokens_per_input
            body = _error(f"This model's maximum context length is {most} tokens, not {longest}.")
        elif "" in texts:
            body = _error("input cannot be an empty string")
        else:
            return None
        with self._lock:
            self.num_refused += 1
        return json.dumps(body)


def _num_words(text: str) -> int:
    return len(text.split())


def _error(message: str, code: str | None = None) -> dict:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


def _too_many_inputs(protocol: str, number: int, most: int) -> dict:
    """Words of OpenAI, Mistral (edgequake-llm#74) and Gemini (geldata/gel#9032)."""
    if protocol == MISTRAL:
        return _mistral_error("Too many inputs in request, split into more batches.")
    if protocol == GOOGLE:
        told = f"* BatchEmbedContentsRequest.requests: at most {most} requests can be in one batch"
        return {"error": {"code": 400, "message": f"{told}\n", "status": "INVALID_ARGUMENT"}}
    told = f"Expected an array with maximum length {most}, but got one with length {number}."
    return _error(f"Invalid 'input': array too long. {told}", "array_above_max_length")


def _too_many_tokens(protocol: str, number: int, most: int) -> dict:
    """Words of Mistral (chroma#5597) and OpenAI (gpt-researcher#1524)."""
    if protocol == MISTRAL:
        return _mistral_error("Too many tokens overall, split into more batches.")
    told = f"Requested {number} tokens, max {most} tokens per request"
    return _error(told, "max_tokens_per_request")


def _mistral_error(message: str) -> dict:
    return {"object": "error", "message": message, "type": "invalid_request_prompt", "code": "3210"}


class _Handler(BaseHTTPRequestHandler):
    owner: EmbeddingServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes: each answer would take 40 ms

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        protocol, texts, task = _read(self.path, body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        fault = self.owner.keep(Request(self.path, headers, texts, task))
        refusal = None if fault else self.owner.refusal(protocol, texts)
        if refusal:
            self._send(400, {}, refusal)
        elif fault is None or fault.kind in _SHAPES:
            self._send(200, {}, self._answer(protocol, body, texts, fault))
        else:
            self._fail(fault, self._answer(protocol, body, texts, None), texts)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Says nothing."""

    def _answer(
        self, protocol: str, body: dict[str, object], texts: list[str], fault: Fault | None
    ) -> str:
        kind = fault.kind if fault else ""
        vectors = [self.owner.vector(text).tolist() for text in texts]
        as_base64 = body.get("encoding_format") == "base64" and kind not in _NOT_IN_BASE64
        tokens = sum(map(self.owner.count_tokens, texts))
        items = [{"embedding": vector, "index": at} for at, vector in enumerate(vectors)]
        _SHAPES.get(kind, lambda items: None)(items)
        if protocol == GOOGLE:
            values = [
                {"values": item["embedding"]} if "embedding" in item else {} for item in items
            ]
            return json.dumps({"embeddings": values, "usageMetadata": {"promptTokenCount": tokens}})
        for item in items if as_base64 else ():
            packed = np.array(item["embedding"], "<f4").tobytes()
            item["embedding"] = base64.b64encode(packed).decode()
        model = "another-model" if kind == "other_model" else body["model"]
        return json.dumps(
            {
                "id": "1",
                "object": "list",
                "model": model,
                "data": [{"object": "embedding", **item} for item in items],
                "usage": {
                    "prompt_tokens": tokens,
                    "completion_tokens": 0,
                    "total_tokens": tokens,
                },
            }
        )

    def _fail(self, fault: Fault, answer: str, texts: list[str]) -> None:
        match fault.kind:
            case "html":
                self._send(200, {"content-type": "text/html"}, "<html>Sign in</html>")
            case "not_json":
                self._send(200, {}, answer[: len(answer) // 2])
            case "redirect":
                self._send(307, {"location": fault.text + self.path}, "")
            case "echo":
                self._send(401, {}, json.dumps({"error": {"message": self._echo(texts)}}))
            case "cut":
                self._send(200, {}, answer[: len(answer) // 2], length=len(answer))
                self.close_connection = True
            case "hang":
                self.owner.wait()
                self.close_connection = True
            case "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
            case _:
                self._send(fault.status, fault.headers, fault.text)

    def _echo(self, texts: list[str]) -> str:
        key = self.headers.get("x-goog-api-key") or self.headers["authorization"].split()[1]
        quoted = "".join(letter if letter.isalnum() else f"%{ord(letter):02x}" for letter in key)
        return f"wrong key {key}, {quoted}, {key[:12]}***{key[-9:]}; {' '.join(texts)}"

    def _send(
        self, status: int, headers: dict[str, str], text: str, *, length: int | None = None
    ) -> None:
        data = text.encode()
        self.send_response_only(status)
        usual = {"date": self.date_time_string(), "content-type": "application/json"}
        for name, value in (usual | headers).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)


def _read(path: str, body: dict) -> tuple[str, list[str], str | None]:
    """Returns protocol, texts and task type of a request."""
    if path.endswith(":batchEmbedContents"):
        requests = body["requests"]
        texts = ["".join(part["text"] for part in each["content"]["parts"]) for each in requests]
        return GOOGLE, texts, requests[0].get("taskType") if requests else None
    protocol = MISTRAL if path.startswith(PATHS[MISTRAL]) else OPENAI
    texts = body["input"]
    return protocol, [texts] if isinstance(texts, str) else texts, None


def _fill(number: object):
    def change(items: list[dict]) -> None:
        items[0]["embedding"] = [number] * len(items[0]["embedding"])

    return change


def _set(key: str, value: object):
    def change(items: list[dict]) -> None:
        items[-1][key] = value

    return change


_SHAPES = {
    "": lambda items: None,
    "other_model": lambda items: None,
    "reversed": lambda items: items.reverse(),
    "short": lambda items: items.pop(),
    "long": lambda items: items.append(dict(items[0], index=len(items))),
    "empty": lambda items: items.clear(),
    "null_number": lambda items: items[0]["embedding"].__setitem__(0, None),
    "null_vector": _set("embedding", None),
    "no_vector": lambda items: items[-1].pop("embedding"),
    "ragged": lambda items: items[-1]["embedding"].pop(),
    "wrong_dim": lambda items: [item["embedding"].append(0.5) for item in items],
    "nan": _fill(float("nan")),
    "infinity": _fill(float("inf")),
    "zero": _fill(0.0),
    "bad_base64": _set("embedding", "%%% no base64"),
    "duplicate_index": _set("index", 0),
    "missing_index": lambda items: items[-1].pop("index"),
    "index_out_of_range": _set("index", 7),
}
_NOT_IN_BASE64 = {"null_number", "null_vector", "no_vector", "bad_base64"}
