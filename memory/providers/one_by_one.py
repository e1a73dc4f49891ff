"""How does a model inside the process embed many texts?

One at a time. For the models here a batch is no faster (figures in their modules), while a single
text gives the same bytes whoever its neighbours are, needs the least memory, and leaves the
processor to a waiting question after one text. The encoders hold no state between calls, so a
question in another thread runs beside a batch and waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, final

from memory.providers.base import checked_vectors, well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.base import ModelInfo


# Bounds the time of a giant text, most of which no model reads. An input from the chunker has at
# most half as many characters a token.
_MAX_CHARS_PER_TOKEN = 32


class Encoder(Protocol):
    """A loaded model; may be called from several threads at once.

    Takes any well-formed text, also an empty one and one longer than the model reads.
    """

    def encode_document(self, text: str) -> NDArray[np.float32]:
        """Returns the embedding of a section, shape (dim,), any norm."""
        ...

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Returns the embedding of a question, shape (dim,), any norm."""
        ...


@final
class OneByOneEmbedder:
    """An Embedder over one encoder."""

    def __init__(self, info: ModelInfo, encoder: Encoder) -> None:
        self.info = info
        self._encoder = encoder

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector per text, shape (len(texts), dim), float32."""
        return self._checked([self._encoder.encode_document(self._input(text)) for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Returns the unit vector of a question, shape (dim,), float32."""
        row: NDArray[np.float32] = self.embed_queries([text])[0]
        return row

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector per question, shape (len(texts), dim), float32."""
        return self._checked([self._encoder.encode_query(self._input(text)) for text in texts])

    def take_num_tokens(self) -> int:
        """Returns 0: nobody charges for a model of one's own."""
        return 0

    def _input(self, text: str) -> str:
        return well_formed(text[: self.info.max_tokens * _MAX_CHARS_PER_TOKEN])

    def _checked(self, rows: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        return checked_vectors(self.info.provider, rows, count=len(rows), dim=self.info.dim)
