"""Which text of a chunk does the embedding model see?

Headlines, context and content, joined by blank lines (SPEC C9), never more than the model takes
(SPEC C7). Headlines and context stand on every chunk of a file, so here, and only here, each of
them gets a quarter of the room at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from memory import graphemes

if TYPE_CHECKING:
    from memory.messages import Chunk
    from memory.providers.base import TokenCounter

INPUT_FORMAT_VERSION = 1
"""Part of the identity of an index: another number means other vectors (SPEC E5)."""
NUM_SPECIAL_TOKENS = 2
"""What a model puts around a text, as [CLS] and [SEP]."""
MIN_TOKENS = 32


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """How long an embedding input may be."""

    max_tokens: int
    """Longest input in tokens, special tokens included; at least 32."""
    count: TokenCounter

    def __post_init__(self) -> None:
        if self.max_tokens < MIN_TOKENS:
            raise ValueError(f"max_tokens must be at least {MIN_TOKENS}, not {self.max_tokens}")

    @property
    def share(self) -> int:
        """Most tokens of the headlines, and of the context, in an embedding input."""
        return self.max_tokens // 4

    def fits(self, text: str) -> bool:
        """Tells whether the model takes the whole text."""
        return self.count(text) + NUM_SPECIAL_TOKENS <= self.max_tokens


def compose(chunk: Chunk, limits: TokenLimits) -> str:
    """Returns the embedding input of a chunk; it fits if ``parse_file`` had the same limits."""
    return join(frame(chunk.headlines, chunk.context, limits), chunk.content)


def frame(headlines: str, context: str, limits: TokenLimits) -> str:
    """Returns what stands before the content, at most half of the room."""
    trail = _shortened_trail(headlines, limits)
    return join(trail, shortened(context, limits))


def join(*texts: str) -> str:
    """Joins what is not empty by blank lines."""
    return "\n\n".join(text for text in texts if text)


@lru_cache(maxsize=64)
def shortened(text: str, limits: TokenLimits) -> str:
    """Returns the beginning of a text, up to a word, that takes a quarter of the room at most.

    Remembered, because every chunk of a file asks for the same context, which takes a dozen counts.
    """
    room = limits.share
    if limits.count(text) <= room:
        return text
    low, high = 0, len(text)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if limits.count(text[:middle]) <= room else (low, middle)
    end = text.rfind(" ", 0, low + 1)
    return text[: end if end > 0 else graphemes.boundary_before(text, low)].rstrip()


def _shortened_trail(headlines: str, limits: TokenLimits) -> str:
    # The last heading says most about the section, so its ancestors go first.
    while " > " in headlines and limits.count(headlines) > limits.share:
        headlines = headlines.partition(" > ")[2]
    return shortened(headlines, limits)


def estimate_tokens(text: str) -> int:
    """Returns an upper estimate of the tokens of a text when the tokenizer is not known.

    Every character has a weight by its kind; the sum is cheap (about 10 ns a byte) and additive.
    Source:
        Weights: see ``_weights``; measured against WordPiece on prose and code in five scripts.
    """
    total = sum(text.encode("utf-8", "surrogatepass").translate(_WEIGHTS))
    return -(-total // _UNIT)


_UNIT = 12


def _weights() -> bytes:
    """Returns twelfths of a token for each byte of UTF-8; trailing bytes weigh nothing."""
    weights = [_UNIT] * 128 + [0] * 64 + [_UNIT] * 64
    weights[ord(" ")] = weights[ord("\t")] = weights[ord("\n")] = 1
    weights[ord("a") : ord("z") + 1] = [6] * 26
    weights[ord("A") : ord("Z") + 1] = [8] * 26
    weights[ord("0") : ord("9") + 1] = [10] * 10
    weights[0xE0:0xE3] = [24] * 3  # Indic scripts, Thai, Georgian, symbols
    weights[0xE3:0xF0] = [18] * 13  # Chinese, Japanese
    weights[0xEA:0xEE] = [30] * 4  # Hangul: some tokenizers take syllables apart
    weights[0xF0:0x100] = [48] * 16  # emoji, rare characters: one token a byte at worst
    return bytes(weights)


_WEIGHTS = _weights()
