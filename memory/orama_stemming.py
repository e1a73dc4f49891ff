"""Which stem does Orama 3.1.18 give an English word?

Porter's algorithm of 1980 ("An algorithm for suffix stripping", Program 14/3) as Orama has it. It
differs from Snowball's ``porter`` in one rule: with the ending ``ion`` goes the ``s`` or ``t``
before it, so that ``adoption`` becomes ``adop``. Names follow the paper.
"""

from __future__ import annotations

import re

_C = "[^aeiou][^aeiouy]*"
_V = "[aeiouy][aeiou]*"
_MEASURE_ABOVE_0 = re.compile(f"(?:{_C})?{_V}{_C}")
_MEASURE_1 = re.compile(f"(?:{_C})?{_V}{_C}(?:{_V})?")
_MEASURE_ABOVE_1 = re.compile(f"(?:{_C})?{_V}{_C}{_V}{_C}")
_HAS_VOWEL = re.compile(f"(?:{_C})?[aeiouy]")
_SHORT_SYLLABLE = re.compile(f"{_C}[aeiouy][^aeiouwxy]")
_DOUBLE_CONSONANT = re.compile(r"([^aeiouylsz])\1\Z")

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP_3 = {
    "icate": "ic",
    "ative": "",  # codespell:ignore ative
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4 = (
    "al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|"  # codespell:ignore ment
    "ou|ism|ate|iti|ous|ive|ize"
)


def _ending_of(endings: str) -> re.Pattern[str]:
    """Returns the pattern of a word that ends so; the longest ending counts."""
    return re.compile(f"(.+?)({endings})")


_ENDS_AS_STEP_2 = _ending_of("|".join(_STEP_2))
_ENDS_AS_STEP_3 = _ending_of("|".join(_STEP_3))
_ENDS_AS_STEP_4 = _ending_of(_STEP_4)
_ENDS_IN_ION = _ending_of("[st]ion")


def stem_english(word: str) -> str:
    """Returns the stem of a lower-case word; words of one or two letters stay as they are."""
    if len(word) <= 2:  # noqa: PLR2004 - the bound of the paper
        return word
    # A y at the beginning is a consonant.
    marked = f"Y{word[1:]}" if word[0] == "y" else word
    stem = _step_1c(_step_1b(_step_1a(marked)))
    stem = _replaced(stem, _ENDS_AS_STEP_2, _STEP_2)
    stem = _replaced(stem, _ENDS_AS_STEP_3, _STEP_3)
    stem = _step_5(_step_4(stem))
    return f"y{stem[1:]}" if word[0] == "y" else stem


def _step_1a(word: str) -> str:
    """Takes the plural away."""
    if (len(word) > len("ies") and word.endswith("ies")) or (
        len(word) > len("sses") and word.endswith("sses")
    ):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] != "s" else word


def _step_1b(word: str) -> str:
    """Takes the past tense and the participle away."""
    if len(word) > len("eed") and word.endswith("eed"):
        return word[:-1] if _MEASURE_ABOVE_0.match(word[:-3]) else word
    ending = next((end for end in ("ed", "ing") if word.endswith(end)), "")
    stem = word.removesuffix(ending)
    if not ending or not _HAS_VOWEL.match(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if _DOUBLE_CONSONANT.search(stem):
        return stem[:-1]
    return f"{stem}e" if _SHORT_SYLLABLE.fullmatch(stem) else stem


def _step_1c(word: str) -> str:
    return f"{word[:-1]}i" if word[-1] == "y" and _HAS_VOWEL.match(word[:-1]) else word


def _replaced(word: str, ending: re.Pattern[str], replacements: dict[str, str]) -> str:
    match = ending.fullmatch(word)
    if match is None or not _MEASURE_ABOVE_0.match(match[1]):
        return word
    return match[1] + replacements[match[2]]


def _step_4(word: str) -> str:
    match = _ENDS_AS_STEP_4.fullmatch(word) or _ENDS_IN_ION.fullmatch(word)
    return match[1] if match is not None and _MEASURE_ABOVE_1.match(match[1]) else word


def _step_5(word: str) -> str:
    """Takes a last ``e`` away, and one of two ``l``."""
    stem = word[:-1]
    if word[-1] == "e" and (
        _MEASURE_ABOVE_1.match(stem)
        or (_MEASURE_1.fullmatch(stem) and not _SHORT_SYLLABLE.fullmatch(stem))
    ):
        word = stem
    return word[:-1] if word.endswith("ll") and _MEASURE_ABOVE_1.match(word) else word
