"""Odd markdown files, any markdown, and what a plain parser makes of them."""

from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory.embedding_input import TokenLimits, estimate_tokens
from memory.markdown import parse_file
from memory.workspace import SourceFile

WIDE = TokenLimits(1_000_000, estimate_tokens)
NARROW = TokenLimits(64, estimate_tokens)

ODD_FILES = {
    "blank": " \n\t\n\n",
    "only a heading": "# A",
    "only empty headings": "#\n##\n###",
    "headings without bodies": "# A\n## B\n### C\n# D\n",
    "deep headings": "#### four\n##### five\n###### six\ntext",
    "closing hashes": "## A ##\ntext\n# B #c\ntext\n# C \\#\ntext",
    "no blank after hashes": "#tag\n#another\ntext",
    "setext": "A\n===\ntext\nB\nover lines\n---\ntext",
    "rule, not setext": "A\n\n---\nB\n\n***\n___\n",
    "indented": "   # A\ntext\n    # code\n\n    # code",
    "fences": "```\n# code\n~~~\n# code\n```\n~~~~ x\n# code\n~~~\n~~~~~\n# A\n",
    "unclosed fence": "# A\n```py\n# code\n\n## code\n",
    "nested fence": "````md\n```\n# code\n```\n````\n# A\n",
    "fence in a list": "- item\n  ```\n  # code\n  ```\n# A\n",
    "html": "<div>\n# html\n</div>\n\n# A\n<!--\n# hidden\n\n# hidden\n-->\n# B\n",
    "unclosed comment": "# A\n<!-- begins\n\n# hidden\n## hidden",
    "lists and quotes": "- # in list\n> # in quote\n\n1. ## in list\n\n   text\n\n# A\nx",
    "front matter": "---\ntitle: t\n# comment\n---\n# A\ntext",
    "broken front matter": "---\ntitle: a: b\n\tx\n---\ntext",
    "a rule on top": "---\n\ntext\n\n---\n\nmore",
    "unclosed front matter": "---\ntitle: t\n# A\ntext",
    "references": "[a]: http://x.y\n# A\n[b]: z\n\n[^1]: note",
    "table": "| a |\n| - |\n| # b |\n# A\n| c |\n| - |\nrow\n---\n",
    "same headings": "# A\nx\n# A\nx\n## B\nx\n## B\ny\n",
    "skipped levels": "### C\nx\n# A\ny\n### D\nz\n",
    "blanks of other kinds": "# A\n\u00a0\n\u2003text\u2003\n\x0c\n## B\x0b\n\u2028\nx",
    "control characters": "# A\x1b\n\x01\x7f\n## B\n\x85\nx",
    "surrogates in disguise": "# \ufffd\n\ufffd\n",
    "a long heading": "# " + "word " * 400 + "\ntext\n## B\ntext",
    "a long setext heading": "word word\n" * 300 + "---\ntext",
    "a long line": "# A\n" + "x" * 3000 + "\n## B",
    "deep list": "\n".join("  " * depth + "- # x" for depth in range(8)) + "\n\n# A\n",
    "trailing blanks": "# A   \n\n\n   code?   \n\ntext  \n\n\n# B\n\n\n",
}
PIECES = [
    *("", "", " ", "\t", "text", "more *text*", "text  ", "# A", "## B", "### C", "#### D"),
    *("#", "##", "## B ##", "   # A", "    # A", "\t# A", "#no", "===", "---", "***", "- # A"),
    *("> # A", "> text", "- item", "  more", "1. one", "```", "~~~", "````", "```py", "  ```"),
    *("<div>", "</div>", "<!--", "-->", "<pre>", "</pre>", "| a |", "| - |", "[a]: b", "\\# A"),
    *("title: t", "tags: [a]", "...", "\u00a0", "\u2028", "\x0c", "é", "e\u0301 # A", "A\\"),
]
MARKDOWN = st.lists(st.sampled_from(PIECES), max_size=14).map("\n".join)
# By default the parser gives up below ten lists in each other.
ORACLE = MarkdownIt("commonmark", {"maxNesting": 1000}).enable("table")


def parse(text, *, path="wiki/notes.md", limits=WIDE):
    data = text if isinstance(text, bytes) else text.encode()
    return parse_file(SourceFile(path, path, 1, len(data), 7, data), limits=limits)


def sections(text):
    return [(chunk.headlines, chunk.content) for chunk in parse(text).chunks]


def squeezed(text):
    return " ".join(text.split())


def headings_of_the_oracle(body):
    """Returns (first line, line after, level, text) of h1 to h3 outside of containers."""
    tokens = ORACLE.parse(body)
    return [
        (*token.map, int(token.tag[1]), squeezed(tokens[index + 1].content))
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and not token.level and token.tag in {"h1", "h2", "h3"}
    ]


def text_below(text, first_line):
    return "\n".join(text.split("\n")[first_line:])
