"""How does a request reach a provider, for how long, and what exactly came back?

One HTTP client below each SDK. It follows no redirect, since the key would travel along (FAULTS
63), and remembers the answer, so that a failure is told by what was on the wire and not by which of
its exceptions an SDK makes of it.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import httpx2

from memory.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""More than any answer: 512 vectors of dimension 4,096 in decimal notation have 50 MB."""
_DEADLINE = "deadline"
_ABOUT_THE_MACHINE = "x-stainless-"
"""Headers in which SDKs tell operating system, architecture and interpreter."""


class Stopwatch(Protocol):
    """Time that never goes back."""

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment."""
        ...


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a request may take, in seconds."""

    connect_s: float = 10.0
    documents_s: float = 60.0
    """Each wait for the server, and the whole answer from the request on."""
    query_s: float = 10.0
    """As ``documents_s``, for a question."""


class Wire:
    """The HTTP client of one embedder; may be used from several threads at once."""

    def __init__(self, timeouts: Timeouts, clock: Stopwatch | None = None) -> None:
        self.timeouts = timeouts
        self._watch = _Watch(timeouts.connect_s, clock or SystemClock())
        self.client = httpx2.Client(
            event_hooks={
                "request": [self._watch.on_request],
                "response": [self._watch.on_response],
            },
            follow_redirects=False,
            timeout=httpx2.Timeout(timeouts.documents_s, connect=timeouts.connect_s),
        )
        # The SDKs leave a client that they did not make to whoever made it.
        weakref.finalize(self, self.client.close)

    def forget(self) -> None:
        """Lets go of the last answer to this thread."""
        self._watch.local.answer = None

    def answer(self) -> httpx2.Response | None:
        """Returns the last answer to this thread since ``forget``; its body may be incomplete."""
        answer: httpx2.Response | None = getattr(self._watch.local, "answer", None)
        return answer


class _Watch:
    """Sees every request and every answer; holds no wire, so that one can be collected."""

    def __init__(self, connect_s: float, clock: Stopwatch) -> None:
        self.local = threading.local()
        self._connect_s = connect_s
        self._clock = clock

    def on_request(self, request: httpx2.Request) -> None:
        limits = request.extensions["timeout"]  # of the call: SDKs set all four to the same value
        limits["connect"] = limits["pool"] = self._connect_s
        request.extensions[_DEADLINE] = self._clock.monotonic() + limits["read"]
        for name in list(request.headers):
            if name.startswith(_ABOUT_THE_MACHINE):
                del request.headers[name]

    def on_response(self, response: httpx2.Response) -> None:
        self.local.answer = response
        stream, deadline = response.stream, response.request.extensions[_DEADLINE]
        if isinstance(stream, httpx2.SyncByteStream):
            response.stream = _Bounded(stream, deadline, self._clock)


class _Bounded(httpx2.SyncByteStream):
    """The body of an answer, which has to end in time and at some size."""

    def __init__(self, stream: httpx2.SyncByteStream, deadline: float, clock: Stopwatch) -> None:
        self._stream = stream
        self._deadline = deadline
        self._clock = clock

    def __iter__(self) -> Iterator[bytes]:
        num_bytes = 0
        for part in self._stream:
            num_bytes += len(part)
            if num_bytes > MAX_ANSWER_BYTES:
                raise httpx2.ReadError("the answer is too long")
            if self._clock.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("the answer does not end")
            yield part

    def close(self) -> None:
        self._stream.close()
