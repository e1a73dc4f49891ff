"""Which files may a run read and write, and which did it write?

It reads what the memory indexes, and writes markdown inside ``core.writablePaths``. An existing
file is replaced only if the run has seen all of it as it still is: so nothing is dropped that the
run does not know of, and no edit of a person is undone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory import paths, walking
from memory.agent_run.folder_writing import ChangedMeanwhile, replace
from memory.agent_run.handler import FOLDER
from memory.errors import WorkspaceError
from memory.file_system import OsFileSystem
from memory.messages import SkippedFile
from memory.workspace import Gone, SourceFile, Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from memory.globs import Globs

MAX_WRITE_BYTES = 256 * 1024
MAX_READ_CHARACTERS = 60_000
"""Most of a file in one answer; the rest is read on from a later line."""
MAX_LISTED = 500
MAX_PATH_CHARACTERS = 300
_SUFFIX = ".md"
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


class ToolError(Exception):
    """What the model is told instead of a result."""


@dataclass(slots=True)
class _Seen:
    """How much of a file the run knows."""

    data: bytes
    num_lines: int
    lines: set[int] = field(default_factory=set)
    """0-based."""

    @property
    def is_whole(self) -> bool:
        return len(self.lines) == self.num_lines


class RunFiles:
    """The workspace as one run sees it.

    Args:
        root: The workspace.
        writable: ``core.writablePaths``.
        exclude: ``memory.excludeGlobs``, which a run does not see either.
        max_file_bytes: Larger files cannot be read.
    """

    def __init__(self, root: Path, *, writable: Globs, exclude: Globs, max_file_bytes: int) -> None:
        self._root = root
        self._writable = writable
        self._exclude = exclude
        self._workspace = Workspace(root, exclude=exclude, max_file_bytes=max_file_bytes)
        self._seen: dict[str, _Seen] = {}
        self._written: dict[str, str] = {}

    @property
    def written(self) -> tuple[tuple[str, str], ...]:
        """What the run did on disk: (``created`` or ``extended``, path), in order."""
        return tuple((verb, path) for path, verb in self._written.items())

    def read(self, path: str, first_line: int, num_lines: int) -> str:
        """Returns lines of a file as they are, and a note if there are more.

        Args:
            path: Relative to the workspace.
            first_line: 1-based.
            num_lines: At most so many; fewer if they pass MAX_READ_CHARACTERS.

        Raises:
            ToolError: there is no such file for a run.
        """
        source = self._source(_checked(path))
        if source is None:
            raise ToolError(f"there is no file {path}")
        text = source.data.decode("utf-8", "replace")
        lines = text.split("\n")
        if first_line > len(lines):
            raise ToolError(f"{path} has {len(lines)} lines only")
        end = _end(lines, first_line - 1, num_lines)
        shown = "\n".join(lines[first_line - 1 : end])[:MAX_READ_CHARACTERS]
        if _is_shown_whole(shown, lines[first_line - 1 : end]):
            self._note(source, len(lines), range(first_line - 1, end))
        if (first_line, end) == (1, len(lines)):
            return shown
        more = f"; read on with from={end + 1}" if end < len(lines) else ""
        return f"{shown}\n[lines {first_line}-{end} of {len(lines)}{more}]"

    def listing(self, folder: str) -> str:
        """Returns the markdown files and folders in a folder, one a line, folders with a slash.

        Raises:
            ToolError: there is no such folder for a run.
        """
        inside = "" if folder in {"", ".", "/"} else _checked(folder.removesuffix("/"))
        try:
            entries = self._file_system_entries(inside)
        except (OSError, WorkspaceError) as error:
            raise ToolError(f"{folder} cannot be listed: {_reason(error)}") from None
        shown = sorted(entries)
        left_out = len(shown) - MAX_LISTED
        rest = [f"[{left_out} more]"] if left_out > 0 else []
        return "\n".join(shown[:MAX_LISTED] + rest) or "(empty)"

    def write(self, path: str, content: str) -> str:
        """Writes a whole file; returns what was done.

        Raises:
            ToolError: it must not be written, or the disk refused.
        """
        key = self._writable_key(path)
        data = _encoded(content)
        source = self._source(key)
        seen = self._seen.get(key)
        if source is not None:
            if source.data == data:
                return f"unchanged {key}: it says exactly that already"
            if seen is None or seen.data != source.data or not seen.is_whole:
                raise ToolError(f"{key} exists; read all of it with fs_read before you replace it")
        raw_path = source.raw_path if source else key
        try:
            replace(self._root, raw_path, data, source.data if source else None)
        except ChangedMeanwhile:
            raise ToolError(f"{key} was changed by somebody else; read it again") from None
        except (OSError, WorkspaceError) as error:
            raise ToolError(f"{key} cannot be written: {_reason(error)}") from None
        verb = "extended" if source else "created"
        self._written.setdefault(key, verb)
        num_lines = content.count("\n") + 1
        self._seen[key] = _Seen(data, num_lines, set(range(num_lines)))
        return f"{verb} {key}"

    def _writable_key(self, path: str) -> str:
        key = _checked(path)
        if not key.endswith(_SUFFIX):
            raise ToolError(f"only files that end in {_SUFFIX} can be written, not {path}")
        if key.split("/")[0].casefold() == FOLDER:
            raise ToolError(f"handlers in {FOLDER}/ cannot be written")
        if not self._writable.matches(key):
            raise ToolError(f"{path} is outside of the writable paths")
        if self._exclude.matches(key):
            raise ToolError(f"{path} is excluded from the memory")
        return key

    def _source(self, key: str) -> SourceFile | None:
        """Returns a file of the memory; None if there is none."""
        if not paths.is_indexable_name(key):
            raise ToolError(f"{key} is no markdown file")
        if self._exclude.matches(key):
            raise ToolError(f"{key} is excluded from the memory")
        try:
            found = self._workspace.read(key)
        except WorkspaceError as error:
            raise ToolError(f"{key} cannot be read: {error.reason}") from None
        match found:
            case Gone():
                return None
            case SkippedFile(reason=reason):
                raise ToolError(f"{key} cannot be read: {reason}")
        return found

    def _note(self, source: SourceFile, num_lines: int, lines: range) -> None:
        """Remembers what the run has seen; what cannot be decoded it has not seen."""
        try:
            source.data.decode()
        except UnicodeDecodeError:
            return
        seen = self._seen.get(source.path)
        if seen is None or seen.data != source.data:
            seen = self._seen[source.path] = _Seen(source.data, num_lines)
        seen.lines.update(lines)

    def _file_system_entries(self, folder: str) -> list[str]:
        names = []
        for entry in OsFileSystem().entries(self._root, folder):
            key = paths.key(f"{folder}/{entry.name}" if folder else entry.name)
            if entry.name.startswith(".") or not paths.is_unicode(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False) and not self._exclude.covers(key):
                names.append(f"{key}/")
            elif entry.is_file(follow_symlinks=False) and paths.is_indexable_name(key):
                names += [] if self._exclude.matches(key) else [key]
        return names


def _checked(path: str) -> str:
    """Returns the key of a path that stays inside.

    Raises:
        ToolError: it is absolute, climbs, is hidden, or has characters no name should have.
    """
    if len(path) > MAX_PATH_CHARACTERS or _FORBIDDEN.search(path) or not paths.is_unicode(path):
        raise ToolError("the path is too long or has characters that are not allowed")
    key = paths.key(path)
    if any(not part.strip() or part.startswith((".", "~")) for part in key.split("/")):
        raise ToolError(f"{path} is not a path inside of the workspace")
    return key


def _encoded(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolError("the content is not valid Unicode") from None
    if len(data) > MAX_WRITE_BYTES:
        raise ToolError(f"the content has {len(data)} bytes, more than {MAX_WRITE_BYTES}")
    if b"\0" in data:
        raise ToolError("the content holds a NUL character")
    if not content.strip():
        raise ToolError("the content is empty")
    return data


def _end(lines: list[str], start: int, num_lines: int) -> int:
    """Returns where an answer ends so that it is not too long; it has one line at least."""
    size, end = 0, start
    while end < min(len(lines), start + num_lines):
        size += len(lines[end]) + 1
        if size > MAX_READ_CHARACTERS and end > start:
            break
        end += 1
    return end


def _is_shown_whole(shown: str, lines: list[str]) -> bool:
    return len(shown) == sum(map(len, lines)) + len(lines) - 1


def _reason(error: OSError | WorkspaceError) -> str:
    return error.reason if isinstance(error, WorkspaceError) else walking.reason(error)
