import pytest
from markdown_it.ruler import Ruler

from memory import descriptions, outline
from memory.outline import Block, blocks


def headings(text):
    return [(block.level, block.text, block.start) for block in blocks(text) if block.level]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A", [(1, "A", 0)]),
        ("   ###### A", [(6, "A", 0)]),
        ("    # code", []),
        ("para\n    # still para", []),
        ("#no space", []),
        ("#\tTab", [(1, "Tab", 0)]),
        ("#", [(1, "", 0)]),
        ("####### seven", []),
        ("\\# escaped", []),
        ("## A ##", [(2, "A", 0)]),
        ("## A #b", [(2, "A #b", 0)]),
        ("# A \\#", [(1, "A \\#", 0)]),
        ("# *A* [b](c)", [(1, "*A* [b](c)", 0)]),
        ("A\n=", [(1, "A", 0)]),
        ("A\nb\n---", [(2, "A\nb", 0)]),
        ("A\n\n---", []),
        ("- A\n---", []),
        ("> A\n---", []),
        ("text\n# A", [(1, "A", 1)]),
        ("```\n# code\n```\n# A", [(1, "A", 3)]),
        ("~~~ md\n# code\n```\n# code\n~~~\n# A", [(1, "A", 5)]),
        ("````\n```\n# code\n```\n````\n# A", [(1, "A", 5)]),
        ("```\n# code\n``\n# code", []),
        ("``` a`b\n# A", [(1, "A", 1)]),
        ("  ```\n# code\n    ```\n# code\n  ```\n# A", [(1, "A", 5)]),
        ("<!--\n# hidden\n\n# hidden\n-->\n# A", [(1, "A", 5)]),
        ("<!-- # hidden -->\n# A", [(1, "A", 1)]),
        ("<div>\n# html\n</div>\n\n# A", [(1, "A", 4)]),
        ("<pre>\n\n# html\n</pre>\n# A", [(1, "A", 4)]),
        ("- # in a list\n\n# A", [(1, "A", 2)]),
        ("> # in a quote\n\n# A", [(1, "A", 2)]),
        ("[a]: /url\n# A", [(1, "A", 1)]),
        ("| a |\n| - |\n| b |\n# A", [(1, "A", 3)]),
    ],
)
def test_headings_are_those_of_commonmark(text, expected):
    # FAULTS 45; expected values follow the CommonMark 0.31 specification, section by section.
    assert headings(text) == expected


def test_blocks_have_kinds_and_lines():
    text = "A\nb\n\n- x\n\n> q\n\n```\nc\n```\n***\n<div>\n\n| a |\n| - |\n\n    code"

    found = blocks(text)

    assert [(block.kind, block.start, block.end) for block in found] == [
        ("paragraph", 0, 2),
        ("bullet_list", 3, 5),
        ("blockquote", 5, 6),
        ("fence", 7, 10),
        ("hr", 10, 11),
        ("html_block", 11, 12),
        ("table", 13, 15),
        ("code_block", 16, 17),
    ]
    assert found[0] == Block("paragraph", 0, 0, 2, "A\nb")


def test_text_without_blocks_has_none():
    assert blocks("") == ()
    assert blocks("\n \n") == ()
    assert blocks("[a]: /url") == ()


@pytest.mark.parametrize("marker", ["- ", "> ", "1. "])
def test_a_heading_after_a_deeply_nested_container_is_found(marker):
    assert headings(marker * 40 + "x\n\n# A") == [(1, "A", 2)]


def test_no_thread_sees_a_parser_whose_rules_are_being_compiled(monkeypatch):
    """Half of the rules would miss headings, or raise ``none of the block rules matched``."""
    for module in (outline, descriptions):
        module._parser.cache_clear()
        module._parser()

    def compile_again(self):
        raise AssertionError

    monkeypatch.setattr(Ruler, "__compile__", compile_again)

    kinds = [block.kind for block in blocks("# One\n\n- two\n\nthree")]
    assert kinds[0] == "heading"
    assert descriptions.plain_text("some *words* ~~here~~") == "some words here"
