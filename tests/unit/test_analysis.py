"""Which terms does the analyzer make, and do different spellings of a word meet?"""

# Letters that look alike are what is tested here.
# ruff: noqa: RUF001

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memory.analysis import LANGUAGES, MAX_TERM_CHARS, Analyzer
from memory.errors import ConfigError

ENGLISH = Analyzer("english")

# (language, word, inflected form): plurals, cases and articles that any grammar lists.
INFLECTIONS = [
    ("arabic", "كتاب", "الكتاب"),
    ("armenian", "ընկեր", "ընկերներ"),
    ("bulgarian", "книга", "КНИГИТЕ"),
    ("danish", "hus", "huset"),
    ("dutch", "boek", "boeken"),
    ("english", "meeting", "meetings"),
    ("finnish", "kirja", "kirjassa"),
    ("french", "cheval", "chevaux"),
    ("german", "Haus", "Häuser"),
    ("greek", "σπίτι", "σπίτια"),
    ("hungarian", "ház", "házban"),
    ("indian", "किताब", "किताबें"),
    ("indonesian", "buku", "bukunya"),
    ("irish", "bád", "bhád"),
    ("italian", "libro", "libri"),
    ("lithuanian", "knyga", "knygos"),
    ("nepali", "घर", "घरमा"),
    ("norwegian", "hus", "huset"),
    ("portuguese", "livro", "livros"),
    ("romanian", "student", "studenți"),
    ("russian", "книга", "книги"),
    ("sanskrit", "पुस्तकम्", "पुस्तकानि"),
    ("serbian", "књига", "књиге"),
    ("spanish", "reunión", "reuniones"),
    ("swedish", "bil", "bilar"),
    ("tamil", "வீடு", "வீடுகள்"),
    ("turkish", "kitap", "kitaplar"),
    ("ukrainian", "книга", "КНИЗІ"),
]


def meet(first, second, analyzer=ENGLISH):
    """Tells whether a query of either word finds a text of the other."""
    terms = set(analyzer.tokens(first)), set(analyzer.tokens(second))
    return bool(terms[0] & terms[1])


def test_the_table_covers_every_language_of_the_configuration():
    assert {language for language, *_ in INFLECTIONS} == LANGUAGES
    assert len(LANGUAGES) == 28


@pytest.mark.parametrize(("language", "word", "inflected"), INFLECTIONS)
def test_each_language_finds_an_inflected_form(language, word, inflected):
    """FAULTS 50."""
    assert meet(word, inflected, Analyzer(language))


def test_an_unknown_language_is_refused_by_naming_the_known_ones():
    with pytest.raises(ConfigError, match=r"klingon.*arabic, armenian.*ukrainian"):
        Analyzer("klingon")


def test_serbian_meets_across_its_two_scripts():
    assert meet("књига", "knjige", Analyzer("serbian"))


@pytest.mark.parametrize(
    ("text", "bigrams"),
    [
        ("将数据加载", ["将数", "数据", "据加", "加载"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("カタカナー", ["カタ", "タカ", "カナ", "ナー"]),
        ("한국어", ["한국", "국어"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("猫", ["猫"]),
    ],
)
def test_scripts_without_spaces_are_analysed_into_bigrams(text, bigrams):
    """FAULTS 50: whatever the language. The index also gets the last character by itself."""
    assert ENGLISH.query_terms(text) == bigrams
    assert ENGLISH.tokens(text) == list(dict.fromkeys([*bigrams, text[-1]]))


@pytest.mark.parametrize(
    "text",
    ["我的猫在家", "猫", "東京で会議をした。", "한국어 문서", "ประชุมที่กรุงเทพ", "ភ្នំពេញ", "ရန်ကုန်"],
)
def test_each_character_of_a_run_is_the_beginning_of_some_term(text):
    """SPEC S3: a lone character is looked up as a prefix."""
    tokens = ENGLISH.tokens(text)

    for character in filter(regex.compile(r"[\w\p{M}]+").fullmatch, regex.findall(r"\X", text)):
        assert ENGLISH.prefix_words(character) == (character,)
        assert any(term.startswith(character) for term in tokens)


@pytest.mark.parametrize(
    ("query", "prefixes"),
    [
        ("猫", ("猫",)),
        ("my 猫 and 犬, 猫", ("猫", "犬")),
        ("猫犬", ()),
        ("5月", ("月",)),
        ("ﾊﾞ", ("バ",)),
        ("a cat 😀", ()),
        ("", ()),
    ],
)
def test_only_lone_characters_are_looked_up_as_prefixes(query, prefixes):
    assert ENGLISH.prefix_words(query) == prefixes
    assert set(prefixes) <= set(ENGLISH.query_terms(query))


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("将数据加载到TiDB连接数据库", "数据库"),
        ("東京で会議をした", "会議"),
        ("ประชุมที่กรุงเทพเมื่อวาน", "กรุงเทพ"),
        ("ຂ້ອຍຢູ່ນະຄອນຫຼວງວຽງຈັນ", "ວຽງຈັນ"),
        ("ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
        ("ကျွန်တော်ရန်ကုန်မှာနေတယ်", "ရန်ကုန်"),
    ],
)
def test_a_word_inside_a_sentence_without_spaces_is_found(sentence, word):
    """FAULTS 50: Chinese, Japanese, Thai, Lao, Khmer and Burmese under language english."""
    assert set(ENGLISH.query_terms(word)) <= set(ENGLISH.tokens(sentence))


@pytest.mark.parametrize(
    ("compound", "terms"),
    [
        ("alice-smith", {"alicesmith", "alic", "smith"}),
        ("node.js", {"node", "js"}),
        ("snake_case", {"snake", "case"}),
        ("fooBar", {"foobar", "foo", "bar"}),
        ("HTTPServer", {"http", "server"}),
        ("CVE-2024-1234", {"cve2024-1234", "cve", "2024", "1234"}),
        ("bob.jones@example.com", {"bob", "exampl", "com"}),
        ("3.14", {"3.14", "3", "14"}),
    ],
)
def test_compounds_are_found_whole_and_in_parts(compound, terms):
    assert terms <= set(ENGLISH.tokens(compound))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("e-mail", "email"),
        ("wi-fi", "WiFi"),
        ("foo_bar", "fooBar"),
        ("AT&T", "ATT"),
        ("café", "cafe"),
        ("CAFÉ", "cafe\u0301"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("ελληνικά", "ΕΛΛΗΝΙΚΑ"),
        ("ёлка", "елка"),
        ("Ｐｙｔｈｏｎ", "python"),
        ("ｶﾞﾝﾀﾞﾑ", "ガンダム"),
        ("soft\u00adhyphen", "softhyphen"),
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_spellings_of_one_word_meet(one, other):
    assert meet(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("か", "が"), ("ハ", "パ"), ("कि", "का"), ("ใกล้", "ไกล"), ("мой", "мои"), ("1.23", "12.3")],
)
def test_marks_that_make_another_word_are_kept(one, other):
    assert not set(ENGLISH.query_terms(one)) & {ENGLISH.tokens(other)[0]}


def test_accents_left_out_still_find_the_stemmed_word():
    assert meet("cafés", "cafe", Analyzer("french"))
    assert meet("İSTANBUL", "istanbul", Analyzer("turkish"))
    assert meet("ışık", "ISIK", Analyzer("turkish"))


def test_function_words_leave_a_query_but_not_the_index():
    assert ENGLISH.query_words("What is the budget of the project?") == [("budget",), ("project",)]
    assert "the" in ENGLISH.tokens("the budget")


def test_a_query_of_function_words_keeps_them():
    assert ENGLISH.query_terms("to be or not to be") == ["to", "be", "or", "not"]


def test_contractions_of_function_words_say_nothing():
    assert Analyzer("french").query_words("C'est qu'il vient d'un village") == [
        ("vient",),
        ("villag",),
    ]
    assert ENGLISH.query_words("I don't know") == [("know",)]


def test_query_terms_are_distinct_and_limited():
    assert ENGLISH.query_terms("red green red blue", limit=2) == ["red", "green"]


def test_a_path_is_analysed_into_words_without_its_extension():
    tokens = ENGLISH.path_tokens("wiki/people/alice-smith.MD")

    assert {"wiki", "people", "alice", "smith", "alicesmith"} <= set(tokens)
    assert "md" not in tokens


def test_a_path_keeps_words_beside_their_stems_for_prefixes():
    assert {"categori", "categories"} <= set(ENGLISH.path_tokens("notes/categories.md"))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("find Alice", "alice"),
        ("who is", ""),
        ("数据", ""),
        ("", ""),
        ("Notes!", "notes"),
        ("find Alice ?! --", "alice"),
        ("alice/", "alice"),
        ("alice/数据", ""),
        ("find a/Bob", "bob"),
    ],
)
def test_the_last_word_is_folded_and_telling(text, word):
    assert ENGLISH.last_word(text) == word


def test_words_of_hostile_length_are_cut():
    for text in ("x" * 100_000, "aB" * 50_000, "a-" * 50_000, "é" * 100_000, "字\u0301" * 1000):
        assert all(len(term) <= MAX_TERM_CHARS for term in ENGLISH.tokens(text))
    assert len(ENGLISH.tokens("aB" * 50_000)) < 100


@given(st.text())
def test_any_text_gives_terms_that_can_be_stored(text):
    for analyzer in (ENGLISH, Analyzer("turkish")):
        for term in analyzer.tokens(text):
            assert term
            assert len(term.encode()) <= 4 * MAX_TERM_CHARS


@given(st.text(alphabet=st.characters(codec="ascii")) | st.text())
def test_the_fast_ways_agree_with_the_general_one(text):
    spans = [term for _, _, terms in ENGLISH.spans(text) for term in terms]

    assert ENGLISH.tokens(text) == spans


@given(st.text())
def test_spans_lie_in_order_inside_the_text(text):
    spans = [(start, end) for start, end, _ in ENGLISH.spans(text)]

    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)


@given(st.text())
def test_whatever_is_indexed_is_found_by_the_same_text(text):
    assert set(ENGLISH.query_terms(text, limit=10_000)) <= set(ENGLISH.tokens(text))


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("english", "hoping"),
        ("english", "dying"),
        ("english", "skies"),
        ("english", "possibility"),
        ("dutch", "waarheden"),
        ("french", "violemment"),
        ("french", "medications"),
        ("spanish", "soluciones"),
        ("swedish", "bilar"),
        ("russian", "linux"),
    ],
)
def test_a_term_tells_how_its_words_begin(language, word):
    analyzer = Analyzer(language)
    (term,) = analyzer.tokens(word)

    assert word.startswith(analyzer.beginnings(term))


@pytest.mark.parametrize(
    ("language", "word"),
    [("german", "haeuser"), ("irish", "bhean"), ("indonesian", "menuduhnya"), ("serbian", "njega")],
)
def test_languages_that_rewrite_words_do_not_tell_how_they_begin(language, word):
    analyzer = Analyzer(language)
    (term,) = analyzer.tokens(word)

    assert not word.startswith(term[:3])
    assert analyzer.beginnings(term) is None


@pytest.mark.parametrize(
    "text", ["", "one two", "e-mail, 3.14 getCode2", "caf\u00e9 \u732b\u72ac \U0001f600!"]
)
def test_pieces_between_spaces_have_the_terms_of_the_text(text):
    pieces = ENGLISH.terms_of_pieces(text.split())

    assert [term for terms in pieces for term in terms] == ENGLISH.tokens(text)


def test_a_digit_that_python_does_not_know_stands_for_itself():
    """The tables of ``regex`` are newer than those of Python."""
    assert ENGLISH.tokens("\U0001e5f1") == ["\U0001e5f1"]
