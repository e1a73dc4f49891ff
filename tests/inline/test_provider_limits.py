"""What do real SDKs and the pool make of limits and of texts that a provider refuses?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from actors.worker_calls import NUM_SPARE
from memory.embedding_input import NUM_SPECIAL_TOKENS, TokenLimits, estimate_tokens
from memory.providers.base import RequestLimits
from memory.providers.wordpiece import word_piece_counter
from tests.embedding_server import PUBLISHED, EmbeddingServer, ServerLimits
from tests.inline.sdk_pools import MODELS, SdkPool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SENTENCES = (
    "The quick brown fox jumps over the lazy dog and goes home to its family. ",
    "素早い茶色の狐がのろまな犬を飛び越えて、家に帰りました。",
    "Быстрая коричневая лиса прыгает через ленивую собаку и потом возвращается домой. ",
    "if (x!=null && y[3]->z==0x7f) { return !foo(bar,&baz); }\n",
    "빠른 갈색 여우가 게으른 개를 뛰어넘고 나서 집으로 돌아갑니다. ",
    "2026-01-01T12:00:00.000Z\t192.168.001.254\t0.000125\t9f86d081884c7d65\n",
)
BELIEVED = RequestLimits(max_inputs=64, max_tokens=1_000_000, max_concurrent=1)


@pytest.fixture(params=MODELS)
async def far(
    request: pytest.FixtureRequest, provider_server: EmbeddingServer
) -> AsyncIterator[SdkPool]:
    far = SdkPool(provider_server, request.param)
    yield far
    # No SDK tries again, so the server has seen what the pool decided and nothing else.
    assert far.server.num_requests == await far.num_asked()


def _as_long_as_it_may_be(sentence: str, max_tokens: int) -> str:
    limits = TokenLimits(max_tokens, estimate_tokens)
    text = sentence * (max_tokens // estimate_tokens(sentence) + 1)
    while not limits.fits(text):
        text = text[:-10]
    return text


@pytest.mark.slow
async def test_no_request_is_refused_by_a_provider_that_enforces_its_limits(far: SdkPool):
    """FAULTS 57: with tokens of a real vocabulary, and those that stand around each text."""
    count = word_piece_counter()
    far.server.limits = PUBLISHED[far.protocol]
    far.server.count_tokens = lambda text: count(text) + NUM_SPECIAL_TOKENS
    full = [_as_long_as_it_may_be(sentence, far.info.max_tokens) for sentence in SENTENCES]
    notes = [f"{sentence}{number}" for number in range(350) for sentence in SENTENCES]

    embedded = await far.pool.embed.remote((*notes, *full, *notes[:5], *full[:5]))

    status = await far.pool.status.remote()
    assert far.has_rows(embedded, (*notes, *full, *notes[:5], *full[:5]))
    assert far.server.num_refused == 0
    assert status.learned_limits is None
    assert status.num_quarantined == 0


@pytest.mark.parametrize(
    "most",
    [
        ServerLimits(max_inputs=25),
        ServerLimits(max_inputs=4),
        ServerLimits(max_tokens=250),
        ServerLimits(max_inputs=15, max_tokens=80),
    ],
    ids=["inputs", "few inputs", "tokens", "both"],
)
async def test_limits_lower_than_believed_are_learned_from_the_words_of_the_provider(
    far: SdkPool, most: ServerLimits
):
    """FAULTS 57."""
    far.open(BELIEVED)
    far.server.limits = most
    texts = tuple(f"eight words that say nothing but number {number}" for number in range(80))
    fitting = min(most.max_inputs, most.max_tokens // 8)

    embedded = await far.pool.embed.remote(texts)
    num_refused = far.server.num_refused
    again = await far.pool.embed.remote(tuple(text.upper() for text in texts))

    learned = (await far.pool.status.remote()).learned_limits
    assert far.has_rows(embedded, texts)
    assert far.has_rows(again, [text.upper() for text in texts])
    # Each refusal halves what is sent, so one for each doubling that was too much; the request that
    # waited behind the first one may be too large as well.
    doublings = math.ceil(math.log2(BELIEVED.max_inputs / fitting))
    assert doublings <= num_refused <= doublings + NUM_SPARE
    assert far.server.num_refused == num_refused
    assert fitting / 2 < learned[0] <= fitting


@pytest.mark.parametrize("place", [0, 100, 255])
async def test_one_poison_text_among_256_costs_17_requests_and_is_sent_again_once_it_changes(
    far: SdkPool, place: int
):
    """FAULTS 58: at most 2 log2(n) + 1."""
    far.open(replace(BELIEVED, max_inputs=256))
    far.server.poison.add("poison")
    texts = [f"text {number}" for number in range(256)]
    texts[place] = "poison of some kind"

    embedded = await far.pool.embed.remote(tuple(texts))
    num_requests = far.server.num_requests
    again = await far.pool.embed.remote((texts[place],))
    after_again = far.server.num_requests
    changed = await far.pool.embed.remote(("harmless by now",))

    good = [number for number in range(256) if number != place]
    rows = [far.server.vector(texts[number]) for number in good]
    assert [number for number, _reason in embedded.refused] == [place]
    assert np.allclose(embedded.vectors[good], rows, atol=1e-6)
    assert not embedded.vectors[place].any()
    assert num_requests <= 2 * math.log2(len(texts)) + 1
    assert (again.refused, after_again) == (((0, embedded.refused[0][1]),), num_requests)
    assert far.has_rows(changed, ["harmless by now"])
    assert far.server.requests[-1].texts == ["harmless by now"]
    assert (await far.pool.status.remote()).num_quarantined == 1


async def test_a_text_that_is_too_long_alone_makes_no_later_request_small(far: SdkPool):
    far.server.limits = ServerLimits(max_tokens_per_input=50)
    texts = tuple(f"text {number}" for number in range(60))
    long = "word " * 51

    embedded = await far.pool.embed.remote((*texts, long))
    num_requests = far.server.num_requests
    again = await far.pool.embed.remote(tuple(text.upper() for text in texts))

    assert [number for number, _reason in embedded.refused] == [60]
    assert again.refused == ()
    assert far.server.num_requests == num_requests + 1
    assert (await far.pool.status.remote()).learned_limits is None
