"""Are words found where readers of many scripts, and of code, see them?

Each case names the rule of UAX 29 (WB...), of normalisation (UAX 15) or of everyday use it follows.
"""

# Letters that look alike are what is tested here.
# ruff: noqa: RUF001

import pytest

from memory.analysis import Analyzer

ENGLISH = Analyzer("english")

# (text, its terms in order): the whole first, then its parts.
TERMS = [
    ("水\u00ad火 ⺀\u00ad", ["水火", "火", "⺀"]),
    # WB5-7: letters and the apostrophe between them are one word; single letters say nothing.
    ("Zoe's", ["zoe"]),
    ("O'Brien", ["obrien", "brien"]),
    ("l\u2019été", ["lete", "ete"]),
    # U+02BC is the apostrophe of Ukrainian, U+00B7 a MidLetter of Catalan.
    ("об\u02bcєкт", ["обєкт", "об", "єкт"]),
    ("col·lega", ["collega", "col", "lega"]),
    # WB7a-c: geresh, gershayim and the plain quotation mark join Hebrew letters.
    ("צה\u05f4ל", ["צהל", "צה"]),
    ('צה"ל', ["צהל", "צה"]),
    ('"quoted"', ["quot"]),
    # WB8-12: digits, letters and MidNum; thousands are written with a comma or without, lists not.
    ("python3", ["python3"]),
    ("1,000", ["1000", "1", "000"]),
    ("1,234.56", ["1234.56", "1", "234", "56"]),
    ("1,2,3", ["1", "2", "3"]),
    ("1234,5678", ["1234", "5678"]),
    # Versions are asked for with and without the letter.
    ("v2.60.1", ["v2.60.1", "2.60.1", "v2", "60", "1"]),
    ("2024-01-15", ["2024-01-15", "2024", "01", "15"]),
    ("2020–2024", ["2020", "2024"]),
    # WB13a: the underscore joins; its parts are words of their own. Those at the ends say nothing.
    ("snake_case_name", ["snakecasenam", "snake", "case", "name"]),
    ("__init__", ["init"]),
    # Identifiers: a capital begins a part, a number at its end may be left out.
    (
        "getHTTPResponseCode2",
        ["gethttpresponsecode2", "get", "http", "respons", "code2", "code"],
    ),
    ("PDFs", ["pdfs"]),
    ("IPv6", ["ipv6"]),
    # Addresses: the whole and its parts; a slash, a colon and a hash separate.
    ("bob.jones@example.com", ["bobjonesexamplecom", "bob", "jone", "exampl", "com"]),
    ("path/to/file.md", ["path", "to", "filemd", "file", "md"]),
    ("https://a.org/x-ray", ["https", "aorg", "org", "xray", "ray"]),
    ("key:word", ["key", "word"]),
    ("#project @team", ["project", "team"]),
    # Abbreviations with dots are written without them too.
    ("U.S.A.", ["usa"]),
    # UAX 15, NFKC: widths, ligatures, roman numerals, raised and lowered digits.
    ("ﬁle", ["file"]),
    ("Ⅳ", ["iv"]),
    ("H₂O x²", ["h2o", "x2"]),
    # Digits of any script are numbers.
    ("٢٠٢٤", ["2024"]),
    ("๒๕๖๗", ["2567"]),
    ("２０２４", ["2024"]),
    # WB4: marks belong to the letter before them; clusters with virama are not torn.
    ("क्षत्रिय", ["क्षत्रिय"]),
    ("Москва\u0301", ["москва"]),
    # Zero width: a joiner is part of the word, a space and a byte order mark are not.
    ("\ufeffword", ["word"]),
    ("left\u200bright", ["left", "right"]),
    ("auf\u2060bau", ["aufbau"]),
    # A change of script to one without spaces ends a word.
    ("iPhone手机", ["iphon", "phone", "手机", "机"]),
    ("5月", ["5", "月"]),
    # Jamo that are typed one by one make the same syllables.
    ("\u1112\u1161\u11ab\u1100\u116e\u11a8", ["한국", "국"]),
    ("葛\U000e0100城", ["葛城", "城"]),
    # WB3c, WB15-16: an emoji is one word, whatever it is joined of; skin tone and colour are style.
    ("done👍🏽!", ["done", "👍"]),
    ("👩\u200d💻", ["👩💻"]),
    ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
    ("❤\ufe0f", ["❤"]),
    ("1\ufe0f\u20e3", ["1"]),
    # Signs that decorate a word are none.
    ("Python™ ©2024", ["python", "2024"]),
    ("-- ... !? ___", []),
]

# (language, spelling, other spelling): people expect either to find the other.
SPELLINGS = [
    ("german", "Straße", "STRASSE"),
    ("german", "Müller", "Mueller"),
    ("german", "Müller", "Muller"),
    ("greek", "λόγος", "ΛΟΓΟΣ"),
    ("turkish", "IŞIK", "ışık"),
    ("english", "İstanbul", "istanbul"),
    ("arabic", "أحمد", "احمد"),
    ("english", "آمال", "امال"),
    ("english", "کتابی", "كتابي"),
    ("english", "שָׁלוֹם", "שלום"),
    ("english", "Việt", "Viê\u0323t"),
    ("english", "đường", "duong"),
    ("indian", "सड़क", "सडक"),
    ("indian", "यहाँ", "यहां"),
    ("ukrainian", "об'єкт", "об\u2019єкт"),
    ("english", "👍", "👍🏿"),
]


@pytest.mark.parametrize(("text", "terms"), TERMS)
def test_a_text_is_cut_into_the_words_its_readers_see(text, terms):
    assert ENGLISH.tokens(text) == terms


@pytest.mark.parametrize(("text", "terms"), TERMS)
def test_each_whole_word_is_found_by_itself(text, terms):
    assert set(ENGLISH.query_terms(text)) <= set(terms)
    assert bool(ENGLISH.query_terms(text)) == bool(terms)


@pytest.mark.parametrize(("language", "one", "other"), SPELLINGS)
def test_spellings_that_people_take_for_the_same_meet(language, one, other):
    analyzer = Analyzer(language)

    assert set(analyzer.query_terms(one)) & set(analyzer.tokens(other))
    assert set(analyzer.query_terms(other)) & set(analyzer.tokens(one))


@pytest.mark.parametrize(
    ("text", "begin", "found"),
    [("see 👍 there", 4, "👍"), ("x 手机", 2, "手机"), ("a v1.2, b", 2, "v1.2")],
)
def test_spans_point_at_what_was_found(text, begin, found):
    spans = [(start, text[start:end]) for start, end, _ in ENGLISH.spans(text)]

    assert (begin, found) in spans


def test_hostile_runs_give_terms_in_proportion_to_their_length():
    """Each joiner, mark and pictograph over and over; minutes if anything were quadratic."""
    for unit in ("1,000,", "a_", "a'", "👩\u200d", "🇩", "क\u094d", 'א"', "v1.", "aB1", "字\u0301"):
        tokens = ENGLISH.tokens(unit * 8_000)

        assert len(tokens) <= 6 * 8_000
