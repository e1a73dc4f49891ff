"""Into which terms is a text analysed?

The same chain serves indexing and queries: words by Unicode segmentation, case and accents folded,
compounds in parts beside the whole, stems of the configured language, bigrams for scripts that are
written without spaces. Nothing here knows the index.

``bulgarian``, ``sanskrit`` and ``ukrainian`` have stop words but no Snowball stemmer: their words
are folded, not stemmed. ``dutch`` uses Snowball's ``dutch_porter``, ``indian`` its ``hindi``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import regex
import Stemmer

from memory.errors import ConfigError
from memory.stop_words import load_stop_words

if TYPE_CHECKING:
    from collections.abc import Iterator

ANALYSIS_VERSION = 1
"""Grows with every change of the terms; an index of another version is rebuilt."""

_STEMMERS = {
    "arabic": "arabic",
    "armenian": "armenian",
    "bulgarian": "",
    "danish": "danish",
    "dutch": "dutch_porter",
    "english": "english",
    "finnish": "finnish",
    "french": "french",
    "german": "german",
    "greek": "greek",
    "hungarian": "hungarian",
    "indian": "hindi",
    "indonesian": "indonesian",
    "irish": "irish",
    "italian": "italian",
    "lithuanian": "lithuanian",
    "nepali": "nepali",
    "norwegian": "norwegian",
    "portuguese": "portuguese",
    "romanian": "romanian",
    "russian": "russian",
    "sanskrit": "",
    "serbian": "serbian",
    "spanish": "spanish",
    "swedish": "swedish",
    "tamil": "tamil",
    "turkish": "turkish",
    "ukrainian": "",
}

LANGUAGES = frozenset(_STEMMERS)
"""Names that ``memory.language`` may take (SPEC S3)."""

MAX_TERM_CHARS = 64
"""Longer terms are cut, in the index and in queries alike."""

_LAST_WORD_CHARS = 256
_CACHED_WORDS = 1 << 16

# Scripts whose words are not separated by spaces, and Hangul, whose words carry their particles.
# The single letters are marks shared by the kana, which Unicode assigns to no script.
_SPACELESS = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Javanese}\p{Balinese}"
    "\u30fc\uff70\uff9e\uff9f"
)
# Soft hyphen, zero-width (non-)joiner and word joiner stand inside words and mean nothing.
_INVISIBLE = "\u00ad\u200c\u200d\u2060"
_JOINER = "[-.'@&\u2019\u2010\u2011]|_+"
_MAX_PARTS = 32
# More joined parts than this start another word, so that no hostile run is one endless word.
_MORE_PARTS = "{0,15}"

_ASCII_WORD = re.compile(rf"[A-Za-z0-9]+(?:(?:{_JOINER})[A-Za-z0-9]+){_MORE_PARTS}")
_LETTER = rf"[[\w\p{{M}}{_INVISIBLE}]--[_{_SPACELESS}]]"
_WORD = regex.compile(
    rf"(?V1)(?P<spaceless>[{_SPACELESS}][{_SPACELESS}\p{{M}}{_INVISIBLE}]*)"
    rf"|{_LETTER}+(?:(?:{_JOINER}){_LETTER}+){_MORE_PARTS}"
)
_SPLIT_JOINERS = re.compile(f"({_JOINER})")
_APOSTROPHE = re.compile("['\u2019]")
_CAMEL_BORDER = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})")
_PLAIN_RUN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\uac00-\ud7a3]+")
_CLUSTER = regex.compile(r"\X")
# Vowel points of Arabic and Hebrew, the Arabic stretching letter, variation selectors.
_IGNORED = regex.compile(rf"[{_INVISIBLE}\u0640\u064b-\u0652\u0670\u0591-\u05c7\ufe00-\ufe0f]")
# The breve of Cyrillic й and ў and the dots of ї make letters of their own, not accents.
_ACCENTS = regex.compile(
    r"(?V1)(?<=[\p{Latin}\p{Greek}])\p{Mn}+|(?<=\p{Cyrillic})(?:[\p{Mn}--[\u0306\u0308]]|(?<!\u0456)\u0308)"
)
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ŧ": "t", "\u0131": "i", "ð": "d"}
    | {"æ": "ae", "œ": "oe", "þ": "th"}
)
_TURKISH_CAPITALS = str.maketrans({"I": "\u0131", "İ": "i"})
_EXTENSION = re.compile(r"\.(?:md|markdown)$", re.IGNORECASE)


class Analyzer:
    """Analyses text of one language into terms; not to be shared between threads.

    Args:
        language: One of ``LANGUAGES``; chooses stemmer and stop words. Scripts without spaces are
            analysed into bigrams whatever the language.
    Raises:
        ConfigError: unknown language; the message names the set.
    """

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            supported = ", ".join(sorted(LANGUAGES))
            raise ConfigError(f"unknown language {language!r}; supported: {supported}")
        self.language = language
        algorithm = _STEMMERS[language]
        self._stemmer = Stemmer.Stemmer(algorithm, 0) if algorithm else None
        self._stop_words = frozenset(map(self._folded, load_stop_words(language)))
        self._cached_terms = lru_cache(_CACHED_WORDS)(self._terms)

    def tokens(self, text: str) -> list[str]:
        """Returns every term of a text in its order, stop words included.

        Stop words are indexed so that a query of nothing else still finds something.
        """
        tokens: list[str] = []
        # No word spans two lines, and the pattern for ASCII is several times faster.
        for line in text.split("\n"):
            if line.isascii():
                for word in _ASCII_WORD.findall(line):
                    tokens += self._word_terms(word)
            else:
                for _, _, terms in self.spans(line):
                    tokens += terms
        return tokens

    def path_tokens(self, path: str) -> list[str]:
        """Returns the terms of a workspace-relative path without its extension.

        Words stand beside their stems, so that the beginning of a word can be looked up.
        """
        tokens: list[str] = []
        for match in _WORD.finditer(_EXTENSION.sub("", path)):
            if match["spaceless"] is None:
                plain = map(self._folded, (match[0], *_parts(match[0])))
                tokens += dict.fromkeys((*self._word_terms(match[0]), *plain))
            else:
                tokens += (term for *_, terms in _bigram_spans(match[0], 0) for term in terms)
        return tokens

    def spans(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yields (start, end, terms) of each word or bigram; the offsets count characters."""
        for match in _WORD.finditer(text):
            if match["spaceless"] is None:
                yield match.start(), match.end(), self._word_terms(match[0])
            else:
                yield from _bigram_spans(match[0], match.start())

    def query_words(self, text: str) -> list[tuple[str, ...]]:
        """Returns the distinct words of a query, each with the terms that may stand for it.

        Function words are left out, unless there is nothing else.
        """
        every: dict[tuple[str, ...], bool] = {}
        for start, end, terms in self.spans(text):
            if terms and terms not in every:
                telling_parts = (part for part in terms[1:] if part not in self._stop_words)
                every[terms[0], *telling_parts] = self._is_stop_word(text[start:end])
        telling = [terms for terms, is_stop_word in every.items() if not is_stop_word]
        return telling or list(every)

    def query_terms(self, text: str, limit: int = 64) -> list[str]:
        """Returns the first ``limit`` distinct terms of a query, function words left out."""
        terms = dict.fromkeys(term for word in self.query_words(text) for term in word)
        return list(terms)[:limit]

    def last_word(self, text: str) -> str:
        """Returns the last word of a query, folded but not stemmed, to be matched as a prefix.

        Empty if it is a function word or belongs to a script that is analysed into bigrams.
        """
        last = next(iter(deque(_WORD.finditer(text[-_LAST_WORD_CHARS:]), maxlen=1)), None)
        if last is None or last["spaceless"] is not None:
            return ""
        return "" if self._is_stop_word(last[0]) else self._folded(last[0])

    def _is_stop_word(self, word: str) -> bool:
        """Tells whether a word, or each part of a contraction such as ``d'un``, says nothing."""
        if self._folded(word) in self._stop_words:
            return True
        parts = _APOSTROPHE.split(word)
        return len(parts) > 1 and all(self._folded(part) in self._stop_words for part in parts)

    def _word_terms(self, word: str) -> tuple[str, ...]:
        # Very long words are rare and would let a hostile text fill the cache with megabytes.
        return self._cached_terms(word) if len(word) <= MAX_TERM_CHARS else self._terms(word)

    def _terms(self, word: str) -> tuple[str, ...]:
        """Returns the terms of one word: the whole first, then its parts."""
        stems = chain.from_iterable(map(self._stems, (_joined(word), *_parts(word))))
        return tuple(dict.fromkeys(stem[:MAX_TERM_CHARS] for stem in stems if stem))

    def _stems(self, word: str) -> tuple[str, ...]:
        """Returns the stem without accents, and the stem of the word without accents.

        Stemmers need the accents, those who type a query may leave them out; mostly both agree.
        """
        lower = self._lower(word[:MAX_TERM_CHARS])
        plain = _without_accents(lower)
        if self._stemmer is None:
            return (plain,)
        stem = _without_accents(self._stemmer.stemWord(lower))
        return (stem, self._stemmer.stemWord(plain)) if plain != lower else (stem,)

    def _lower(self, word: str) -> str:
        if word.isascii() and self.language != "turkish":
            return word.lower()
        if self.language == "turkish":
            word = word.translate(_TURKISH_CAPITALS)
        folded = unicodedata.normalize("NFKC", word).casefold()
        return unicodedata.normalize("NFKC", _IGNORED.sub("", folded))

    def _folded(self, word: str) -> str:
        return _without_accents(self._lower(_joined(word)[:MAX_TERM_CHARS]))[:MAX_TERM_CHARS]


def _joined(word: str) -> str:
    """Returns a compound as one word: ``e-mail`` as ``email``, but ``3.14`` as it is."""
    joined, *rest = _SPLIT_JOINERS.split(word)
    for joiner, part in zip(rest[::2], rest[1::2], strict=True):
        between_digits = joined[-1].isdigit() and part[0].isdigit()
        joined += joiner + part if between_digits else part
    return joined


def _parts(word: str) -> list[str]:
    """Returns the parts of a compound but single letters; none if it is a plain word."""
    pieces = _SPLIT_JOINERS.split(word)[::2]
    parts = [part for piece in pieces for part in _CAMEL_BORDER.split(piece)]
    if len(parts) == 1:
        return []
    return [part for part in parts[:_MAX_PARTS] if len(part) > 1 or part.isdigit()]


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).translate(_UNDECOMPOSED)


def _bigram_spans(run: str, offset: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yields the overlapping pairs of user-perceived characters; a lone one stands for itself."""
    if _PLAIN_RUN.fullmatch(run) and unicodedata.is_normalized("NFKC", run):
        # Each code point is a character by itself: nearly all Chinese, Japanese and Korean text.
        borders, folded = list(range(len(run) + 1)), list(run)
    else:
        borders = [0, *(match.end() for match in _CLUSTER.finditer(run))]
        folded = [_fold_cluster(run[start:end]) for start, end in pairwise(borders)]
    if len(folded) == 1:
        yield offset, offset + len(run), (folded[0][:MAX_TERM_CHARS],)
    for index, (first, second) in enumerate(pairwise(folded)):
        term = (first + second)[:MAX_TERM_CHARS]
        yield offset + borders[index], offset + borders[index + 2], (term,)


@lru_cache(_CACHED_WORDS)
def _fold_cluster(cluster: str) -> str:
    return unicodedata.normalize("NFKC", _IGNORED.sub("", cluster))
