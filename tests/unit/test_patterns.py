"""Does every regular expression take linear time on what it is given (FAULTS 43, 81, 88)?

The patterns and how each is used are read from the code, so a new one is here by itself. It is
matched against text made to make it go back and forth, as long as its callers let through.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from functools import cache
from pathlib import Path

import pytest
import regex

ROOT = Path(__file__).parents[2]
LENGTH = 100_000
CAPPED = {
    "memory.sanitizing._BACKSLASH_BEFORE_PIPE": 300,  # what is shown of a path or a headline
    "memory.graphemes._CLUSTER": 65,
    "memory.segmentation._CLUSTER": 1_000,  # the halves of flags never stand in what it splits
    "memory.splitting._LAST_BORDERS": 16_384,  # a piece of half a model's room
}
"""Longest text of patterns that need more than linear time."""
LARGEST_S = 1.0
"""Quadratic time, at 10 ns a step, would be 100 s."""
UNITS = [
    *("a", "1", " ", "\n", ".", "-", "/", "\\", "`", "|", "_", "=", "&", "<", "[", "![[", "[[a|"),
    *("a1", "a.", "a ", " a", "\n ", "# ", "1.", "&#1", "<!--", "[^a]", "${", "a:", "@a", "\t|"),
    *("\u0301", "a\u0316\u0301", "\u200d", "a\u200d", "\u0627\u200c", "\U0001f1e6", "\u4e2d"),
    *("\U0001f469\u200d", "\u2800", "\x1b[", "aB", "yz", "ional", ".md:1", "\u064b\u0627"),
]
METHODS = {"match", "fullmatch", "search", "sub", "split", "findall", "finditer"}
PATTERNS = (re.Pattern, type(regex.compile("")))


@cache
def modules():
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for package in ("memory", "actors")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name not in {"__init__.py", "__main__.py"}
    }


@cache
def sources():
    return [ast.unparse(tree) for tree in modules().values()]


def compiled_names(tree):
    """Yields the names that a module gives to patterns, in tuples too."""
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None:
            source = ast.unparse(value)
            if "compile(" in source or source.startswith("_ending_of("):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                yield target.id


@cache
def used_methods(name):
    """Returns what is called of a pattern by its name; all that it has if that cannot be told."""
    found = {method for text in sources() for method in re.findall(rf"\b{name}\.(\w+)\b", text)}
    return found & METHODS or {"match", "fullmatch"}


def patterns():
    for module, tree in modules().items():
        for name in compiled_names(tree):
            yield pytest.param(module, name, id=f"{module}.{name}")


def each(value):
    if isinstance(value, PATTERNS):
        yield value
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from each(inner)


def used_up(method, pattern, text):
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    start = time.thread_time()
    if method == "sub":
        pattern.sub(given[:0], given)
    elif method == "finditer":
        list(pattern.finditer(given))
    else:
        getattr(pattern, method)(given)
    return time.thread_time() - start


def slow_uses(module, name):
    """Returns what takes too long, without the texts, which a report would print."""
    length = CAPPED.get(f"{module}.{name}", LENGTH)
    return [
        (unit, method)
        for pattern in each(getattr(importlib.import_module(module), name))
        for unit in UNITS
        for method in used_methods(name)
        if used_up(method, pattern, (unit * length)[: length - 1] + "\0") > LARGEST_S
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), list(patterns()))
def test_a_pattern_takes_linear_time(module, name):
    assert slow_uses(module, name) == []


def test_the_table_holds_the_patterns_that_matter():
    """Else a change of how they are found would test nothing."""
    names = {param.id for param in patterns()}

    assert len(names) >= 50
    assert {"memory.segmentation.WORD", "memory.splitting._LAST_BORDERS", *CAPPED} <= names
