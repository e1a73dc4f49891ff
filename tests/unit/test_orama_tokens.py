"""Does ``scoring: orama`` split and stem texts as Orama does?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory.analysis import LANGUAGES
from memory.errors import ConfigError
from memory.orama_stemming import stem_english
from memory.orama_tokens import OramaTokenizer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "orama_3.1.18.json").read_text("utf-8"))
UNSTEMMED = {"bulgarian", "sanskrit", "ukrainian"}


@pytest.mark.parametrize("recorded", GOLDEN["tokens"], ids=lambda recorded: recorded["language"])
def test_tokens_are_those_of_orama(recorded):
    tokens = OramaTokenizer(recorded["language"]).tokens(recorded["text"])

    assert tokens == recorded["tokens"]


def test_the_recorded_tokens_cover_every_language_that_is_stemmed():
    assert {recorded["language"] for recorded in GOLDEN["tokens"]} == LANGUAGES - UNSTEMMED


@pytest.mark.parametrize("language", sorted(UNSTEMMED))
def test_a_language_without_a_stemmer_keeps_its_words(language):
    assert OramaTokenizer(language).tokens("2031 q 2031") == ["2031", "q"]


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match="klingon"):
        OramaTokenizer("klingon")


def test_a_very_long_word_is_one_token():
    assert OramaTokenizer("english").tokens("x" * 10_000) == ["x" * 10_000]


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        # Examples of Porter's paper, one or two a step.
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("bled", "bled"),
        ("sized", "size"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("triplicate", "triplic"),
        ("hopeful", "hope"),
        ("goodness", "good"),
        ("replacement", "replac"),
        ("probate", "probat"),
        ("rate", "rate"),
        ("cease", "ceas"),
        ("controll", "control"),
        ("roll", "roll"),
        # A y at the beginning is a consonant, and comes back.
        ("yeast", "yeast"),
        ("is", "is"),
    ],
)
def test_english_is_stemmed_by_porters_algorithm(word, stem):
    assert stem_english(word) == stem


def test_the_letter_before_ion_goes_too():
    """Porter's paper keeps it: adopt."""
    assert stem_english("adoption") == "adop"
