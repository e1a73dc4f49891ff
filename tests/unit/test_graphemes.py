import regex
from hypothesis import given
from hypothesis import strategies as st

from memory.graphemes import boundary_before, cut

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
CLUSTERS = [
    "a",
    "é",
    "e\u0301",
    "中",
    "か\u3099",
    FAMILY,
    "🇩🇪",
    "👍🏽",
    "\r\n",
    "각",
    "ก\u0e33",
    " ",
]
TEXTS = st.lists(st.sampled_from(CLUSTERS), max_size=20).map("".join)


@given(TEXTS, st.integers(0, 80))
def test_a_boundary_is_the_last_one_that_the_standard_allows(text, position):
    allowed = [match.start() for match in regex.finditer(r"\X", text)] + [len(text)]

    found = boundary_before(text, position)

    if position < len(text):
        assert found == max(place for place in allowed if place <= position)
    else:
        assert found == position


def test_characters_of_the_short_way_never_join():
    ranges = [(0x20, 0x7F), (0x3041, 0x3097), (0x30A1, 0x30FB), (0x3400, 0x4DC0), (0x4E00, 0xA000)]
    characters = [chr(code) for a, b in [*ranges, (0xAC00, 0xD7A4)] for code in range(a, b)]

    for neighbour in ("a", "각", "\ufffd"):
        text = "".join(neighbour + character for character in characters)

        assert len(regex.findall(r"\X", text)) == len(text)


def test_a_short_text_is_not_cut():
    assert cut("abc", 3) == "abc"


def test_the_ellipsis_counts_and_blanks_before_it_go():
    assert cut("abcd", 3) == "ab…"
    assert cut("ab cd", 4) == "ab…"


def test_a_family_is_kept_whole_or_left_out():
    assert cut("ab" + FAMILY + "cd", 9) == "ab…"
    assert cut("ab" + FAMILY + "cd", 10) == "ab" + FAMILY + "…"


def test_one_endless_cluster_is_cut_all_the_same():
    assert len(cut("a" + "\u0301" * 500, 200)) == 200
