"""Into which terms is a text analysed?

The same chain serves indexing and queries: words by Unicode segmentation, case and accents folded,
compounds in parts beside the whole, stems of the configured language, bigrams for scripts that are
written without spaces, emoji as they are. Nothing here knows the index.

``dutch`` uses Snowball's ``dutch_porter``, ``indian`` its ``hindi``; Snowball has no stemmer for
``bulgarian``, ``sanskrit`` and ``ukrainian``, ``memory.stemming`` does.
"""

from __future__ import annotations

import re
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import Stemmer

from memory.errors import ConfigError
from memory.folding import folded_emoji, lower_case, without_accents
from memory.segmentation import ASCII_WORD, WORD, characters, joined, parts
from memory.stemming import OWN_STEMMERS
from memory.stop_words import load_stop_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from regex import Match

_Result = TypeVar("_Result")

ANALYSIS_VERSION = 3
"""Grows with every change of the terms; an index of another version is rebuilt."""

_NAMES = """
    arabic armenian bulgarian danish dutch english finnish french german greek hungarian
    indian indonesian irish italian lithuanian nepali norwegian portuguese romanian russian
    sanskrit serbian spanish swedish tamil turkish ukrainian
"""
LANGUAGES = frozenset(_NAMES.split())
"""Names that ``memory.language`` may take (SPEC S3)."""
_SNOWBALL_NAMES = {"dutch": "dutch_porter", "indian": "hindi"}
"""Of the stemmers that are called otherwise."""

# How many letters at the end of a stem its words may spell differently if they are ASCII: ``happi``
# of happy. One more than half a million words showed; English by the rules of its stemmer.
# Stemmers of other scripts leave ASCII alone, or shorten it.
_CHANGED_LETTERS = {"danish": 1, "dutch": 3, "english": 1, "french": 3, "hungarian": 2}
_CHANGED_LETTERS |= {"italian": 2, "lithuanian": 1, "norwegian": 1, "portuguese": 1, "romanian": 2}
_CHANGED_LETTERS |= {"spanish": 2, "swedish": 1}
# These take beginnings off, or change letters in the middle.
_REWRITTEN = frozenset({"finnish", "german", "indonesian", "irish", "serbian", "turkish"})

MAX_TERM_CHARS = 64
"""Longer terms are cut, in the index and in queries alike."""

_LAST_WORD_CHARS = 256
# Some 30 MB when full of ordinary text, 80 MB when full of hostile text.
_CACHED_WORDS = 1 << 16
_LONGEST_CACHED_WORD = 32
_APOSTROPHE = re.compile("['\u2019\u02bc]")
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
        snowball = _SNOWBALL_NAMES.get(language, language)
        self._stem = OWN_STEMMERS.get(language) or Stemmer.Stemmer(snowball, 0).stemWord
        self._stop_words = frozenset(map(self._folded, load_stop_words(language)))
        self._word_terms = _Analysed(self._terms)
        self._piece_terms = _Analysed(self._terms_between_spaces)
        self._asked = _Analysed(self._asked_between_spaces)

    def tokens(self, text: str) -> list[str]:
        """Returns every term of a text in its order, stop words included.

        Stop words are indexed so that a query of nothing else still finds something. A run of a
        script without spaces ends with its last character as a term of its own, so that each
        character of the run is the beginning of some term.
        """
        # No word spans white space, and a look-up is many times faster than segmentation.
        return list(chain.from_iterable(map(self._piece_terms.__getitem__, text.split())))

    def path_tokens(self, path: str) -> list[str]:
        """Returns the terms of a workspace-relative path without its extension.

        Words stand beside their stems, so that the beginning of a word can be looked up.
        """
        tokens: list[str] = []
        for match in WORD.finditer(_EXTENSION.sub("", path)):
            tokens += self._match_terms(match)
            if match.lastgroup is None:
                plain = map(self._folded, (match[0], *parts(match[0])))
                tokens += set(plain).difference(self._match_terms(match))
        return tokens

    def spans(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yields (start, end, terms) of all that ``tokens`` returns; offsets count characters."""
        for match in WORD.finditer(text):
            if match["spaceless"] is None:
                yield match.start(), match.end(), self._match_terms(match)
            else:
                yield from _bigram_spans(match[0], match.start())

    def terms_of_pieces(self, pieces: Iterable[str]) -> Iterator[tuple[str, ...]]:
        """Yields what ``tokens`` returns for each piece of a text, cut where it has white space."""
        return map(self._piece_terms.__getitem__, pieces)

    def beginnings(self, term: str) -> tuple[str, ...] | None:
        """Returns strings of which one begins each word, or part, with a term; None if unknown.

        Only for words in ASCII: each in lower case and without its joiners.
        """
        if self.language in _REWRITTEN:
            return None
        kept = term[: max(1, len(term) - _CHANGED_LETTERS.get(self.language, 0))]
        if self.language == "english" and len(term) == len("die") and term.endswith("ie"):
            return kept, f"{term[0]}ying"
        return (kept,)

    def query_words(self, text: str) -> list[tuple[str, ...]]:
        """Returns the distinct words of a query, each with the terms that may stand for it.

        Function words are left out, unless there is nothing else. A lone character of a script
        without spaces is a word by itself; see ``prefix_words``.
        """
        every: dict[tuple[str, ...], bool] = {}
        # No word spans white space.
        for piece in text.split():
            every.update(self._asked[piece].words)
        telling = [terms for terms, is_stop_word in every.items() if not is_stop_word]
        return telling or list(every)

    def query_terms(self, text: str, limit: int = 64) -> list[str]:
        """Returns the first ``limit`` distinct terms of a query, function words left out."""
        terms = dict.fromkeys(term for word in self.query_words(text) for term in word)
        return list(terms)[:limit]

    def prefix_words(self, text: str) -> tuple[str, ...]:
        """Returns the distinct lone characters of a query in scripts without spaces, folded.

        Each is also the only term of its word in ``query_words``. It stands for every term that
        begins with it: a text holds the character exactly if it has such a term.
        """
        runs = (match["spaceless"] for match in WORD.finditer(text))
        terms = map(_spaceless_terms, filter(None, runs))
        return tuple(dict.fromkeys(each[0] for each in terms if len(each) == 1))

    def last_word(self, text: str) -> str:
        """Returns the last word of a query, folded but not stemmed, to be matched as a prefix.

        Empty if it is a function word, an emoji or of a script that is analysed into bigrams.
        """
        for piece in reversed(text[-_LAST_WORD_CHARS:].split()):
            if (last := self._asked[piece].last) is not None:
                return last
        return ""

    def _is_stop_word(self, word: str) -> bool:
        """Tells whether a word, or each part of a contraction such as ``d'un``, says nothing."""
        if word.isascii() and word.isalpha():
            return word.lower() in self._stop_words
        if self._folded(word) in self._stop_words:
            return True
        split = _APOSTROPHE.split(word)
        return len(split) > 1 and all(self._folded(part) in self._stop_words for part in split)

    def _asked_between_spaces(self, piece: str) -> _Asked:
        words: dict[tuple[str, ...], bool] = {}
        match = None
        for match in _words(piece):
            terms = self._match_terms(match)
            if match.lastgroup == "spaceless":
                # The last character alone is only for the index to look up.
                words |= dict.fromkeys(((term,) for term in terms[:-1] or terms), False)
            elif terms:
                telling_parts = (part for part in terms[1:] if part not in self._stop_words)
                words[terms[0], *telling_parts] = self._is_stop_word(match[0])
        if match is None:
            return _Asked((), None)
        nothing_to_complete = match.lastgroup is not None or self._is_stop_word(match[0])
        return _Asked(tuple(words.items()), "" if nothing_to_complete else self._folded(match[0]))

    def _terms_between_spaces(self, piece: str) -> tuple[str, ...]:
        if piece.isascii():
            words = map(self._word_terms.__getitem__, ASCII_WORD.findall(piece))
        else:
            words = map(self._match_terms, WORD.finditer(piece))
        return tuple(chain.from_iterable(words))

    def _match_terms(self, match: Match[str] | re.Match[str]) -> tuple[str, ...]:
        if match.lastgroup is None:
            return self._word_terms[match[0]]
        if match["emoji"] is not None:
            return (folded_emoji(match[0]),)
        return _spaceless_terms(match[0])

    def _terms(self, word: str) -> tuple[str, ...]:
        """Returns the terms of one word: the whole first, then its parts."""
        if word.isascii() and word.isalpha() and (word.islower() or word.istitle()):
            # Most words, and much faster: no parts, no accents, one stem.
            return (self._stem(self._lower(word[:MAX_TERM_CHARS])),)
        stems = chain.from_iterable(map(self._stems, (joined(word), *parts(word))))
        return tuple(dict.fromkeys(stem[:MAX_TERM_CHARS] for stem in stems if stem))

    def _stems(self, word: str) -> tuple[str, ...]:
        """Returns the stem without accents, and the stem of the word without accents.

        Stemmers need the accents, those who type a query may leave them out; mostly both agree.
        """
        lower = self._lower(word[:MAX_TERM_CHARS])
        plain = without_accents(lower)
        stem = without_accents(self._stem(lower))
        return (stem, self._stem(plain)) if plain != lower else (stem,)

    def _lower(self, word: str) -> str:
        return lower_case(word, turkish=self.language == "turkish")

    def _folded(self, word: str) -> str:
        return without_accents(self._lower(joined(word)[:MAX_TERM_CHARS]))[:MAX_TERM_CHARS]


def _words(text: str) -> Iterator[Match[str] | re.Match[str]]:
    """Yields the words of a text; ``lastgroup`` names what is none of letters."""
    return ASCII_WORD.finditer(text) if text.isascii() else WORD.finditer(text)


class _Asked(NamedTuple):
    """What a piece of a query between spaces asks for."""

    words: tuple[tuple[tuple[str, ...], bool], ...]
    """Distinct words, each as its terms and whether it is a function word."""
    last: str | None
    """See ``Analyzer.last_word``; None if there is no word."""


class _Analysed(dict[str, _Result]):
    """What was analysed before; a look-up analyses what is missing.

    Very long strings are rare and would let a hostile text fill the cache with megabytes.
    """

    def __init__(self, analyse: Callable[[str], _Result]) -> None:
        super().__init__()
        self._analyse = analyse

    def __missing__(self, text: str) -> _Result:
        found = self._analyse(text)
        if len(text) <= _LONGEST_CACHED_WORD:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[text] = found
        return found


def _spaceless_terms(run: str) -> tuple[str, ...]:
    """Returns the overlapping pairs of user-perceived characters, then the last one by itself."""
    _, folded = characters(run)
    terms = (*map(add, folded, folded[1:]), folded[-1])
    return tuple(term[:MAX_TERM_CHARS] for term in terms)


def _bigram_spans(run: str, offset: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    borders, _ = characters(run)
    ends = [*borders[2:], borders[-1]]
    for start, end, term in zip(borders, ends, _spaceless_terms(run), strict=False):
        yield offset + start, offset + end, (term,)
