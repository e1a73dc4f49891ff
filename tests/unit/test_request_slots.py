"""One request more at a worker than it may make."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory.errors import InputRejected, ProviderUnavailable, RequestHeldBack
from memory.providers.base import ModelInfo, RequestLimits
from memory.providers.remote import Answer, RemoteEmbedder
from memory.providers.request_slots import RequestSlots
from memory.providers.wire import Timeouts, Wire

INFO = ModelInfo("far", "m", 2, 100, 0.0, 0.0)
DEADLINE_S = 10.0


class Api:
    """Answers, or fails, when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)
        self.error: Exception | None = None

    def embed(self, texts: list[str], *, is_query: bool, timeout_s: float) -> Answer:
        self.asked += texts
        self.begun.release()
        assert self.may_end.acquire(timeout=DEADLINE_S)
        if self.error is not None:
            raise self.error
        return Answer([[1.0, 0.0]] * len(texts))


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def embedder(api):
    return RemoteEmbedder(INFO, api, Wire(Timeouts()), slots=RequestSlots("far", 1))


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def begun(api: Api) -> bool:
    return api.begun.acquire(timeout=DEADLINE_S)


def waiting(slots: RequestSlots, threads: ThreadPoolExecutor):
    """Returns the outcome of somebody who waits for room, once he does."""
    stands = threading.Event()

    class Watched:
        """A semaphore that tells when somebody comes."""

        def __init__(self, inner: threading.Semaphore) -> None:
            self._inner = inner

        def __enter__(self) -> None:
            stands.set()
            self._inner.acquire()

        def __exit__(self, *_error: object) -> None:
            self._inner.release()

    def take() -> str:
        with slots.one():
            return "sent"

    slots._free = Watched(slots._free)
    outcome = threads.submit(take)
    assert stands.wait(DEADLINE_S)
    return outcome


def test_one_request_waits_until_the_other_one_is_answered(api, embedder, threads):
    first = threads.submit(embedder.embed_documents, ["first"])
    assert begun(api)
    second = threads.submit(embedder.embed_documents, ["second"])
    api.may_end.release()
    assert first.result(DEADLINE_S).shape == (1, 2)
    assert begun(api)
    assert api.asked == ["first", "second"]
    api.may_end.release()

    assert (second.result(DEADLINE_S) == np.array([[1.0, 0.0]])).all()


def test_a_question_waits_for_no_room(api, embedder, threads):
    first = threads.submit(embedder.embed_documents, ["first"])
    assert begun(api)
    question = threads.submit(embedder.embed_query, "question")
    assert begun(api)
    for _each in range(2):
        api.may_end.release()

    assert first.result(DEADLINE_S).shape == (1, 2)
    assert question.result(DEADLINE_S).shape == (2,)


def test_what_waits_when_a_request_fails_is_held_back_and_the_next_one_is_not(threads):
    slots = RequestSlots("far", 1)
    with slots.one():
        outcome = waiting(slots, threads)
        slots.hold_back()

    with pytest.raises(RequestHeldBack):
        outcome.result(DEADLINE_S)
    with slots.one():
        pass


def test_what_waits_goes_out_when_a_request_was_answered(threads):
    slots = RequestSlots("far", 1)
    with slots.one():
        outcome = waiting(slots, threads)

    assert outcome.result(DEADLINE_S) == "sent"


@pytest.mark.parametrize(
    ("status", "error", "held_back"), [(503, ProviderUnavailable, 1), (400, InputRejected, 0)]
)
def test_an_outage_holds_others_back_and_a_refused_text_does_not(
    api, embedder, monkeypatch, status, error, held_back
):
    held = []
    monkeypatch.setattr(embedder._slots, "hold_back", lambda: held.append(True))
    monkeypatch.setattr(
        "memory.providers.remote.failure",
        lambda provider, *_args, **_named: error(provider, f"status {status}"),
    )
    api.error = OSError("whatever the SDK raises")
    api.may_end.release()

    with pytest.raises(error):
        embedder.embed_documents(["text"])
    assert len(held) == held_back


@pytest.mark.parametrize(
    ("max_concurrent", "num_workers", "shares"),
    [(0, 3, [1, 1, 1]), (1, 3, [1, 0, 0]), (4, 3, [2, 1, 1]), (16, 2, [8, 8])],
)
def test_the_shares_of_the_workers_are_what_the_provider_takes(max_concurrent, num_workers, shares):
    limits = RequestLimits(1, 1, max_concurrent)

    assert [limits.of_worker(number, num_workers) for number in range(num_workers)] == shares
