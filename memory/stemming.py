"""Which stem do the inflected forms of a word share, in languages that Snowball does not know?

Light stemmers: they cut the endings of a grammar's tables, the longest that fits, then even out
what inflection does to the end of a stem. Nothing is looked up, so names and new words are stemmed
like any other, and words that end as if they were inflected (рукав, рука) may meet. Each takes a
word in lower case and NFC, in time linear to its length.

Sources of the methods: for Bulgarian J. Savoy, *Searching Strategies for the Bulgarian Language*
(Information Retrieval 10, 2007: article, plural, fleeting vowel) and P. Nakov, *BulStem* (2003:
verbs); for Ukrainian M. Porter's *Russian stemming algorithm* (reflexive, ending, theme) with the
endings of Ukrainian; for Sanskrit the declensions of W. D. Whitney, *Sanskrit Grammar* (1889)
§§ 330, 339, 341, 364. The tables are our own.
"""

# Cyrillic letters that look like Latin ones are what this module is about.
# ruff: noqa: RUF001, RUF003

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from re import Pattern


def _endings(table: str) -> frozenset[str]:
    return frozenset(table.split())


_BULGARIAN_ARTICLES = _endings("ът ят ия ият")
# The articles -та, -то, -те lean on a vowel, or on the т and щ of feminine nouns such as нощ.
_BULGARIAN_AFTER = _endings("ата ята тта щта ото ето ите ете ате")
_BULGARIAN_INFLECTIONS = _endings("а я о е и й у ю ии ие иете ове еве йове ища ище ета йо")
_BULGARIAN_VERBS = _endings(
    """
    ам ем им ям аш еш иш яш ат ет ит ят ах ех их ох ях аме еме име яме
    ахм ехм ихм охм яхм ахт ехт ихт охт яхт ал ел ил ял ащ ещ ящ ай ей яй айк ейк яйк айт ейт яйт
    ав яв авам явам аваш яваш ават яват авал явал авах явах авахм явахм авахт явахт аващ яващ
    авай явай авайк явайк авайт явайт аван яван ан ян
    """
)

_UKRAINIAN_REFLEXIVES = frozenset(["ся", "сь"])
_UKRAINIAN_FUTURES = _endings("тиму тимеш тиме тимемо тимем тимете тимуть")
_UKRAINIAN_INFLECTIONS = _endings(
    """
    а я о е є и і ї у ю ь й ам ям ами ями ах ях ом ем єм ою ею єю ей ій їй ії ію ією
    ий ого його ому йому им ім їм ої ими іми їми их іх їх ая яя еє ую юю
    ать ять еть єть ить їть іть уть ють еш єш иш їш емо ємо имо їмо ете єте ите їте імо йте ймо вши
    учи ючи ачи ячи
    """
)
_UKRAINIAN_POSSESSIVES = frozenset(["ов", "ев", "єв"])
_UKRAINIAN_THEMES = _endings(
    """
    ува юва уват юват ував ював увал ювал уй юй ат ят ит іт ут ав яв ив ув ал ял ил іл ул
    """
)

_LONGEST_ENDING = 8
_MIN_STEM = 3
_MIN_CONSONANTS = 2
_FINAL_VOWELS = "аеєиіїоуюяьй"
# In a closed syllable о and є have become і and ї: столу and стіл, новості and новість, Київ.
_CLOSED_SYLLABLE = re.compile("(?<=..)і(?=[^аеєиіїоуюя]$)|(?<=...)і(?=ст$)")
# As in питання, питань.
_DOUBLED = re.compile(r"(?<=(.))\1$")
_BULGARIAN_FLEETING = re.compile("(?<=.[^аеиоуъюяй])[еъ](?=[кцнрлм]$)")
_UKRAINIAN_FLEETING = re.compile("(?<=.[^аеєиіїоуюяй])(?:о(?=[кн]$)|е(?=[кцнрл]$))")
# Before -і, -и and -е of some cases к and г are heard as ц and з.
_UNPALATALISED = str.maketrans("цз", "кг")
# Too irregular for the rules, too common to be missed: day, week, year, night, house.
_IRREGULAR_STEMS = {
    **dict.fromkeys(("ден", "днев", "днов"), "дн"),
    "тиждн": "тижн",
    "рік": "рок",
    "ніч": "ноч",
    "дім": "дом",
}

_SANSKRIT_ENDINGS = _endings(
    """
    ः ौ ाः म् ान् ेन ेण ाभ्याम् ैः ाय ेभ्यः ात् स्य योः ानाम् ाणाम् े ेषु ानि ाणि ा ो
    ाम् या ाभिः ायै ाभ्यः ायाः ायाम् ासु
    ि ी िः ीः िम् ीम् ीन् िना िणा िभ्याम् ीभ्याम् िभिः ीभिः िभ्यः ीभ्यः ेः ीनाम् ीणाम् िषु ीषु ीनि ीणि
    ्या ्यै ्याः ्याम् ्योः ्यौ ्यः
    ु ू ुः ूः ुम् ूम् ून् ुना ुणा ुनी ुणी ुभ्याम् ुभिः ुभ्यः ोः ूनाम् ूणाम् ुषु ूनि ूणि ्वोः ्वा ्वै ्वाः ्वाम्
    ति न्ति ामि ामः
    """
)
_DEVANAGARI_CONSONANT = re.compile("[\u0915-\u0939\u0958-\u095f]")
_GLIDE = re.compile("\u094d[\u092f\u0935]$")


def stem_bulgarian(word: str) -> str:
    """Returns a Bulgarian word without article, ending and theme of the verb."""
    stem = word
    if word[-3:] in _BULGARIAN_AFTER and len(word) > 4:  # noqa: PLR2004 - as Savoy has it
        stem = word[:-2]
    else:
        stem = _cut(word, _BULGARIAN_ARTICLES)
    stem = _cut(stem, _BULGARIAN_INFLECTIONS, at_least=3 if len(stem) > 4 else 2)  # noqa: PLR2004
    stem = _without_final_vowels(_cut(_without_final_vowels(stem), _BULGARIAN_VERBS))
    # In бял, бели and бряг, брегове the vowel depends on the stress.
    return _evened(stem.replace("я", "е"), fleeting=_BULGARIAN_FLEETING)


def stem_ukrainian(word: str) -> str:
    """Returns a Ukrainian word without reflexive, ending and theme of the verb.

    Apostrophes and ґ are written by some and left out by others: both are evened out.
    """
    word = word.replace("ґ", "г").replace("'", "").replace("\u2019", "")
    word = _cut(word, _UKRAINIAN_REFLEXIVES, at_least=4)
    if word.endswith(("ів", "їв")):
        word = word[:-2] + ("ов" if word[-2] == "і" else "єв")
    infinitive = _cut(word, _UKRAINIAN_FUTURES)
    stem = _cut(infinitive, _UKRAINIAN_INFLECTIONS, at_least=2)
    stem = _without_final_vowels(_cut(_cut(stem, _UKRAINIAN_POSSESSIVES), _UKRAINIAN_THEMES))
    stem = _CLOSED_SYLLABLE.sub("о", _DOUBLED.sub("", stem))
    return _evened(stem, fleeting=_UKRAINIAN_FLEETING)


def stem_sanskrit(word: str) -> str:
    """Returns a Sanskrit word in Devanagari without the ending of vowel stems and of the present.

    Stems in consonants and in ṛ, and forms that strengthen the vowel (कवयः), are left apart: their
    endings are the ends of other words.
    """
    word = re.sub("\u0902$", "\u092e\u094d", word)
    for length in range(min(_LONGEST_ENDING, len(word) - 1), 0, -1):
        stem, ending = word[:-length], word[-length:]
        if ending in _SANSKRIT_ENDINGS and _holds_ending(stem, ending):
            break
    else:
        stem = word
    shorter = _GLIDE.sub("", stem)
    return shorter if _holds_ending(shorter, "") else stem


OWN_STEMMERS: Mapping[str, Callable[[str], str]] = {
    "bulgarian": stem_bulgarian,
    "sanskrit": stem_sanskrit,
    "ukrainian": stem_ukrainian,
}
"""The stemmer of each language that Snowball lacks: word in lower case and NFC -> stem."""


def _cut(word: str, endings: frozenset[str], *, at_least: int = _MIN_STEM) -> str:
    """Returns a word without the longest of ``endings`` that leaves ``at_least`` letters."""
    for length in range(min(_LONGEST_ENDING, len(word) - at_least), 0, -1):
        if word[-length:] in endings:
            return word[:-length]
    return word


def _without_final_vowels(stem: str) -> str:
    return (
        stem[:_MIN_STEM] + stem[_MIN_STEM:].rstrip(_FINAL_VOWELS)
        if stem[_MIN_STEM:]
        else stem.rstrip("ьй")
    )


def _evened(stem: str, *, fleeting: Pattern[str]) -> str:
    """Returns a stem without the vowel that comes and goes before its last consonant."""
    stem = fleeting.sub("", stem)
    stem = _IRREGULAR_STEMS.get(stem, stem)
    return stem[:-1] + stem[-1:].translate(_UNPALATALISED)


def _holds_ending(stem: str, ending: str) -> bool:
    """Tells whether a stem is long enough, and ends on a bare consonant where that is needed."""
    if len(_DEVANAGARI_CONSONANT.findall(stem)) < _MIN_CONSONANTS:
        return False
    return (
        not ending
        or ord(ending[0]) in range(0x093E, 0x094E)
        or ending == "ः"
        or bool(_DEVANAGARI_CONSONANT.match(stem[-1]))
    )
