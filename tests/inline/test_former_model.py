"""Questions to the index of a model that is no longer configured."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from actors.former_model import MAX_ASKED_AT_ONCE, FormerModel, open_model_of
from memory.config import InferenceSettings
from memory.errors import (
    BadEmbedding,
    ConfigError,
    EmbeddingError,
    ProviderAwaited,
    ProviderRejected,
    ProviderUnavailable,
)
from memory.identity import Identity
from memory.provider_gate import MAX_DELAY_S, REJECTED_DELAY_S
from memory.providers.local import LOCAL_MODELS, MINILM
from tests.doubles import FakeClock, HashEmbedder
from tests.inline.handles import InlineHandle

if TYPE_CHECKING:
    from collections.abc import Callable

OLD = Identity("gw", "m", 8, "http://here/v1", 1)
GATEWAY = {"type": "openai-compatible", "base_url": "http://here/v1", "api_key": SecretStr("k")}


class Keeper:
    """Says which index answers."""

    def __init__(self) -> None:
        self.former: Identity | None = OLD

    def former_identity(self) -> Identity | None:
        return self.former


class Model(HashEmbedder):
    """Fails as it is told."""

    error: Exception | None = None
    gate: threading.Event | None = None
    num_requests = 0

    def embed_queries(self, texts: Any) -> Any:
        self.num_requests += 1
        if self.gate is not None:
            self.gate.wait(10)
        if self.error is not None:
            raise self.error
        return super().embed_queries(texts)


async def looked(
    open_model: Callable[..., Any],
) -> tuple[FormerModel, Keeper, FakeClock]:
    """Returns a former model after its first look at the keeper."""
    keeper, clock = Keeper(), FakeClock()
    former = FormerModel(InferenceSettings(), InlineHandle(keeper), clock, open_model)  # type: ignore[arg-type]
    await look(former, clock)
    return former, keeper, clock


async def look(former: FormerModel, clock: FakeClock) -> None:
    step = asyncio.ensure_future(former.step())
    while not step.done():
        await clock.advance(1)
        await asyncio.to_thread(lambda: None)
    await step


async def test_a_model_is_opened_while_its_index_answers_and_dropped_afterwards():
    model, opened = Model(8), []
    former, keeper, clock = await looked(
        lambda identity, _settings: opened.append(identity) or model
    )
    rows = await former.vectors(("a", "b"))
    await look(former, clock)
    keeper.former = None
    await look(former, clock)

    assert (rows == HashEmbedder(8).embed_queries(["a", "b"])).all()
    assert opened == [OLD]
    assert (former.identity, former._embedder, former.trouble) == (None, None, "")


@pytest.mark.parametrize(
    ("error", "pause_s"),
    [
        (ProviderUnavailable("gw", "status 503"), MAX_DELAY_S),
        (BadEmbedding("gw", "a value is not finite"), MAX_DELAY_S),
        (ProviderRejected("gw", "the key is refused"), REJECTED_DELAY_S),
    ],
)
async def test_a_model_that_does_not_work_is_left_alone_for_a_while(
    error: EmbeddingError, pause_s: float
):
    model = Model(8)
    former, _keeper, clock = await looked(lambda *_given: model)
    model.error = error
    for _question in range(3):
        with pytest.raises(EmbeddingError):
            await former.vectors(("a",))

    assert model.num_requests == 1
    assert former.trouble == error.reason
    model.error = None
    await clock.advance(pause_s)
    assert (await former.vectors(("a",))).shape == (1, 8)
    assert former.trouble == ""


async def test_more_questions_than_a_few_do_not_wait_for_a_model_that_hangs():
    model = Model(8)
    model.gate = threading.Event()
    former, _keeper, _clock = await looked(lambda *_given: model)
    asked = [asyncio.ensure_future(former.vectors(("a",))) for _ in range(MAX_ASKED_AT_ONCE)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    with pytest.raises(ProviderAwaited, match="busy"):
        await former.vectors(("b",))
    model.gate.set()
    assert [rows.shape for rows in await asyncio.gather(*asked)] == [(1, 8)] * MAX_ASKED_AT_ONCE


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (replace(OLD, base_url="http://elsewhere/v1"), "not the configured one"),
        (replace(OLD, provider="openai", base_url=""), "neither in|is in neither"),
        (replace(OLD, input_format=77), "other vectors by now: input format"),
        (Identity("local", "unheard-of", 8, "", 1), "unheard-of"),
    ],
)
def test_a_key_goes_to_the_configured_address_only_and_other_vectors_to_no_index(
    identity: Identity, reason: str
):
    inference = InferenceSettings.model_validate({"custom_providers": {"gw": GATEWAY}})

    with pytest.raises(ConfigError, match=reason):
        open_model_of(identity, inference)


def test_the_model_of_an_index_answers_with_the_dimension_of_the_index_or_not_at_all():
    inference = InferenceSettings.model_validate({"custom_providers": {"gw": GATEWAY}})

    assert open_model_of(OLD, inference).info.dim == 8
    assert open_model_of(Identity.of(LOCAL_MODELS[MINILM].info), inference).info.model == MINILM
