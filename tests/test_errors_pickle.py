"""Do errors keep their type, fields and text on the way between processes?"""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from memory import errors
from memory.errors import MemoryPluginError, ProviderUnavailable

EXAMPLES = {"str": "some/path", "int": 384, "bool": True, "float | None": 1.5}


def tree_below(parent: type[MemoryPluginError], depth: int = 0) -> list[tuple[int, type]]:
    children = (tree_below(child, depth + 1) for child in parent.__subclasses__())
    return [(depth, parent), *(entry for child in children for entry in child)]


# tests may define errors of their own; only what the module holds is part of the tree
TREE = [
    (depth, cls)
    for depth, cls in tree_below(MemoryPluginError)
    if cls.__module__ == errors.__name__
]
CLASSES = [cls for _, cls in TREE]


def parameters_of(cls: type[MemoryPluginError]) -> dict[str, str]:
    """Maps the named parameters of a class to their types; empty if it takes just a message."""
    if cls.__init__ is Exception.__init__:
        return {}
    return {name: str(p.annotation) for name, p in inspect.signature(cls).parameters.items()}


def example_of(cls: type[MemoryPluginError]) -> MemoryPluginError:
    arguments = [EXAMPLES[kind] for kind in parameters_of(cls).values()]
    return cls(*arguments or ["no such thing"])


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_survives_pickling_with_its_type_its_fields_and_its_text(cls):
    error = example_of(cls)

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is cls
    assert copy.args == error.args
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_keeps_each_argument_as_a_field_of_that_name(cls):
    error = example_of(cls)

    fields = dict(zip(parameters_of(cls), error.args, strict=False))

    assert vars(error) == fields


def test_an_error_left_without_its_optional_argument_survives_pickling():
    error = pickle.loads(pickle.dumps(ProviderUnavailable("openai", "timed out")))

    assert (error.provider, error.reason, error.retry_after_s) == ("openai", "timed out", None)
    assert str(error) == "openai: timed out"


@pytest.mark.parametrize("cls", CLASSES)
def test_the_text_of_an_error_is_not_the_tuple_of_its_arguments(cls):
    text = str(example_of(cls))

    assert text
    assert not text.startswith("(")
    assert not text.endswith(".")


def test_the_tree_in_the_module_docstring_is_the_real_one():
    drawn = re.findall(r"^    ([│ ]*)([├└]─ )?(\w+)", errors.__doc__, re.MULTILINE)

    entries = [((len(bars) + len(branch)) // 3, name) for bars, branch, name in drawn]

    assert entries == [(depth, cls.__name__) for depth, cls in TREE]
