"""Does an Embedder reach the provider that is configured?"""

from __future__ import annotations

import numpy as np

from actors.embedder import EmbedderWorker
from memory.config import Settings
from memory.embedding_config import configured_model
from tests.embedding_server import CANARY, EmbeddingServer


def test_a_worker_embeds_with_the_configured_gateway_and_key():
    with EmbeddingServer() as server:
        gateway = {"type": "openai-compatible", "baseUrl": f"{server.url}/v1", "apiKey": CANARY}
        settings = Settings.model_validate(
            {
                "inference": {"customProviders": {"gw": gateway}},
                "memory": {"embeddings": {"provider": "gw", "model": "some-model"}},
            }
        )
        info, access = configured_model(settings)
        worker = EmbedderWorker(info, 0, access)

        vectors = worker.embed(("the kettle whistles", "rain"))
        question = worker.embed_queries(("the kettle whistles",))

        assert np.allclose(
            vectors.rows, [server.vector("the kettle whistles"), server.vector("rain")]
        )
        assert np.allclose(question.rows[0], vectors.rows[0])
        assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
        assert CANARY not in f"{worker!r} {info!r} {access!r}"


def test_a_worker_keeps_the_most_that_its_pools_have_spent():
    local = {"memory": {"embeddings": {"provider": "local"}}}
    info, access = configured_model(Settings.model_validate(local))
    worker = EmbedderWorker(info, 0, access)

    assert [worker.keep_spent(number) for number in (0, 40, 0, 30, 50)] == [0, 40, 40, 40, 50]
