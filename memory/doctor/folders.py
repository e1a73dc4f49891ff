"""Can the workspace be read and the data folder be written, by nobody else, and is there room?"""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

from memory.access_token import TOKEN_NAME
from memory.daemon_client import ADDRESS_NAME
from memory.data_lock import LOCK_NAME
from memory.doctor.finding import note, ok, problem
from memory.errors import SnapshotMissing, StoreError, WorkspaceMissing
from memory.identity import EMBEDDING_JSON
from memory.index_folders import NEXT_NAME
from memory.journal import JOURNAL_NAME
from memory.outbox import OUTBOX_NAME
from memory.outbox_file import damage
from memory.reader import SnapshotReader
from memory.snapshot import SNAPSHOT_NAME, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from memory.doctor.finding import Finding
    from memory.messages import Scan
    from memory.workspace import Workspace

_WORKSPACE = "workspace"
_CLOCK = "clock"
_DATA = "data folder"
_DISK = "disk"
_INDEX = "index"
_OUTBOX = "saved facts"
_FILES = (
    *(SNAPSHOT_NAME, JOURNAL_NAME, EMBEDDING_JSON, LOCK_NAME, ADDRESS_NAME, TOKEN_NAME),
    *(OUTBOX_NAME, "ray.log"),
)
_MAX_NAMED = 3
_FUTURE_S = 5.0
"""A file may be written while the clock is read."""
_NS = 1_000_000_000
_MIB = 1024 * 1024
_INDEX_SIZES = 2
"""A snapshot is written beside the one it replaces, and the journal grows meanwhile."""
_LEAST_FREE = 64 * _MIB


def scanned(
    root: Path, workspace: Workspace, now_s: float, *, is_named: bool
) -> tuple[Scan | None, list[Finding]]:
    """Returns what lies in the workspace, None if it cannot be looked into, and what is wrong.

    Args:
        root: The folder.
        workspace: What of it is indexed.
        now_s: Unix time, seconds.
        is_named: Whether somebody named it, so that it must be there.
    """
    if not is_named and not root.exists():
        return None, [note(_WORKSPACE, f"{root} is not there yet", "`memory start` makes it")]
    try:
        scan = workspace.scan()
    except WorkspaceMissing as error:
        remedy = f"`memory init --workspace {root}` makes it, or name another one"
        return None, [problem(_WORKSPACE, str(error), remedy)]
    findings = list(_of_workspace(root, scan))
    late = [file.path for file in scan.files if file.mtime_ns > (now_s + _FUTURE_S) * _NS]
    if late:
        detail = f"{_count(late)} changed in the future: {_named(late)}"
        findings.append(problem(_CLOCK, detail, "set the clock, then `touch` these files"))
    else:
        findings.append(ok(_CLOCK, "no file is of the future"))
    return scan, findings


def _of_workspace(root: Path, scan: Scan) -> Iterator[Finding]:
    skipped = f", {len(scan.skipped):,} skipped" if scan.skipped else ""
    yield ok(_WORKSPACE, f"{root}: {len(scan.files):,} markdown files{skipped}")
    if scan.unreadable:
        detail = f"cannot be looked into: {_named(scan.unreadable)}"
        yield problem(_WORKSPACE, detail, "make them readable, or put them into excludeGlobs")
    hidden = [each for each in scan.skipped if each.path not in scan.unreadable]
    if hidden:
        first = hidden[0]
        yield note(_WORKSPACE, f"{_count(hidden)} skipped, the first: {first.path}: {first.reason}")


def indexed_workspace(data: Path) -> str | None:
    """Returns the folder that the saved index is of; None if there is none to be read."""
    try:
        return read_header(data / SNAPSHOT_NAME).info.workspace or None
    except (StoreError, OSError):
        return None


def data_findings(data: Path) -> Iterator[Finding]:
    """Yields whether only the owner has access, whether there is room, and what is saved."""
    if not data.is_dir():
        detail = f"{data} is not there yet"
        if data.exists():
            yield problem(_DATA, f"{data} is not a folder", "move it away, or name another --data")
        else:
            yield note(_DATA, detail, "`memory start` makes it")
    else:
        yield from _of_modes(data)
        yield from _of_kinds(data)
        yield from _of_index(data)
        yield from _of_outbox(data / OUTBOX_NAME)
    yield from _of_room(data)


def _of_modes(data: Path) -> Iterator[Finding]:
    found = [data, *sorted(data.iterdir())]
    foreign = [path.name for path in found if path.lstat().st_uid != os.getuid()]
    open_to_others = [path.name for path in found if _is_open_to_others(path)]
    if foreign:
        yield problem(
            _DATA, f"of another user: {_named(foreign)}", f"chown -R {os.getuid()} {data}"
        )
    if open_to_others:
        detail = f"open to other users: {_named(open_to_others)}"
        yield problem(_DATA, detail, f"chmod -R go= {data}")
    if not os.access(data, os.R_OK | os.W_OK | os.X_OK):
        yield problem(_DATA, f"{data} cannot be written", f"chmod u=rwx {data}")
    elif not foreign and not open_to_others:
        yield ok(_DATA, f"{data}, for its owner alone")


def _of_kinds(data: Path) -> Iterator[Finding]:
    """Yields what has the name of a file and is none."""
    for name in _FILES:
        path = data / name
        if path.exists() and not path.is_file():
            yield problem(_DATA, f"{name} is not a file", f"move {path} away")


def _of_outbox(path: Path) -> Iterator[Finding]:
    try:
        line = damage(path)
    except OSError as error:
        yield problem(_OUTBOX, f"{path.name}: {error.strerror}", f"chmod u=rw {path}")
        return
    if line:
        remedy = "save again what is missing; without a daemon, remove such lines from the file"
        yield problem(_OUTBOX, line, remedy)


def _is_open_to_others(path: Path) -> bool:
    status = path.lstat()
    return not stat.S_ISLNK(status.st_mode) and bool(status.st_mode & 0o077)


def _of_index(data: Path) -> Iterator[Finding]:
    try:
        with SnapshotReader(data) as reader:
            identity, files = reader.header.info.identity, reader.files()
    except SnapshotMissing:
        yield note(_INDEX, "nothing is saved yet", "`memory start` indexes the workspace")
    except StoreError as error:
        remedy = "`memory start` sets it aside and indexes everything again"
        yield problem(_INDEX, str(error), remedy)
    else:
        num_chunks = sum(file.num_chunks for file in files)
        model = f"{identity.provider} / {identity.model}"
        yield ok(_INDEX, f"{len(files):,} files, {num_chunks:,} chunks of {model}")
    aside = sorted(path.name for path in data.glob(f"{SNAPSHOT_NAME}.bad-*"))
    if aside:
        yield note(
            _INDEX, f"set aside because unreadable: {_named(aside)}", "remove it if unwanted"
        )


def _of_room(data: Path) -> Iterator[Finding]:
    existing = next(path for path in (data, *data.parents) if path.is_dir())
    size = sum(
        _size(folder / name)
        for folder in (data, data / NEXT_NAME)
        for name in (SNAPSHOT_NAME, JOURNAL_NAME)
    )
    needed, free = max(_INDEX_SIZES * size, _LEAST_FREE), shutil.disk_usage(existing).free
    detail = f"{free // _MIB:,} MiB are free, the index takes {size / _MIB:,.1f} MiB"
    if free < needed:
        remedy = f"make room for {needed // _MIB:,} MiB on the disk of {existing}"
        yield problem(_DISK, detail, remedy)
    else:
        yield ok(_DISK, detail)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _count(files: Sequence[object]) -> str:
    return f"{len(files):,} file{'s' * (len(files) != 1)}"


def _named(names: Sequence[str]) -> str:
    """Returns the first few names."""
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
