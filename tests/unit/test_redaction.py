"""Is what a provider says fit to be shown?"""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.providers.redaction import MAX_CHARS, presentable

KEY = "sk-canary/KEY+that=nobody&may-see-0123456789"
TEXT = "The kettle whistles\nin the harbour, and nobody\u2019s there"


@pytest.mark.parametrize(
    "told",
    [
        KEY,
        KEY.upper(),
        quote(KEY),
        quote(KEY, safe=""),
        KEY.replace("/", "\\/"),
        f"Bearer {KEY}.",
        f"{KEY[:9]}****",
        f"****{KEY[-8:]}",
        KEY[10:30],
    ],
)
def test_no_part_of_the_key_is_shown_in_any_form(told):
    """FAULTS 64."""
    shown = presentable(f"wrong key {told} given", key=KEY).lower()

    assert shown.startswith("wrong key ")
    assert shown.endswith(" given")
    assert not [at for at in range(len(KEY) - 7) if KEY[at : at + 8].lower() in shown]


def test_a_short_key_is_hidden_whole():
    assert presentable("key abc12 is wrong", key="abc12") == "key [key] is wrong"


def test_without_a_key_nothing_is_hidden():
    assert presentable("no key given", key="") == "no key given"


@pytest.mark.parametrize("told", [TEXT, repr(TEXT), TEXT[8:30], TEXT.upper()])
def test_no_text_is_shown(told):
    shown = presentable(f"cannot embed {told}", key="", texts=["other", TEXT]).lower()

    assert "kettle" not in shown
    assert "harbour" not in shown


def test_a_message_is_one_harmless_line_of_200_characters():
    shown = presentable("a\x1b[31m\nb\u202e " + "c" * 500, key="")

    assert len(shown) <= MAX_CHARS
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert "\u202e" not in shown


@given(st.text(max_size=40), st.text(min_size=8, max_size=30, alphabet="abcABC123-_"))
def test_wherever_the_key_stands_it_is_hidden(around, key):
    assert key.lower() not in presentable(around + key + around, key=key).lower()
