"""Which lines of a file does an agent get?

The file is read as it is on disk, under the rules by which files are indexed: markdown inside the
workspace, nothing hidden or excluded, no link followed. An answer is bounded; it says which lines
it holds and how many there are, so that the next call can go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.errors import WorkspaceError
from memory.globs import Globs
from memory.graphemes import cut
from memory.markdown import decode
from memory.messages import SkippedFile
from memory.payloads import iso_time
from memory.sanitizing import printable_block, sanitize_path
from memory.workspace import Gone, Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memory.config import MemorySettings
    from memory.payloads import ExcerptPayload

MAX_LINES = 400
MAX_CHARACTERS = 20_000
_NO_FILE = "no such markdown file in the workspace; memory_search returns paths that exist"


def read_excerpt(
    root: Path,
    settings: MemorySettings,
    path: str,
    *,
    start_line: int = 1,
    num_lines: int = MAX_LINES,
) -> ExcerptPayload:
    """Returns some lines of a file.

    Args:
        root: The workspace.
        settings: What is excluded, and how large a file may be.
        path: Relative to the workspace, in any Unicode normalisation; or as a table, a citation or
            an answer shows it, without what is invisible and perhaps cut.
        start_line: First line, from 1 on.
        num_lines: Most lines, at least 1.

    Raises:
        WorkspaceError: there is no such file, or it is not one that may be indexed.
    """
    workspace = Workspace(
        root, exclude=Globs(settings.exclude_globs), max_file_bytes=settings.max_file_bytes
    )
    found = workspace.read(path.removeprefix("./"))
    if isinstance(found, Gone) and (raw_path := _shown_as(path, workspace)) is not None:
        found = workspace.read(raw_path)
    if isinstance(found, Gone):
        raise WorkspaceError(found.path, _NO_FILE)
    if isinstance(found, SkippedFile):
        raise WorkspaceError(found.path, found.reason)
    lines = decode(found.data)[0].removesuffix("\n").split("\n") if found.data else []
    first = start_line - 1
    shown, is_cut = _bounded(lines[first : first + min(num_lines, MAX_LINES)])
    return {
        "path": found.path,
        "text": "\n".join(shown),
        "start_line": start_line,
        "end_line": first + len(shown),
        "num_lines": len(lines),
        "is_cut": is_cut,
        "last_modified": iso_time(found.mtime_ns),
    }


def _shown_as(path: str, workspace: Workspace) -> str | None:
    """Returns the only file that is shown by this name; None if there is none, or several."""
    found = [
        stamp.raw_path
        for stamp in workspace.scan().files
        if path in {sanitize_path(stamp.path), sanitize_path(stamp.path, in_table=False)}
        or path == printable_block(stamp.path)
    ]
    return found[0] if len(found) == 1 else None


def _bounded(lines: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Returns the first lines that fit, and whether even the first alone did not."""
    if lines and len(lines[0]) > MAX_CHARACTERS:
        return [cut(lines[0], MAX_CHARACTERS)], True
    room, number = MAX_CHARACTERS, 0
    for line in lines:
        room -= len(line) + 1
        if room < -1:
            break
        number += 1
    return lines[:number], False
