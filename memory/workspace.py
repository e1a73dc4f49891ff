"""Which files of the workspace are memory, and what do they hold at this moment?

``scan`` looks at names, ``read`` at one file. Both follow the same rules (SPEC W1, W2): no symbolic
link is followed, and of several names that are equal in NFC the one spelled in NFC wins.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memory import paths, walking
from memory.errors import WorkspaceError
from memory.file_system import FileSystem, OsFileSystem
from memory.messages import Scan, SkippedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.globs import Globs

MAX_FILE_BYTES = 10 * 1024 * 1024
_ATTEMPTS = 3
_REFUSED = {
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: walking.SYMBOLIC_LINK,
    errno.ENXIO: walking.NOT_REGULAR,
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was at one moment."""

    path: str
    """NFC key."""
    raw_path: str
    mtime_ns: int
    size: int
    inode: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such file in the workspace, or it does not belong to the memory."""

    path: str
    """NFC key."""


class FileUnsettled(WorkspaceError):
    """The file cannot be read for now: it changes under the reader, or the disk failed."""


class Workspace:
    """A folder of markdown files; keeps no state but what kind of file system it is on.

    Args:
        root: The folder; it may itself be a link, and its name may begin with a dot.
        exclude: Keys that are not indexed.
        max_file_bytes: Larger files are skipped and reported, never cut.
        file_system: Where the files are.
    """

    def __init__(
        self,
        root: Path,
        *,
        exclude: Globs,
        max_file_bytes: int = MAX_FILE_BYTES,
        file_system: FileSystem | None = None,
    ) -> None:
        self._root = Path(root)
        self._exclude = exclude
        self._max_file_bytes = max_file_bytes
        self._file_system: FileSystem = file_system or OsFileSystem()
        self._ignores_case: bool | None = None

    def scan(self) -> Scan:
        """Returns every indexable file, sorted by path, without reading any.

        Raises:
            WorkspaceMissing: the root is not there or cannot be listed.
        """
        walk = walking.Walk(self._root, self._exclude, self._file_system)
        too_large = [stamp for stamp in walk.stamps.values() if stamp.size > self._max_file_bytes]
        skipped = walk.skipped + [
            SkippedFile(stamp.path, self._too_large(stamp.size)) for stamp in too_large
        ]
        return Scan(
            files=tuple(
                stamp
                for _path, stamp in sorted(walk.stamps.items())
                if stamp.size <= self._max_file_bytes
            ),
            skipped=tuple(sorted(skipped, key=lambda file: (file.path, file.reason))),
            unreadable=tuple(sorted(walk.unreadable)),
        )

    def is_removed(self) -> bool:
        """Tells whether there is no root although the folder is there that it was in.

        Where a disk is away, that folder is mostly away, too.
        """
        root = Path(os.path.realpath(self._root))
        return root.parent.is_dir() and not os.path.lexists(root)

    def read(self, raw_path: str) -> SourceFile | Gone | SkippedFile:
        """Returns a file as it is now, whole and from one moment.

        Args:
            raw_path: Any spelling of the path: as in an event, as in a scan, or the key.
        Returns:
            The file; ``Gone`` if nothing of that name belongs to the memory; ``SkippedFile`` if
            the file is there but cannot be indexed as it is.
        Raises:
            FileUnsettled: trying later may help.
            WorkspaceMissing: the root is not there, so nothing is known about the file.
        """
        path = paths.key(raw_path)
        if not paths.is_indexable_name(raw_path) or self._exclude.matches(path):
            return Gone(paths.printable(path))
        if not paths.is_unicode(raw_path):
            return SkippedFile(paths.printable(raw_path), walking.NOT_UNICODE)
        for spelling in self._spellings(path):
            found = self._read_spelling(spelling)
            if not isinstance(found, Gone):
                return self._as_named(raw_path, found)
        return Gone(path)

    def _spellings(self, path: str) -> Iterator[str]:
        yield path
        if path.isascii():
            return
        candidates = [""]
        for part in path.split("/"):
            candidates = [
                f"{folder}/{name}" if folder else name
                for folder in candidates
                for name in self._names(folder)
                if paths.key(name) == part
            ]
        yield from sorted(set(candidates) - {path})

    def _names(self, folder: str) -> list[str]:
        try:
            return [entry.name for entry in self._file_system.entries(self._root, folder)]
        except OSError:
            return []

    def _read_spelling(self, spelling: str) -> SourceFile | Gone | SkippedFile:
        try:
            descriptor = self._file_system.open_file(self._root, spelling)
        except OSError as error:
            return _refusal(spelling, error)
        try:
            found = self._read_open(descriptor, spelling)
        except OSError as error:
            return _refusal(spelling, error)
        finally:
            os.close(descriptor)
        if isinstance(found, SourceFile) and not self._is_listed(found):
            return Gone(found.path)
        return found

    def _read_open(self, descriptor: int, spelling: str) -> SourceFile | Gone | SkippedFile:
        path = paths.key(spelling)
        for _attempt in range(_ATTEMPTS):
            before = self._file_system.stat(descriptor)
            if stat.S_ISDIR(before.st_mode):
                return Gone(path)
            if not stat.S_ISREG(before.st_mode):
                return SkippedFile(path, walking.NOT_REGULAR)
            if before.st_size > self._max_file_bytes:
                return SkippedFile(path, self._too_large(before.st_size))
            # One byte more than expected, so that a file that grew meanwhile is noticed.
            data = self._file_system.read(descriptor, before.st_size + 1)
            after = self._file_system.stat(descriptor)
            if _moment(before) == _moment(after) and len(data) == after.st_size:
                if b"\0" in data:
                    return SkippedFile(path, "binary: the file holds NUL bytes")
                return SourceFile(path, spelling, *_moment(after), after.st_ino, data)
        raise FileUnsettled(path, "the file keeps changing")

    def _too_large(self, size: int) -> str:
        return f"{size} bytes are more than the limit of {self._max_file_bytes}"

    def _as_named(self, raw_path: str, found: SourceFile | SkippedFile) -> SourceFile | SkippedFile:
        """Keeps the caller's spelling where the file system takes both for the same file."""
        if (
            isinstance(found, SourceFile)
            and found.raw_path != raw_path
            and self._inode(raw_path) == found.inode
        ):
            return replace(found, raw_path=raw_path)
        return found

    def _inode(self, raw_path: str) -> int | None:
        try:
            descriptor = self._file_system.open_file(self._root, raw_path)
        except OSError:
            return None
        try:
            return self._file_system.stat(descriptor).st_ino
        finally:
            os.close(descriptor)

    def _is_listed(self, found: SourceFile) -> bool:
        """Tells whether the folders hold a file of exactly this name.

        Where case is ignored, ``a.md`` opens although the folder lists ``A.md`` since a rename.
        """
        if self._ignores_case is None:
            stem, _dot, suffix = found.raw_path.rpartition(".")
            self._ignores_case = self._inode(f"{stem}.{suffix.swapcase()}") == found.inode
        if not self._ignores_case:
            return True
        parts = found.path.split("/")
        folders = ["/".join(parts[:depth]) for depth in range(len(parts))]
        return all(
            part in {paths.key(name) for name in self._names(folder)}
            for folder, part in zip(folders, parts, strict=True)
        )


def _moment(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size


def _refusal(spelling: str, error: OSError) -> Gone | SkippedFile:
    path = paths.key(spelling)
    if error.errno in walking.GONE:
        return Gone(path)
    if error.errno in _REFUSED:
        return SkippedFile(path, _REFUSED[error.errno])
    raise FileUnsettled(path, walking.reason(error)) from error
