"""How does BERT (uncased) cut a text into tokens?"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from memory.providers.base import well_formed

if TYPE_CHECKING:
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    from memory.providers.base import TokenCounter

_VOCABULARY = "bert_uncased_vocab.txt"


def word_piece_tokenizer() -> BertWordPieceTokenizer:
    """Returns a new tokenizer that cleans, lowercases, drops accents and spaces CJK characters.

    Source:
        ``tokenizer.json`` of sentence-transformers/all-MiniLM-L6-v2.
    """
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer  # noqa: PLC0415 - costs 60 ms

    # Only "\n" ends an entry: the vocabulary holds characters that splitlines() takes for one.
    lines = files(__package__).joinpath(_VOCABULARY).read_text("utf-8").removesuffix("\n")
    vocabulary = {piece: number for number, piece in enumerate(lines.split("\n"))}
    return BertWordPieceTokenizer(vocabulary)


def word_piece_counter() -> TokenCounter:
    """Returns the exact counter: 10 µs for a word, 0.15 s for 130,000 characters."""
    tokenizer = word_piece_tokenizer()

    def count(text: str) -> int:
        return len(tokenizer.encode(well_formed(text), add_special_tokens=False))

    return count
