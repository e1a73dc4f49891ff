"""How is a problem in config.yml said in one line?

A line names the file, the line, the key as it is written, what is wrong and the nearest valid key.
Values under ``inference`` are not shown, because they may be secrets.
"""

from __future__ import annotations

import difflib
import typing
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from memory.yaml_file import YamlFile

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "keys and values",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "model_type": "keys and values",
    "string_type": "text",
    "tuple_type": "a list",
}
_UNSHOWN_GROUP = "inference"
_MAX_SHOWN = 60
_CLOSE = 0.75


def complaints(
    error: ValidationError, path: Path, file: YamlFile, root: type[BaseModel]
) -> Iterator[str]:
    """Yields one line per problem."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called":
            continue  # The default follows from a key that has its own line here.
        keys = tuple(str(step) for step in detail["loc"])
        line = _line(keys, file)
        where = f"{path}:{line}" if line else str(path)
        yield f"{where}: {'.'.join(keys)}: {_what(detail, keys, root)}"


def stray_groups(file: YamlFile, root: type[BaseModel]) -> Iterator[str]:
    """Yields one line per key that is ignored but looks like a misspelt one of ours."""
    core = file.data.get("core")
    for prefix, data in (((), file.data), (("core",), core if isinstance(core, dict) else {})):
        known = _known_keys(prefix, root)
        for key in (key for key in map(str, data) if key not in known):
            near = difflib.get_close_matches(key, known, n=1, cutoff=_CLOSE)
            if near:
                yield f"{'.'.join((*prefix, key))} is ignored, did you mean {near[0]}?"


def _line(keys: tuple[str, ...], file: YamlFile) -> int | None:
    # An item of a list has no key of its own, nor has a key that is missing: take the parent's.
    for end in range(len(keys), 0, -1):
        if keys[:end] in file.lines:
            return file.lines[keys[:end]]
    return None


def _what(detail: ErrorDetails, keys: tuple[str, ...], root: type[BaseModel]) -> str:
    kind = detail["type"]
    shown = "the value" if keys[0] == _UNSHOWN_GROUP else _shown(detail["input"])
    match kind:
        case "extra_forbidden":
            return _unknown_key(keys, root)
        case "greater_than_equal" | "less_than_equal":
            return f"{shown} is {_range(keys, root)}"
        case "literal_error":
            return f"{shown} is not {detail['ctx']['expected']}"
        case "value_error":
            return str(detail["ctx"]["error"])
        case _ if kind in _EXPECTED:
            return f"{shown} is not {_EXPECTED[kind]}"
    return detail["msg"].lower()


def _unknown_key(keys: tuple[str, ...], root: type[BaseModel]) -> str:
    known = _known_keys(keys[:-1], root)
    near = difflib.get_close_matches(keys[-1], known, n=1, cutoff=0.5)
    if near:
        return f"unknown key, did you mean {near[0]}?"
    return f"unknown key, known are {', '.join(known)}"


def _range(keys: tuple[str, ...], root: type[BaseModel]) -> str:
    """Returns what a number violates: ``outside 0-1`` or ``less than 1``."""
    group = _group_at(keys[:-1], root)
    field = next(f for f in group.model_fields.values() if f.alias == keys[-1])
    bounds = {
        end: getattr(rule, end)
        for rule in field.metadata
        for end in ("ge", "le")
        if hasattr(rule, end)
    }
    low, high = bounds.get("ge"), bounds.get("le")
    return f"less than {low}" if high is None else f"outside {low}\u2013{high}"


def _known_keys(prefix: tuple[str, ...], root: type[BaseModel]) -> list[str]:
    return [str(field.alias) for field in _group_at(prefix, root).model_fields.values()]


def _group_at(keys: tuple[str, ...], root: type[BaseModel]) -> type[BaseModel]:
    """Returns the model that a path of keys leads to, through mappings of models too."""
    group: Any = root
    for key in keys:
        if typing.get_origin(group) is dict:
            group = typing.get_args(group)[1]
            continue
        group = next(f.annotation for f in group.model_fields.values() if f.alias == key)
    return group if isinstance(group, type) and issubclass(group, BaseModel) else root


def _shown(value: object) -> str:
    if not isinstance(value, str | int | float):
        return "the value"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}\u2026"
