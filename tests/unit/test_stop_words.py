"""Do the lists of function words hold what they should, and nothing that people search for?"""

import unicodedata

import pytest

from memory.analysis import LANGUAGES
from memory.stop_words import load_stop_words


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_each_language_has_a_short_list_in_its_own_spelling(language):
    words = load_stop_words(language)

    assert 30 <= len(words) <= 130
    assert all(word == unicodedata.normalize("NFC", word.lower()) for word in words)


def test_words_that_carry_meaning_are_not_in_the_english_list():
    searched_for = {"system", "work", "name", "time", "change", "show", "find", "computer", "bill"}

    assert not load_stop_words("english") & searched_for
