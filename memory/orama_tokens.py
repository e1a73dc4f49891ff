"""Into which tokens does Orama 3.1.18 split a text?

Only ``scoring: orama`` asks; everything else uses ``memory.analysis``. What looks like a fault is
Orama's own and kept, because the scores depend on it: a letter that the pattern of the language
does not list splits a word (``naïve`` becomes ``na`` and ``ve``), and accents are folded only after
stemming.

Equal to Orama are the patterns, the folding, the English stemmer and the English stop words. The
other languages use Snowball's stemmers and the stop words of ``memory.stop_words``, which are
shorter than Orama's; ``bulgarian``, ``sanskrit`` and ``ukrainian`` are not stemmed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

import Stemmer

from memory.errors import ConfigError
from memory.orama_stemming import stem_english
from memory.stop_words import load_stop_words

if TYPE_CHECKING:
    from collections.abc import Callable

_DEVANAGARI = "0-9a-z\u0905-\u0939"
_WESTERN = "A-Za-z\u00e0\u00e8\u00e9\u00ec\u00f2\u00f30-9_'\u00f9-"
_LETTERS = {
    "arabic": "a-z0-9\u0623-\u064a",
    "armenian": "a-z0-9\u0561-\u0586",
    "bulgarian": "a-z0-9\u0430-\u044f",
    "danish": "a-z0-9æøå",
    "dutch": _WESTERN,
    "english": _WESTERN,
    "finnish": "a-z0-9äö",
    "french": "a-z0-9äâàéèëêïîöôùüûœç-",
    "german": "a-z0-9äöüß",
    "greek": "a-z0-9\u03b1-\u03c9\u03ac-\u03ce",
    "hungarian": "a-z0-9áéíóöőúüű",
    "indian": _DEVANAGARI,
    "indonesian": "a-z0-9",
    "irish": "a-z0-9áéíóú",
    "italian": _WESTERN,
    "lithuanian": "a-z0-9ąčęėįšųūž",
    "nepali": _DEVANAGARI,
    "norwegian": "a-z0-9_æøåäöü",
    "portuguese": "a-z0-9\u00e0-\u00fa\u00c0-\u00da",
    "romanian": "a-z0-9ăâîșț",
    "russian": "a-z0-9\u0430-\u044fё",
    "sanskrit": "a-z0-9āīūṛḷṃṁḥśṣṭḍṇṅñḻḹṝ",
    "serbian": "a-z0-9čćžšđ",
    "spanish": "a-z0-9\u00e1-\u00fa\u00c1-\u00daüñ",
    "swedish": "a-z0-9_åäö\u00fc-",
    "tamil": "a-z0-9\u0b85-\u0bb9",
    "turkish": "a-z0-9çğ\u0131i\u0130öşü",
    "ukrainian": "a-z0-9\u0430-\u044f\u0456їє",
}
"""What a word may consist of, in the notation of a character class; capitals count too."""

_SNOWBALL = {
    **{language: language for language in _LETTERS},
    "dutch": "dutch_porter",
    "indian": "hindi",
}
_NOT_STEMMED = ("bulgarian", "sanskrit", "ukrainian")

# The closed classes of English in full. Orama leaves out the article "a".
_MORE_ENGLISH = """
above after again against all any because before being below between both cannot doing down during
each few further having here hers herself himself itself may might more most must myself nor off
once only other ought ours ourselves out over own same shall some such theirs themselves then there
through too under until up very while yours yourself yourselves
"""
_CONTRACTED = {
    "'d": "i you he she we they",
    "'ll": "i you he she we they",
    "'m": "i",
    "'re": "you we they",
    "'s": "he she it that what who here there when where why how let",
    "'ve": "i you we they",
    "n't": "is are was were has have had does do did wo would sha should ca could must",
}

# Characters in front of these have no capital and are not one themselves.
_LAST_CASED = 0x2000
_FOLDED = str.maketrans(
    {chr(code): unicodedata.normalize("NFD", chr(code))[0] for code in range(0xC0, 0x180)}
    | dict(zip("æðøþßđħ\u0131ĳĸŀłŉŋœŧ\u017f", "aeopsdhiiklnnnots", strict=True))
)
_CACHED_WORDS = 1 << 16
_MAX_CACHED_CHARS = 64


class OramaTokenizer:
    """Splits texts and queries of one language as Orama does; not to be shared between threads.

    Args:
        language: One of ``memory.analysis.LANGUAGES``.
    Raises:
        ConfigError: unknown language.
    """

    def __init__(self, language: str) -> None:
        if language not in _LETTERS:
            raise ConfigError(f"unknown language {language!r}")
        self._words = _pattern_of(_LETTERS[language])
        self._stop_words = _stop_words_of(language)
        self._stem = _stemmer_of(language)
        self._cached_token = lru_cache(_CACHED_WORDS)(self._token)

    def tokens(self, text: str) -> list[str]:
        """Returns the distinct tokens of a text in the order of their first occurrence."""
        words = dict.fromkeys(self._words.findall(text.lower()))
        found = dict.fromkeys(
            self._cached_token(word) if len(word) <= _MAX_CACHED_CHARS else self._token(word)
            for word in words
        )
        found.pop("", None)
        return list(found)

    def _token(self, word: str) -> str:
        """Returns the token of a word in lower case, empty for a stop word."""
        return "" if word in self._stop_words else self._stem(word).translate(_FOLDED)


def _pattern_of(letters: str) -> re.Pattern[str]:
    """Returns the pattern of a word of lower-case text.

    Cases are matched as JavaScript does it: by capitals, of which only single ones count, and no
    ASCII one for a letter that is not ASCII. Python's own rule differs.
    """
    listed = re.compile(f"[{letters}]")
    every = list(map(chr, range(_LAST_CASED)))
    capitals = {_capital(character) for character in every if listed.match(character)}
    allowed = (re.escape(character) for character in every if _capital(character) in capitals)
    return re.compile(f"[{''.join(allowed)}]+")


def _capital(character: str) -> str:
    capital = character.upper()
    if len(capital) > 1 or (not character.isascii() and capital.isascii()):
        return character
    return capital


def _stop_words_of(language: str) -> frozenset[str]:
    words = load_stop_words(language)
    if language != "english":
        return words
    contracted = {
        f"{word}{ending}" for ending, words in _CONTRACTED.items() for word in words.split()
    }
    return (words | set(_MORE_ENGLISH.split()) | contracted) - {"a"}


def _stemmer_of(language: str) -> Callable[[str], str]:
    if language == "english":
        return stem_english
    if language in _NOT_STEMMED:
        return str
    stem: Callable[[str], str] = Stemmer.Stemmer(_SNOWBALL[language], 0).stemWord
    return stem
