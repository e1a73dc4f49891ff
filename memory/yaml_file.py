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
        lines = dict(_walk(path, node))
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_complaint(path, error, text)) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
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


def _walk(path: Path, root: yaml.MappingNode) -> Iterator[tuple[KeyPath, int]]:
    """Yields the key paths of all mappings and refuses repeated keys."""
    pending: list[tuple[KeyPath, yaml.MappingNode]] = [((), root)]
    # An alias gives the same node again, and may even contain itself.
    seen = {id(root)}
    while pending:
        prefix, mapping = pending.pop()
        first_lines: dict[str, int] = {}
        for key, value in mapping.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in first_lines and isinstance(key, yaml.ScalarNode):
                dotted = ".".join((*prefix, name))
                first = first_lines[name]
                raise ConfigError(f"{path}:{line}: {dotted} is set twice (first on line {first})")
            first_lines[name] = line
            yield (*prefix, name), line
            if isinstance(value, yaml.MappingNode) and id(value) not in seen:
                seen.add(id(value))
                pending.append(((*prefix, name), value))
