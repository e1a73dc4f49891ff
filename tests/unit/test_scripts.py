"""In which script is a text written?"""

import pytest

from memory.scripts import script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", "Latin"),
        ("1234 \N{GRINNING FACE}", "Latin"),
        ("a cat", "Latin"),
        ("Übergröße für Ärzte", "Latin"),
        ("мой кот и my cat", "Cyrillic"),
        ("我的猫", "Han"),
        ("冷蔵庫の音", "Kana"),
        ("고양이", "Hangul"),
        ("قطتي", "Arabic"),
        ("मेरी बिल्ली", "Devanagari"),
        ("แมวของฉัน", "Thai"),
        ("η γάτα μου", "Greek"),
        ("החתול שלי", "Hebrew"),
        # Most of its letters count, not the first ones.
        ("API 和数据库的迁移计划", "Han"),
        ("the file 计划.md is in the folder", "Latin"),
    ],
)
def test_the_script_is_that_of_most_letters(text, script):
    assert script_of(text) == script


def test_a_long_text_is_told_by_its_beginning():
    assert script_of("кот " * 2_000 + "猫" * 20_000) == "Cyrillic"
