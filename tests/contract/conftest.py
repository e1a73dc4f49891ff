"""The providers behind a network, each against the same server on the loopback interface."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from memory.providers.access import GOOGLE, MISTRAL, OPENAI, OPENAI_COMPATIBLE
from memory.providers.factory import model_info, open_embedder
from tests.embedding_server import CANARY, EmbeddingServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.providers.base import Embedder

REMOTE_MODELS = {
    OPENAI: "text-embedding-3-small",
    GOOGLE: "gemini-embedding-001",
    MISTRAL: "mistral-embed",
    OPENAI_COMPATIBLE: "nomic-embed-text",
}


def opened(server: EmbeddingServer, protocol: str, model: str | None = None) -> Embedder:
    """Returns an embedder of the server, for vectors of the server's dimension."""
    access = server.access(protocol)
    info = model_info(protocol, model or REMOTE_MODELS[protocol], access)
    return open_embedder(replace(info, dim=server.dim), access)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


@pytest.fixture(autouse=True)
def no_log_holds_the_key(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """FAULTS 64: whatever a test does, at the most talkative level of every library."""
    loggers = [logging.getLogger(name) for name in ("", *logging.root.manager.loggerDict)]
    levels = [(logger, logger.level) for logger in loggers if "asyncio" not in logger.name]
    for logger, _level in levels:
        logger.setLevel(logging.DEBUG)
    yield
    for logger, level in levels:
        logger.setLevel(level)
    runs = {CANARY[start : start + 8] for start in range(len(CANARY) - 7)}
    assert [run for run in runs if run in caplog.text] == []
    assert "kettle" not in caplog.text
