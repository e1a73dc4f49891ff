"""Which files and vectors does a benchmark work on, without anybody's data?

Seeded, so every run sees the same: words with the frequencies of Zipf's law, files of ten sections.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import numpy as np

from memory.providers.wordpiece import word_piece_tokenizer
from memory.workspace import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SEED = 7
SECTIONS_A_FILE = 10
WORDS_A_SECTION = 110
WORD = re.compile("[a-z]{2,}")
NUM_TOPICS = 64


def vocabulary() -> NDArray[np.str_]:
    """Returns English words, roughly the most frequent first: the whole words of a tokenizer.

    Each is one token, so a section is as long for the model as its count of words says.
    """
    ids = word_piece_tokenizer().get_vocab()
    return np.array([word for word in sorted(ids, key=ids.__getitem__) if WORD.fullmatch(word)])


class Words:
    """Draws words as a language would."""

    def __init__(self, seed: int = SEED) -> None:
        self._words = vocabulary()
        shares = 1 / np.arange(1, len(self._words) + 1)
        self._shares = shares / shares.sum()
        self._chance = np.random.default_rng(seed)

    def text(self, count: int) -> str:
        """Returns so many words in one line."""
        return " ".join(self._chance.choice(self._words, count, p=self._shares))


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
    """Returns a unit vector per name, always the same one; shape (len(names), dim).

    Each belongs to one of a few topics and has a cosine of about 0.5 to the others there, so that a
    search finds as many similar rows as one of real texts does.
    """
    topics = np.random.default_rng(SEED).normal(size=(NUM_TOPICS, dim))
    block = np.empty((len(names), dim), np.float32)
    for number, name in enumerate(names):
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest())
        block[number] = topics[seed % NUM_TOPICS] + np.random.default_rng(seed).normal(size=dim)
    block /= np.linalg.norm(block, axis=1, keepdims=True)
    return block
