import time

import pytest

from memory import paths

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"


def test_both_spellings_of_an_accent_have_one_key():
    # FAULTS 34
    assert paths.key(NFD) == paths.key(NFC) == NFC


@pytest.mark.parametrize(
    "name",
    [
        "a.md",
        "a.MD",
        "a.Markdown",
        "deep/er/a.md",
        "two words.md",
        "-leading-dash.md",
        "line\nbreak.md",
        "pipe|`tick`.md",
        "😀.md",
        NFD,
        "x" * 251 + ".md",
        "archive.tar.md",
        "not-utf8-\udcff.md",
    ],
)
def test_markdown_names_are_indexable(name):
    # FAULTS 34, 36
    assert paths.is_indexable_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "a.md.bak",
        "md",
        "a.mdx",
        ".md",
        ".hidden.md",
        ".git/a.md",
        "wiki/.trash/a.md",
        "../a.md",
        "wiki/../../a.md",
        "./a.md",
        "/etc/a.md",
        "wiki//a.md",
        "a.md/",
        "nul\0.md",
        "",
    ],
)
def test_other_names_are_not(name):
    assert not paths.is_indexable_name(name)


def test_undecodable_names_are_known_and_can_be_shown():
    raw = "caf\udce9-\udcff.md"

    assert not paths.is_unicode(raw)
    assert paths.is_unicode(NFC)
    assert paths.printable(raw) == "caf\ufffd-\ufffd.md"


def test_the_key_of_a_path_that_no_file_can_have_takes_linear_time():
    """Composing a run of marks is quadratic: of these it would take a minute."""
    hostile = "a" + "\u0316\u0301" * 150_000

    start = time.thread_time()
    key = paths.key(f"{NFD}/{hostile}")

    assert time.thread_time() - start < 1
    assert key == f"{NFC}/{hostile}"


def test_the_key_of_a_long_path_is_that_of_its_names():
    assert paths.key("/".join([NFD] * 300)) == "/".join([NFC] * 300)
