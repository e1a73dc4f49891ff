"""Which error of ours is a failed call, judged by what was on the wire?"""

from __future__ import annotations

import json
import math
import re
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2

from memory.errors import (
    BadEmbedding,
    EmbeddingError,
    InputRejected,
    ProviderRejected,
    ProviderUnavailable,
)
from memory.providers.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_RETRY_AFTER_S = 600.0
_LATER = frozenset({408, 409, 425, 429})
_OF_THE_INPUT = frozenset({400, 413, 422})
# The code or the words by which a provider says that nothing will work until somebody acts. Gemini
# speaks of quota and billing when it only means "too fast", so these words alone do not count.
_NEEDS_A_PERSON = re.compile(
    r"insufficient[_ ](quota|balance|funds)|\bcredits?\b|billing_hard_limit|account_deactivated"
    r"|api[_ ]key[_ ]?(not valid|invalid|expired)|(invalid|incorrect)[_ ]api[_ ]key"
    r"|(invalid|unknown|unsupported)[_ ]model|model[_ ]not[_ ]found|failed_precondition"
    r"|model\b.{0,80}?\b(not found|does not exist|not exist)",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(
    r"token|length|size|count|too (long|large|many|big)|exceed|at most|maximum|context window",
    re.IGNORECASE,
)
# llama.cpp and Ollama answer 500 to an input that is longer than what the model was loaded with.
_SERVER_CANNOT_TAKE = re.compile(
    r"(input|prompt|batch|context|token).{0,80}(too (long|large)|exceed)", re.IGNORECASE
)
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')
_MAX_READ_CHARS = 20_000


def failure(
    provider: str,
    error: Exception,
    answer: httpx2.Response | None,
    *,
    key: str,
    texts: Sequence[str],
    now: float,
) -> EmbeddingError:
    """Returns what to raise for an exception out of an SDK.

    Args:
        provider: Name for the error.
        error: Whatever was raised.
        answer: What the server had sent until then, if anything.
        key: API key, which must not be shown.
        texts: What was sent, which must not be shown either.
        now: Unix time, seconds, for a ``Retry-After`` that is a date.
    """
    if answer is None or not _is_complete(answer):
        return _of_transport(provider, error, key)
    status, body = answer.status_code, _text(answer)
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return _of_content(provider, answer)
    said = presentable(_message(body) or answer.reason_phrase, key=key, texts=texts)
    reason = f"status {status}: {said}" if said else f"status {status}"
    if status < HTTPStatus.BAD_REQUEST:
        reason = f"status {status}: a redirect, which is not followed; check the address"
        return ProviderRejected(provider, reason)
    return _of_status(provider, status, reason, f"{said} {_codes(body)}", _wait(answer, body, now))


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Returns for how long a server wants to be left alone, in seconds.

    Takes ``retry-after-ms`` and ``Retry-After`` as a number or as a date.

    Returns:
        In [0, 600]; None if it says nothing or nonsense.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _capped(milliseconds / 1000)
    written = headers.get("retry-after")
    seconds = _number(written)
    if seconds is not None or written is None:
        return _capped(seconds)
    try:
        # The server's own clock, if it tells it: that of this machine may be wrong.
        then = parsedate_to_datetime(written).timestamp()
        sent = headers.get("date")
        return _capped(then - (parsedate_to_datetime(sent).timestamp() if sent else now))
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _is_complete(answer: httpx2.Response) -> bool:
    try:
        return isinstance(answer.content, bytes)
    except httpx2.ResponseNotRead:
        return False


def _of_transport(provider: str, error: Exception, key: str) -> EmbeddingError:
    causes = _chain(error)
    for cause in causes:
        name = type(cause).__name__
        match cause:
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                return ProviderUnavailable(provider, f"no connection in time ({name})")
            case httpx2.TimeoutException():
                return ProviderUnavailable(provider, f"no answer in time ({name})")
            case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
                break
            case httpx2.RequestError():
                said = presentable(str(cause), key=key)
                return ProviderUnavailable(provider, f"no connection or none to the end: {said}")
    # Neither the network nor the server: an address, a key or a version of the SDK.
    names = " of ".join(dict.fromkeys(type(cause).__name__ for cause in causes))
    return ProviderRejected(provider, f"the request could not be made ({names})")


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def _of_content(provider: str, answer: httpx2.Response) -> EmbeddingError:
    """Returns what a success is that the SDK cannot read: another page, or wrong JSON."""
    try:
        answer.json()
    except (ValueError, RecursionError, LookupError):
        kind = presentable(answer.headers.get("content-type", "no type"), key="")
        return ProviderUnavailable(provider, f"the answer is not JSON ({kind})")
    return BadEmbedding(provider, "the answer is not what the protocol says")


def _of_status(
    provider: str, status: int, reason: str, told: str, wait_s: float | None
) -> EmbeddingError:
    is_of_server = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if not is_of_server and _NEEDS_A_PERSON.search(told):
        return ProviderRejected(provider, reason)
    if status in _OF_THE_INPUT:
        is_too_large = status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _TOO_LARGE.search(told)
        return InputRejected(provider, reason, bool(is_too_large))
    if is_of_server and _SERVER_CANNOT_TAKE.search(told):
        return InputRejected(provider, reason, too_large=True)
    if is_of_server or status in _LATER:
        return ProviderUnavailable(provider, reason, wait_s)
    return ProviderRejected(provider, reason)


def _text(answer: httpx2.Response) -> str:
    try:
        return answer.text[:_MAX_READ_CHARS]
    except (LookupError, ValueError):
        return ""


def _message(body: str) -> str:
    """Returns what a body of an error says to people; the body itself if it is no JSON."""
    try:
        found = _spoken(json.loads(body))
    except (ValueError, RecursionError):
        return "" if body.lstrip().startswith("<") else body
    return found or body


def _spoken(told: Any) -> str:
    match told:
        case str():
            return told
        case [first, *_]:
            return _spoken(first)
        case {"error": inner} | {"message": inner} | {"detail": inner} | {"msg": inner}:
            return _spoken(inner)
    return ""


def _codes(body: str) -> str:
    """Returns the words of a machine in the body of an error: code, type, status and reason."""
    pairs = re.findall(r'"(?:code|type|status|reason)"\s*:\s*"([^"]{1,60})"', body)
    return " ".join(pairs)


def _wait(answer: httpx2.Response, body: str, now: float) -> float | None:
    told = retry_after_s(answer.headers, now)
    found = _RETRY_DELAY.search(body)
    return _capped(float(found[1])) if told is None and found else told


def _number(written: str | None) -> float | None:
    try:
        return float(written) if written is not None else None
    except ValueError:
        return None


def _capped(seconds: float | None) -> float | None:
    if seconds is None or math.isnan(seconds) or seconds < 0:
        return None
    return min(seconds, MAX_RETRY_AFTER_S)
