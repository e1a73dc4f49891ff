"""Which files are not in the index as they are on disk, and why?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memory.messages import Scan, SkippedFile


class Remarks:
    """What the last scan left out, and what was found in files that were read."""

    def __init__(self) -> None:
        self._left_out: tuple[SkippedFile, ...] = ()
        self._read: dict[str, SkippedFile] = {}

    def recall(self, files: Iterable[SkippedFile]) -> None:
        """Notes what was found before the start, where nothing was found since."""
        for file in files:
            self._read.setdefault(file.path, file)

    def scanned(self, scan: Scan) -> None:
        """Takes what a scan left out, and forgets files that are gone."""
        self._left_out = scan.skipped
        present = {stamp.path for stamp in scan.files}
        self._read = {path: file for path, file in self._read.items() if path in present}

    def read(self, path: str, remark: SkippedFile | None) -> None:
        """Notes what was found in a file; None if it is in the index as it is."""
        self._read.pop(path, None)
        if remark is not None:
            self._read[path] = remark

    def all(self) -> tuple[SkippedFile, ...]:
        """Returns one remark a file, sorted by path."""
        files = {file.path: file for file in (*self._left_out, *self._read.values())}
        return tuple(files[path] for path in sorted(files))
