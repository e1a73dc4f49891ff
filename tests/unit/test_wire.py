"""Does a request end in time and at some size?"""

from __future__ import annotations

import gc

import httpx2
import pytest

from memory.providers import wire as module
from memory.providers.wire import Timeouts, Wire


class Ticking:
    """A clock that a second passes on at each look."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1
        return self.now


class Parts(httpx2.SyncByteStream):
    """A body in parts."""

    def __init__(self, *parts):
        self.parts = parts
        self.is_closed = False

    def __iter__(self):
        yield from self.parts

    def close(self):
        self.is_closed = True


def answered(stream, read_s):
    """Returns an answer to a request whose SDK set one time for everything."""
    watch = Wire(Timeouts(connect_s=3), Ticking())._watch
    limits = dict.fromkeys(("connect", "read", "write", "pool"), read_s)
    request = httpx2.Request("POST", "http://x", extensions={"timeout": limits})
    watch.on_request(request)
    response = httpx2.Response(200, stream=stream, request=request)
    watch.on_response(response)
    return request, response


def test_a_connection_has_a_time_of_its_own():
    request, _response = answered(Parts(), 60)

    assert request.extensions["timeout"] == {"connect": 3, "read": 60, "write": 60, "pool": 3}


def test_an_answer_in_time_is_whole():
    stream = Parts(b"a", b"b")
    _request, response = answered(stream, 60)

    assert response.read() == b"ab"
    assert stream.is_closed


def test_an_answer_that_drips_is_given_up():
    """The timeout of a read alone starts anew with each byte."""
    _request, response = answered(Parts(*[b"a"] * 100), 10)

    with pytest.raises(httpx2.ReadTimeout):
        response.read()


def test_an_answer_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 50)
    _request, response = answered(Parts(*[b"a" * 20] * 3), 60)

    with pytest.raises(httpx2.ReadError, match="too long"):
        response.read()


def test_a_wire_that_nobody_holds_closes_its_connections():
    wire = Wire(Timeouts())
    client = wire.client

    del wire
    gc.collect()

    assert client.is_closed
