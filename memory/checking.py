"""Does an index hold what the files hold?

The files are read as the indexer reads them, and compared with what the index says of them. A file
that changes meanwhile is looked at again; what a daemon is about to index is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memory.inspection import Difference, record_of
from memory.markdown import parse_file
from memory.messages import SkippedFile
from memory.reconcile import is_hidden
from memory.records import pack_file
from memory.workspace import FileUnsettled, SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memory.embedding_input import TokenLimits
    from memory.index import MemoryIndex
    from memory.inspection import FileRecord, Inspection
    from memory.messages import FileStamp, ParsedFile, Scan
    from memory.workspace import Gone, Workspace

BATCH = 200
"""Files that are asked for by name at once."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_LABELS = {
    "path": "name",
    "raw_path": "spelling",
    "mtime_ns": "time",
    "size": "size",
    "inode": "inode",
    "num_chunks": "number of sections",
    "matter": "front matter or description",
    "hashes": "content",
    "texts": "text, part or line of a section",
}
_STILL_S = 5.0
"""A file that has not changed for so long should be in the index of a daemon."""


class IndexSource(Protocol):
    """An index that can be asked about its files."""

    def page(self, after: str) -> Inspection:
        """Returns the next files; see ``inspection.inspect``."""
        ...

    def named(self, paths: Sequence[str], *, wants_vectors: bool = False) -> Inspection:
        """Returns what is known of these files."""
        ...


class HeldIndex:
    """An index in this process."""

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index

    def page(self, after: str) -> Inspection:
        """See ``IndexSource``."""
        return self._index.inspect(after=after)

    def named(self, paths: Sequence[str], *, wants_vectors: bool = False) -> Inspection:
        """See ``IndexSource``."""
        return self._index.inspect(paths=paths, wants_vectors=wants_vectors)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an index may take to follow the files."""

    wait_s: float = 0.0
    """From the first look at all files on; 0 for an index that nobody changes."""
    now: Callable[[], float] = lambda: 0.0
    """Seconds that never go back."""
    sleep: Callable[[float], None] = lambda _seconds: None


@dataclass(slots=True)
class Report:
    """What a comparison found."""

    num_files: int = 0
    """Of the index."""
    num_chunks: int = 0
    differences: list[Difference] = field(default_factory=list)
    """Sorted."""
    unsettled: list[str] = field(default_factory=list)
    """Files that changed all the time, so that nothing can be said about them; sorted."""
    equal: list[str] = field(default_factory=list)
    """Files of which the index holds what they hold, sorted."""


class _Seen(NamedTuple):
    """What a file was at one moment."""

    stamp: tuple[str, int, int, int] | None
    """Spelling, modification time, size, inode; None if there was none."""
    since_s: float
    is_first: bool = False
    """Whether it has been so since all files were listed."""


class _Doubt(NamedTuple):
    difference: Difference
    is_final: bool
    """Whether the index takes the file to be as it is, so that there is nothing to wait for."""


def check_files(
    workspace: Workspace,
    limits: TokenLimits,
    source: IndexSource,
    patience: Patience | None = None,
    *,
    on_equal: Callable[[ParsedFile], None] | None = None,
) -> Report:
    """Compares every file with every record, in both directions.

    Args:
        workspace: The files.
        limits: Of the model of the index.
        source: The index.
        patience: How long it may take to follow; not at all by default.
        on_equal: Is called with each file that is as it should be.

    Raises:
        WorkspaceMissing: nothing can be compared.
    """
    return _Comparison(workspace, limits, source, patience or Patience(), on_equal).run()


class _Comparison:
    def __init__(
        self,
        workspace: Workspace,
        limits: TokenLimits,
        source: IndexSource,
        patience: Patience,
        on_equal: Callable[[ParsedFile], None] | None,
    ) -> None:
        self._workspace = workspace
        self._limits = limits
        self._source = source
        self._patience = patience
        self._on_equal = on_equal
        self._started = patience.now()
        self._seen: dict[str, _Seen] = {}
        self._doubts: dict[str, _Doubt] = {}
        self._report = Report()

    def run(self) -> Report:
        scan, report = self._workspace.scan(), self._report
        self._seen = {
            stamp.path: _Seen(_stamp_of(stamp), self._started, is_first=True)
            for stamp in scan.files
        }
        self._compare_all(scan)
        self._wait_for_the_rest()
        for path, doubt in self._doubts.items():
            if self._is_still(path):
                report.differences.append(doubt.difference)
            else:
                report.unsettled.append(path)
        report.differences = sorted(set(report.differences))
        report.unsettled.sort()
        report.equal.sort()
        return report

    def _compare_all(self, scan: Scan) -> None:
        unknown = {stamp.path: stamp.raw_path for stamp in scan.files}
        for page in self._pages():
            for record in page.records:
                raw_path = unknown.pop(record.path, record.raw_path)
                if not is_hidden(record.path, scan.unreadable):
                    self._compare(record.path, raw_path, record)
        for path, raw_path in unknown.items():
            self._compare(path, raw_path, None)

    def _pages(self) -> Iterator[Inspection]:
        after = ""
        while True:
            page = self._source.page(after)
            self._report.num_files, self._report.num_chunks = page.num_files, page.num_chunks
            self._report.differences += page.faults
            yield page
            if not page.records:
                return
            after = page.records[-1].path

    def _wait_for_the_rest(self) -> None:
        patience, pause_s = self._patience, _FIRST_PAUSE_S
        while True:
            self._look_again()
            waited_s = patience.now() - self._started
            is_over = all(doubt.is_final for doubt in self._doubts.values())
            if is_over or waited_s >= patience.wait_s:
                return
            patience.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _look_again(self) -> None:
        doubted = sorted(self._doubts)
        for start in range(0, len(doubted), BATCH):
            some = doubted[start : start + BATCH]
            found = self._source.named(some)
            self._report.num_files, self._report.num_chunks = found.num_files, found.num_chunks
            records = {record.path: record for record in found.records}
            for path in some:
                seen, record = self._seen.get(path), records.get(path)
                known = record.raw_path if record else path
                self._compare(path, seen.stamp[0] if seen and seen.stamp else known, record)

    def _compare(self, path: str, raw_path: str, record: FileRecord | None) -> None:
        """Notes what is to be said of a file, and forgets what was said before."""
        self._doubts.pop(path, None)
        try:
            found = self._workspace.read(raw_path)
        except FileUnsettled as error:
            self._seen[path] = _Seen(None, self._patience.now())
            self._doubts[path] = _Doubt(Difference("missing", path, error.reason), is_final=False)
            return
        parsed = None
        if isinstance(found, SourceFile):
            parsed = parse_file(found, limits=self._limits)
        if not isinstance(found, SkippedFile):
            self._note(path, _stamp_of(parsed) if parsed else None)
        if difference := _difference(path, record, parsed, found):
            is_final = (
                record is not None and parsed is not None and _stamp_of(record) == _stamp_of(parsed)
            )
            self._doubts[path] = _Doubt(difference, is_final)
        elif parsed is not None:
            self._report.equal.append(path)
            if self._on_equal is not None:
                self._on_equal(parsed)

    def _note(self, path: str, stamp: tuple[str, int, int, int] | None) -> None:
        seen = self._seen.get(path)
        if seen is None or seen.stamp != stamp:
            is_first = seen is None and stamp is None
            self._seen[path] = _Seen(stamp, self._patience.now(), is_first)

    def _is_still(self, path: str) -> bool:
        """Tells whether a file has been as it is for so long that the index should know it."""
        seen, patience = self._seen.get(path), self._patience
        if seen is None or seen.is_first:
            return True
        return patience.wait_s > 0 and patience.now() - seen.since_s >= _STILL_S


def _stamp_of(file: FileStamp | FileRecord | ParsedFile) -> tuple[str, int, int, int]:
    return file.raw_path, file.mtime_ns, file.size, file.inode


def _difference(
    path: str,
    record: FileRecord | None,
    parsed: ParsedFile | None,
    found: SourceFile | Gone | SkippedFile,
) -> Difference | None:
    if parsed is None:
        reason = found.reason if isinstance(found, SkippedFile) else "there is no such file"
        return Difference("extra", path, f"is in the index, but {reason}") if record else None
    if record is None:
        return Difference("missing", path, "is not in the index")
    expected = record_of(pack_file(parsed))
    others = [
        _LABELS[name]
        for name, known, wanted in zip(record._fields, record, expected, strict=True)
        if known != wanted
    ]
    return (
        Difference("stale", path, f"the index has another {', '.join(others)}") if others else None
    )
