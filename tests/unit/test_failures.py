"""Does a failed call become the error that says what to do?"""

from __future__ import annotations

import json
import pickle

import httpx2
import pytest

from memory.errors import InputRejected, ProviderRejected, ProviderUnavailable
from memory.providers.failures import failure, retry_after_s

NOW = 1_764_806_400.0  # 2025-12-04 00:00:00 UTC


def failed(status, body, **headers):
    text = body if isinstance(body, str) else json.dumps(body)
    answer = httpx2.Response(status, text=text, headers=headers)
    return failure("p", ValueError("x"), answer, key="sk-12345678", texts=("kettle",), now=NOW)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1"}, 1),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "300"}, 300),
        ({"retry-after": "86400"}, 600),
        ({"retry-after": "inf"}, 600),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Thu, 04 Dec 2025 00:00:30 GMT"}, 30),
        ({"retry-after": "Fri, 05 Dec 2025 00:00:00 GMT"}, 600),
        ({"retry-after": "Wed, 03 Dec 2025 00:00:00 GMT"}, None),
        ({"retry-after": "Thu, 99 Dec 2025 00:00:30 GMT"}, None),
        (
            {
                "retry-after": "Thu, 01 Jan 2020 00:01:00 GMT",
                "date": "Thu, 01 Jan 2020 00:00:00 GMT",
            },
            60,
        ),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9),
        ({"retry-after-ms": "-5", "retry-after": "9"}, None),
    ],
)
def test_a_wait_is_read_in_every_form_and_never_long(headers, seconds):
    """FAULTS 51."""
    assert retry_after_s(headers, NOW) == seconds


def test_gemini_says_in_the_body_how_long_to_wait():
    body = {"error": {"message": "slow down", "details": [{"retryDelay": "34s"}]}}

    assert failed(429, body).retry_after_s == 34


@pytest.mark.parametrize(
    ("status", "message", "is_too_large"),
    [
        (413, "", True),
        (400, "This model's maximum context length is 8192 tokens", True),
        (400, "Too many inputs in request", True),
        (400, "Too many tokens in batch", True),
        (400, "at most 100 requests can be in one batch", True),
        (422, "request exceeds the size limit", True),
        (400, "input must be a string", False),
    ],
)
def test_a_refused_input_says_whether_it_was_too_large(status, message, is_too_large):
    error = failed(status, {"error": {"message": message}})

    assert isinstance(error, InputRejected)
    assert error.too_large is is_too_large


@pytest.mark.parametrize(
    "message",
    [
        "input is too large to process. increase the physical batch size",
        "the input length exceeds the context length",
    ],
)
def test_a_local_server_that_cannot_take_an_input_is_not_asked_again(message):
    """Such servers answer 500, and would do so forever."""
    error = failed(500, {"error": {"message": message}})

    assert isinstance(error, InputRejected)
    assert error.too_large


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}},
        {"error": {"message": "Insufficient credits"}},
        {"message": "your credit balance is too low"},
        {"error": {"details": [{"reason": "API_KEY_INVALID"}], "message": "x"}},
        {"error": {"code": "model_not_found", "message": "no"}},
        {"error": {"message": "The model `x` does not exist or you do not have access"}},
        {"error": {"status": "FAILED_PRECONDITION", "message": "User location is not supported"}},
    ],
)
@pytest.mark.parametrize("status", [400, 429])
def test_what_only_a_person_can_mend_is_not_tried_again(status, body):
    """FAULTS 52."""
    assert isinstance(failed(status, body), ProviderRejected)


def test_words_of_a_text_decide_nothing():
    """A text about credits is no account without them."""
    text = "my credit card number is in the drawer"
    answer = httpx2.Response(400, json={"error": {"message": f"cannot embed: {text}"}})

    error = failure("p", ValueError("x"), answer, key="", texts=(text,), now=NOW)

    assert isinstance(error, InputRejected)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "told"}}, "told"),
        ({"error": "told"}, "told"),
        ({"message": "told"}, "told"),
        ({"detail": [{"msg": "told", "loc": ["body"]}]}, "told"),
        ([{"error": {"message": "told"}}], "told"),
        ("told", "told"),
        ("<html>no</html>", "Service Unavailable"),
        ("", "Service Unavailable"),
    ],
)
def test_the_message_of_every_protocol_is_found(body, said):
    assert failed(503, body).reason == f"status 503: {said}"


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (httpx2.ConnectTimeout("x"), ProviderUnavailable),
        (httpx2.ReadTimeout("x"), ProviderUnavailable),
        (httpx2.ConnectError("[Errno -2] Name or service not known"), ProviderUnavailable),
        (httpx2.RemoteProtocolError("x"), ProviderUnavailable),
        (httpx2.UnsupportedProtocol("x"), ProviderRejected),
        (httpx2.InvalidURL("x"), ProviderRejected),
        (TypeError("x"), ProviderRejected),
    ],
)
def test_without_an_answer_the_cause_below_the_sdk_decides(cause, kind):
    error = RuntimeError("Connection error.")
    error.__cause__ = cause

    found = failure("p", error, None, key="sk-12345678", texts=(), now=NOW)

    assert type(found) is kind


def test_an_error_survives_pickling():
    error = failed(429, {"message": "slow"}, **{"retry-after": "3"})

    copied = pickle.loads(pickle.dumps(error))

    assert (type(copied), copied.reason, copied.retry_after_s) == (
        ProviderUnavailable,
        error.reason,
        3,
    )
