"""What becomes of texts and questions while a provider is away, seen by the provider itself?

The pool and the SDKs are real. All pauses are the pool's, so the time of a test is enough for them;
an SDK that waited or tried again by itself would be noticed by the server.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from actors.model_calls import QUERY_PATIENCE_S
from memory.errors import EmbeddingError, ProviderUnavailable
from memory.provider_gate import BASE_DELAY_S, MAX_DELAY_S, MAX_FAILURES, REJECTED_DELAY_S
from memory.providers.access import GOOGLE, MISTRAL, OPENAI
from memory.providers.wire import Timeouts
from tests.embedding_server import CANARY, EmbeddingServer, Fault
from tests.inline.pools import TEXTS, settle
from tests.inline.sdk_pools import MODELS, SdkPool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOON = "Thu, 01 Jan 2026 12:00:00 GMT"
PAUSES = {
    "one": ({"retry-after": "1"}, 1.0, 1.0),
    "date": ({"date": NOON, "retry-after": NOON.replace("00:00", "00:20")}, 20.0, 20.0),
    "300": ({"retry-after": "300"}, MAX_DELAY_S, MAX_DELAY_S),
    "none": ({}, 0.0, BASE_DELAY_S),
    "negative": ({"retry-after": "-5"}, 0.0, BASE_DELAY_S),
}
"""Headers of a refusal, and the least and the longest pause after it, in seconds."""
OUTAGES = {
    "500": Fault("status", status=500, text="{}"),
    "502": Fault("status", status=502, text="<html>bad gateway</html>"),
    "503": Fault("status", status=503, text='{"message": "overloaded"}'),
    "timeout": Fault("hang"),
    "reset": Fault("reset"),
    "cut": Fault("cut"),
    "html": Fault("html"),
}


def _refusal(status: int, error: Any) -> Fault:
    return Fault("status", status=status, text=json.dumps(error))


def _of_google(code: int, status: str, message: str) -> Fault:
    return _refusal(code, {"error": {"code": code, "message": message, "status": status}})


def _of_openai(status: int, code: str, message: str) -> Fault:
    return _refusal(status, {"error": {"message": message, "type": code, "code": code}})


REFUSALS = [
    (OPENAI, _of_openai(429, "insufficient_quota", "You exceeded your current quota.")),
    (OPENAI, _of_openai(401, "invalid_api_key", f"Incorrect API key provided: {CANARY}.")),
    (OPENAI, _of_openai(403, "unsupported_country_region_territory", "Not supported.")),
    (OPENAI, _of_openai(404, "model_not_found", "The model `x` does not exist.")),
    (MISTRAL, _refusal(402, {"detail": "Payment required"})),
    (MISTRAL, _refusal(401, {"detail": "Unauthorized"})),
    (MISTRAL, _refusal(403, {"detail": "Forbidden"})),
    (MISTRAL, _refusal(404, {"detail": "Not Found"})),
    (MISTRAL, _refusal(400, {"message": "Invalid model: x", "type": "invalid_model"})),
    (GOOGLE, _of_google(400, "INVALID_ARGUMENT", "API key not valid.")),
    (GOOGLE, _of_google(401, "UNAUTHENTICATED", "Request had invalid credentials.")),
    (GOOGLE, _of_google(403, "PERMISSION_DENIED", "The caller has no permission.")),
    (GOOGLE, _of_google(404, "NOT_FOUND", "models/x is not found for API version v1beta")),
]


@pytest.fixture
async def far(
    request: pytest.FixtureRequest, provider_server: EmbeddingServer
) -> AsyncIterator[SdkPool]:
    far = SdkPool(provider_server, request.param)
    yield far
    # No SDK tries again, so the server has seen what the pool decided and nothing else.
    assert far.server.num_requests == await far.num_asked()


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("far", MODELS, indirect=True)
async def test_the_pause_that_a_server_asks_for_is_kept_and_then_the_vectors_come(
    far: SdkPool, pause: str
):
    """FAULTS 51."""
    headers, least_s, most_s = PAUSES[pause]
    far.server.faults.append(Fault("status", status=429, headers=headers, text="{}"))
    task = far.pool.embed.remote(TEXTS)
    await settle()
    await far.clock.advance(max(0.0, least_s - 0.002))
    early = far.server.num_requests
    await far.clock.advance(most_s - least_s + 0.004)

    assert early == 1 or least_s == 0
    assert task.done()
    assert far.has_rows(await task, TEXTS)
    assert far.server.num_requests == 2


@pytest.mark.parametrize(("far", "refusal"), REFUSALS, indirect=["far"])
async def test_a_refusal_that_only_a_person_can_end_is_one_request_in_ten_minutes(
    far: SdkPool, refusal: Fault, caplog: pytest.LogCaptureFixture
):
    """FAULTS 52: an hour, with two texts and a question each minute."""
    far.server.outage = refusal
    for minute in range(60):
        for text in ("a", "b"):
            with pytest.raises(ProviderUnavailable, match=f"status {refusal.status}"):
                await far.pool.embed.remote((f"{text} {minute}",))
        with pytest.raises(EmbeddingError, match=f"status {refusal.status}"):
            await far.pool.embed_query.remote(f"question {minute}")
        await far.clock.advance(60)

    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert far.server.num_requests == 3600 / REJECTED_DELAY_S
    assert len(told) == 1
    assert CANARY not in told[0]

    far.server.outage = None
    assert far.has_rows(await far.pool.embed.remote(TEXTS), TEXTS)


@pytest.mark.parametrize("outage", OUTAGES)
@pytest.mark.parametrize("far", MODELS, indirect=True)
async def test_every_vector_is_there_after_an_outage_and_no_question_waits_for_its_end(
    far: SdkPool, outage: str, monkeypatch: pytest.MonkeyPatch
):
    """FAULTS 53."""
    monkeypatch.setattr(far.worker._model()._wire, "timeouts", Timeouts(1.0, 0.05, 0.05))
    far.server.outage = OUTAGES[outage]
    tasks = [far.pool.embed.remote((text,)) for text in TEXTS[:12]]
    # The pauses before the last of so many failures are at most 1 and 2 s.
    await far.clock.advance(BASE_DELAY_S * (2**MAX_FAILURES - 1))
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(error) for error in errors} == {ProviderUnavailable}
    for number in range(3):
        question = far.pool.embed_query.remote(f"question {number}")
        await far.clock.advance(QUERY_PATIENCE_S)
        assert question.done()
        with pytest.raises(ProviderUnavailable):
            await question
    num_probes = far.server.num_requests

    monkeypatch.undo()
    far.server.outage = None
    await far.clock.advance(MAX_DELAY_S)
    answers = await asyncio.gather(*(far.pool.embed.remote((text,)) for text in TEXTS[:12]))
    question = await far.pool.embed_query.remote("question")

    assert all(
        far.has_rows(answer, [text]) for answer, text in zip(answers, TEXTS[:12], strict=True)
    )
    assert np.allclose(question, far.server.vector("question"), atol=1e-6)
    assert num_probes <= MAX_FAILURES * far.info.limits.max_concurrent
    assert (await far.pool.status.remote()).calls.breaker == "closed"
