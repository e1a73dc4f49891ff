"""Which files and vectors does a benchmark work on, without anybody's data?

Seeded, so every run sees the same: words with the frequencies of Zipf's law, files of ten sections.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from memory.workspace import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SEED = 7
SECTIONS_A_FILE = 10
WORDS_A_SECTION = 110
NUM_WORDS = 20_000
ZIPF = 1.1
SYLLABLES = "ba de fi go hu ka le mi no pu ra se ti vo wu za che sha tri plo".split()  # noqa: SIM905


def vocabulary() -> NDArray[np.str_]:
    """Returns made-up words, the most frequent first."""
    chance = np.random.default_rng(SEED)
    lengths = chance.integers(2, 5, NUM_WORDS)
    return np.array(["".join(chance.choice(SYLLABLES, length)) for length in lengths])


class Words:
    """Draws words as a language would."""

    def __init__(self, seed: int = SEED) -> None:
        self._words = vocabulary()
        self._chance = np.random.default_rng(seed)

    def text(self, count: int) -> str:
        """Returns so many words in one line."""
        ranks = self._chance.zipf(ZIPF, count) % len(self._words)
        return " ".join(self._words[ranks])


def files(num_chunks: int) -> Iterator[SourceFile]:
    """Yields markdown files that hold so many chunks together."""
    words = Words()
    for number in range(num_chunks // SECTIONS_A_FILE):
        sections = (
            f"{'##' if position else '#'} {words.text(3)}\n\n{words.text(WORDS_A_SECTION)}\n"
            for position in range(SECTIONS_A_FILE)
        )
        data = "\n".join(sections).encode()
        path = f"wiki/{words.text(1)}/{words.text(1)}-{number}.md"
        yield SourceFile(path, path, 0, len(data), number, data)


def vectors(names: Sequence[str], dim: int) -> NDArray[np.float32]:
    """Returns a random unit vector per name, always the same one; shape (len(names), dim)."""
    rows = [
        np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest())).normal(
            size=dim
        )
        for name in names
    ]
    block = np.array(rows, np.float32).reshape(len(names), dim)
    return block / np.linalg.norm(block, axis=1, keepdims=True)
