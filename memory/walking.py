"""Which files lie in the workspace, and which are left out?"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from memory import paths
from memory.errors import WorkspaceMissing
from memory.messages import FileStamp, SkippedFile

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from memory.file_system import FileSystem
    from memory.globs import Globs

NOT_UNICODE = "the name is not UTF-8"
NOT_REGULAR = "not a regular file"
SYMBOLIC_LINK = "symbolic links are not followed"
TWIN = "the name equals another one after Unicode normalization"
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


class Walk:
    """One pass over all folders of a workspace, without reading or following anything.

    Raises:
        WorkspaceMissing: the root is not there or cannot be listed.
    """

    stamps: dict[str, FileStamp]
    """Indexable files of any size, by key."""
    skipped: list[SkippedFile]
    unreadable: set[str]
    """Keys of what could not be looked into."""

    def __init__(self, root: Path, exclude: Globs, file_system: FileSystem) -> None:
        self._root = root
        self._exclude = exclude
        self._file_system = file_system
        self._folders = [""]
        self.stamps = {}
        self.skipped = []
        self.unreadable = set()
        while self._folders:
            self._visit(self._folders.pop())

    def _visit(self, folder: str) -> None:
        try:
            for entry in self._file_system.entries(self._root, folder):
                self._look_at(entry, f"{folder}/{entry.name}" if folder else entry.name)
        except OSError as error:
            if not folder:
                raise WorkspaceMissing(str(self._root), reason(error)) from error
            if error.errno not in GONE:
                self._unreadable(folder, error)

    def _unreadable(self, raw_path: str, error: OSError) -> None:
        self.unreadable.add(paths.key(raw_path))
        self._skip(raw_path, reason(error))

    def _skip(self, raw_path: str, why: str) -> None:
        self.skipped.append(SkippedFile(paths.printable(raw_path), why))

    def _look_at(self, entry: os.DirEntry[str], raw_path: str) -> None:
        if entry.name.startswith("."):
            return
        try:
            if entry.is_dir(follow_symlinks=False):
                self._enter(raw_path)
            elif paths.is_indexable_name(entry.name) or _leads_to_folder(entry):
                self._take(entry, raw_path)
        except FileNotFoundError:
            pass  # it vanished since the folder was listed
        except OSError as error:
            self._unreadable(raw_path, error)

    def _enter(self, raw_path: str) -> None:
        if self._exclude.covers(paths.key(raw_path)):
            return
        if paths.is_unicode(raw_path):
            self._folders.append(raw_path)
        else:
            self._skip(raw_path, NOT_UNICODE)

    def _take(self, entry: os.DirEntry[str], raw_path: str) -> None:
        path = paths.key(raw_path)
        if self._exclude.matches(path):
            return
        if why := _unfit(entry, raw_path):
            self._skip(raw_path, why)
            return
        found = entry.stat(follow_symlinks=False)
        stamp = FileStamp(path, raw_path, found.st_mtime_ns, found.st_size, found.st_ino)
        if path in self.stamps:
            stamp, loser = sorted((stamp, self.stamps[path]), key=_preference)
            self._skip(loser.raw_path, TWIN)
        self.stamps[path] = stamp


def reason(error: OSError) -> str:
    """Returns what went wrong, without the path."""
    return error.strerror.lower() if error.strerror else type(error).__name__


def _preference(stamp: FileStamp) -> tuple[bool, str]:
    return stamp.raw_path != stamp.path, stamp.raw_path


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() and entry.is_dir()


def _unfit(entry: os.DirEntry[str], raw_path: str) -> str:
    if not paths.is_unicode(raw_path):
        return NOT_UNICODE
    if entry.is_symlink():
        return SYMBOLIC_LINK
    return "" if entry.is_file(follow_symlinks=False) else NOT_REGULAR
