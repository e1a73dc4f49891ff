"""How does a provider behind a network embed?

One request a call, no retry, no wait: the pool decides about both. Each SDK hands over what it was
answered as an ``Answer``; it is believed only after the checks here (FAULTS 55).
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from memory.clock import SystemClock
from memory.embedding_input import NUM_SPECIAL_TOKENS, estimate_tokens
from memory.errors import BadEmbedding, EmbeddingError, InputRejected
from memory.providers.base import checked_vectors, well_formed
from memory.providers.failures import failure
from memory.providers.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from memory.providers.base import ModelInfo
    from memory.providers.request_slots import RequestSlots
    from memory.providers.wire import Wire

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an SDK made of an answer, nothing of it checked."""

    vectors: Sequence[object]
    indices: Sequence[object] | None = None
    """Which text each vector belongs to; None where the protocol has only the order."""
    model: object = None
    num_tokens: object = None
    """Tokens that are charged for."""


class EmbeddingApi(Protocol):
    """One SDK; may be called from several threads at once."""

    def embed(self, texts: list[str], *, is_query: bool, timeout_s: float) -> Answer:
        """Makes one request and raises whatever the SDK raises."""
        ...


@final
class RemoteEmbedder:
    """An Embedder over one SDK.

    Every call may raise ``EmbeddingError``, and ``ValueError`` for a blank text, which no provider
    takes: chunks have a heading, and callers ask nothing blank (FAULTS 61).
    """

    def __init__(
        self,
        info: ModelInfo,
        api: EmbeddingApi,
        wire: Wire,
        key: str = "",
        slots: RequestSlots | None = None,
    ) -> None:
        self.info = info
        self._api = api
        self._wire = wire
        self._key = key
        self._slots = slots
        self._lock = threading.Lock()
        self._dim = info.dim
        self._num_tokens = 0
        self._is_told = False

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector per text, shape (len(texts), dim), float32."""
        inputs = [self._input(self.info.document_prefix, text) for text in texts]
        if not inputs:
            return np.empty((0, self._dim), np.float32)
        return self._embed(inputs, is_query=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the unit vector of a question, shape (dim,), float32.

        Of a question that is longer than the model takes, the beginning.
        """
        row: NDArray[np.float32] = self.embed_queries([text])[0]
        return row

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector per question, shape (len(texts), dim), float32; see above."""
        prefix = self.info.query_prefix
        room = self.info.max_tokens - NUM_SPECIAL_TOKENS - estimate_tokens(prefix)
        inputs = [self._input(prefix, _beginning(text, room)) for text in texts]
        if not inputs:
            return np.empty((0, self._dim), np.float32)
        return self._embed(inputs, is_query=True)

    def take_num_tokens(self) -> int:
        """Returns the tokens that the provider charged for since this was last asked."""
        with self._lock:
            taken, self._num_tokens = self._num_tokens, 0
        return taken

    def _input(self, prefix: str, text: str) -> str:
        if not text.strip():
            raise ValueError("a blank text has no embedding")
        return prefix + well_formed(text)

    def _embed(self, inputs: list[str], *, is_query: bool) -> NDArray[np.float32]:
        if self._slots is None or is_query:
            answer = self._ask(inputs, is_query=is_query)
        else:
            with self._slots.one():
                answer = self._ask(inputs, is_query=False)
        if isinstance(answer, EmbeddingError):
            # Out here it has no context, which holds the request with the key.
            raise answer
        return self._checked(answer, len(inputs))

    def _ask(self, inputs: list[str], *, is_query: bool) -> Answer | EmbeddingError:
        timeouts = self._wire.timeouts
        timeout_s = timeouts.query_s if is_query else timeouts.documents_s
        self._wire.forget()
        try:
            return self._api.embed(inputs, is_query=is_query, timeout_s=timeout_s)
        except Exception as error:  # noqa: BLE001 - SDKs raise nearly anything
            refusal = failure(
                self.info.provider,
                error,
                self._wire.answer(),
                key=self._key,
                texts=inputs,
                now=SystemClock().time(),
            )
            if self._slots is not None and not isinstance(refusal, InputRejected):
                self._slots.hold_back()
            return refusal
        finally:
            self._wire.forget()

    def _checked(self, answer: Answer, count: int) -> NDArray[np.float32]:
        provider = self.info.provider
        self._count(answer.num_tokens)
        self._compare_model(answer.model)
        rows = _matrix(provider, _in_order(provider, answer, count))
        vectors = checked_vectors(provider, rows, count=count, dim=self._dim)
        self._dim = self._dim or vectors.shape[1]
        return vectors

    def _count(self, num_tokens: object) -> None:
        if isinstance(num_tokens, int) and num_tokens > 0:
            with self._lock:
                self._num_tokens += num_tokens

    def _compare_model(self, answered: object) -> None:
        """Warns once if another model answers than the one asked for (FAULTS 60)."""
        if self._is_told or not isinstance(answered, str) or not answered:
            return
        if not _is_same_model(answered, self.info.model):
            self._is_told = True
            logger.warning(
                "%s: asked for model %s, answered by %s",
                self.info.provider,
                self.info.model,
                presentable(answered, key=self._key),
            )


def _in_order(provider: str, answer: Answer, count: int) -> list[object]:
    """Returns the vectors in the order of the texts."""
    vectors = list(answer.vectors)
    if len(vectors) != count:
        texts = "1 text" if count == 1 else f"{count} texts"
        raise BadEmbedding(provider, f"{len(vectors)} vectors for {texts}")
    if answer.indices is None:
        return vectors
    by_index = {
        index: vector
        for index, vector in zip(answer.indices, vectors, strict=True)
        if isinstance(index, int)
    }
    if by_index.keys() != set(range(count)) or any(isinstance(index, bool) for index in by_index):
        raise BadEmbedding(provider, f"the indices are not those of {count} texts")
    return [by_index[index] for index in range(count)]


def _matrix(provider: str, rows: list[object]) -> NDArray[np.float64]:
    """Returns rows of numbers; numpy alone would read text as numbers and None as NaN."""
    try:
        matrix = np.array(rows)
    except (OverflowError, TypeError, ValueError):
        raise BadEmbedding(provider, "the vectors are not of one length") from None
    if matrix.dtype.kind not in "fiu":
        raise BadEmbedding(provider, "a vector does not consist of numbers")
    return matrix


def _beginning(text: str, room: int) -> str:
    """Returns the beginning of a text that takes so many tokens at most."""
    while (tokens := estimate_tokens(text)) > max(room, 1):
        text = text[: len(text) * max(room, 1) // tokens]
    return text


def _is_same_model(answered: str, asked: str) -> bool:
    """Tells whether two names differ only by a folder, a version or the case."""
    first, second = (name.lower().rpartition("/")[2] for name in (answered, asked))
    return first.startswith(second) or second.startswith(first)
