"""A workspace in one line, and file systems that refuse, fold names or move."""

import os
import unicodedata

from memory.file_system import OsFileSystem
from memory.globs import Globs
from memory.workspace import Workspace


def write(root, raw_path, data=b"text"):
    path = root / os.fsdecode(raw_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def workspace(root, *, exclude=(), **options):
    return Workspace(root, exclude=Globs(exclude), **options)


def scanned(root, **options):
    return [stamp.path for stamp in workspace(root, **options).scan().files]


def reasons(root, **options):
    return {file.path: file.reason for file in workspace(root, **options).scan().skipped}


class Refusing(OsFileSystem):
    """Refuses to list or open one path."""

    def __init__(self, raw_path, error):
        self._raw_path = raw_path
        self._error = error

    def entries(self, root, folder):
        if folder == self._raw_path:
            raise self._error
        return super().entries(root, folder)

    def open_file(self, root, raw_path):
        if raw_path == self._raw_path:
            raise self._error
        return super().open_file(root, raw_path)


class Folding(OsFileSystem):
    """Opens names without regard to case and Unicode form, as macOS does; lists them as stored."""

    def open_file(self, root, raw_path):
        found = ""
        for part in raw_path.split("/"):
            names = [entry.name for entry in self.entries(root, found)]
            name = next((name for name in names if _folded(name) == _folded(part)), part)
            found = f"{found}/{name}" if found else name
        return super().open_file(root, found)


def _folded(name):
    return unicodedata.normalize("NFC", name).casefold()


class Moving(OsFileSystem):
    """Changes a file each time after it was read, a limited number of times."""

    def __init__(self, path, times):
        self._path = path
        self._times = times

    def read(self, descriptor, num_bytes):
        data = super().read(descriptor, num_bytes)
        if self._times:
            self._times -= 1
            self._path.write_bytes(data + b"+")
        return data
