"""Which vectors of a model are known from an earlier run?

One SQLite file per model and input format, keyed by the SHA-256 of the text. Vectors are stored as
they come, so that a run that was ended goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from memory.embedding_input import INPUT_FORMAT_VERSION
from memory.providers.factory import open_embedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from memory.providers.base import Embedder, ModelInfo

_TEXTS_A_CALL = 16


class EmbeddingCache:
    """The vectors of one model.

    Args:
        folder: Where the file is, made if needed.
        info: The model.
        num_processes: Processes that embed what is missing, one thread each.
    """

    def __init__(self, folder: Path, info: ModelInfo, *, num_processes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._info = info
        self._num_processes = num_processes
        self._file = sqlite3.connect(folder / f"{info.model}-v{INPUT_FORMAT_VERSION}.sqlite")
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, row BLOB)")

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns the vectors of embedding inputs, shape (len(texts), dim)."""
        return self._vectors("document", texts)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns the vectors of questions, shape (len(texts), dim)."""
        return self._vectors("query", texts)

    def _vectors(self, kind: str, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [hashlib.sha256(f"{kind}\0{text}".encode()).digest() for text in texts]
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if self._row(key) is None
        }
        if missing:
            self._embed(kind, list(missing.items()))
        rows = [self._row(key) or b"" for key in keys]
        return np.frombuffer(b"".join(rows), np.float32).reshape(len(texts), self._info.dim)

    def _row(self, key: bytes) -> bytes | None:
        found = self._file.execute("SELECT row FROM vectors WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def _embed(self, kind: str, missing: list[tuple[bytes, str]]) -> None:
        print(f"embedding {len(missing)} texts with {self._info.model}", file=sys.stderr)
        units = [
            missing[start : start + _TEXTS_A_CALL]
            for start in range(0, len(missing), _TEXTS_A_CALL)
        ]
        with ProcessPoolExecutor(self._num_processes) as pool:
            jobs = [pool.submit(_embed, self._info, kind, [text for _, text in u]) for u in units]
            for unit, job in zip(units, jobs, strict=True):
                self._store(zip((key for key, _ in unit), job.result(), strict=True))

    def _store(self, rows: Iterable[tuple[bytes, NDArray[np.float32]]]) -> None:
        with self._file:
            self._file.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                ((key, row.tobytes()) for key, row in rows),
            )


@cache
def _embedder(info: ModelInfo) -> Embedder:
    return open_embedder(info)


def _embed(info: ModelInfo, kind: str, texts: Sequence[str]) -> NDArray[np.float32]:
    embedder = _embedder(info)
    if kind == "document":
        return embedder.embed_documents(texts)
    return np.stack([embedder.embed_query(text) for text in texts])
