"""What does a YAML file say, and on which line?

Safe loader only. Messages carry the line and the complaint, never the text around it: a
configuration file holds keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from memory.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MAX_BYTES = 1024 * 1024
_MAX_DIGITS = 100
"""Of a number. ``1:1:1`` is one in YAML 1.1, and takes quadratic time."""
_MAX_MERGED = 10_000
"""Keys that ``<<`` may copy. Merges of merges multiply: nine in five lines make 59,049."""
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_MERGE = "tag:yaml.org,2002:merge"
_BROKEN = (
    yaml.YAMLError,
    # What the safe loader trips over where a tag and its text do not fit: ``!!int ""``.
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The mapping in a file."""

    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    """Line of each key, 1-based: ``("memory", "language")`` → 12."""


def read_yaml(path: Path) -> YamlFile:
    """Reads a file that holds one mapping; an empty file is an empty mapping.

    Raises:
        ConfigError: the file cannot be read, is not YAML, repeats a key, or holds something else.
    """
    text = _read(path)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return YamlFile({}, {})
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(f"{path}: expected keys and values at the top level")
        _refuse_bombs(path, node)
        lines = dict(_walk(path, node))
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_complaint(path, error, text)) from None
    except _BROKEN as error:
        raise ConfigError(f"{path}: not readable as YAML ({type(error).__name__})") from None
    return YamlFile(data, lines)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"{path}: larger than {_MAX_BYTES:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None


def _complaint(path: Path, error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    # Something is missing at the end: that is behind the last line, which an editor does not show.
    where = f"{path}:{min(mark.line + 1, max(1, len(text.splitlines())))}" if mark else str(path)
    problem = error.problem or "not readable as YAML"
    if "'\\t'" in problem:
        problem = "a tab cannot indent YAML, use spaces"
    return f"{where}: {problem}"


def _refuse_bombs(path: Path, root: yaml.Node) -> None:
    """Refuses what is small as text and takes for ever, or all memory, as values."""
    pending, seen, num_merged = [root], {id(root)}, 0
    known: dict[int, int] = {}
    while pending:
        node = pending.pop()
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        if isinstance(node, yaml.MappingNode):
            num_merged += _num_merged(node, known)
            inner = [each for pair in inner for each in pair]
        line = node.start_mark.line + 1
        if num_merged > _MAX_MERGED:
            raise ConfigError(f"{path}:{line}: merges more than {_MAX_MERGED:,} keys")
        if node.tag in _NUMBERS and len(node.value) > _MAX_DIGITS:
            raise ConfigError(f"{path}:{line}: a number of more than {_MAX_DIGITS} characters")
        pending += [each for each in inner if id(each) not in seen]
        seen.update(map(id, inner))


def _num_merged(mapping: yaml.MappingNode, known: dict[int, int]) -> int:
    """Returns how many keys the ``<<`` of a mapping copy, those of merged mappings included."""
    if id(mapping) not in known:
        known[id(mapping)] = 0  # ends a mapping that merges itself
        for key, value in mapping.value:
            if key.tag == _MERGE:
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                known[id(mapping)] += sum(
                    len(source.value) + _num_merged(source, known)
                    for source in sources
                    if isinstance(source, yaml.MappingNode)
                )
    return known[id(mapping)]


def _walk(path: Path, root: yaml.MappingNode) -> Iterator[tuple[KeyPath, int]]:
    """Yields the key paths of all mappings and refuses repeated keys."""
    pending: list[tuple[KeyPath, yaml.MappingNode]] = [((), root)]
    # An alias gives the same node again, and may even contain itself.
    seen = {id(root)}
    while pending:
        prefix, mapping = pending.pop()
        first_lines: dict[str, int] = {}
        for key, value in mapping.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # no key of ours, and its text may be as large as all its aliases
            name, line = key.value, key.start_mark.line + 1
            if name in first_lines:
                dotted = ".".join((*prefix, name))
                first = first_lines[name]
                raise ConfigError(f"{path}:{line}: {dotted} is set twice (first on line {first})")
            first_lines[name] = line
            yield (*prefix, name), line
            if isinstance(value, yaml.MappingNode) and id(value) not in seen:
                seen.add(id(value))
                pending.append(((*prefix, name), value))
