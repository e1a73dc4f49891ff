"""Does the daemon run and answer, is it well, and does its index follow the files?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.daemon_client import is_alive, request, running
from memory.data_lock import LOCK_NAME, is_held
from memory.doctor.finding import note, ok, problem
from memory.errors import DaemonError, DaemonNotRunning, StoreError
from memory.reader import SnapshotReader
from memory.reconcile import changes
from memory.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from memory.doctor.finding import Finding
    from memory.messages import FileStamp, FileSummary, Scan
    from memory.status_payloads import StatusPayload

_LOCK = "lock"
_DAEMON = "daemon"
_FOLLOWING = "freshness"
_TIMEOUT_S = 10.0
_LONGEST_START_S = 180.0
_MAX_INTERVALS = 3
_NS = 1_000_000_000
_MAX_NAMED = 3
_MAX_PID_BYTES = 32


def daemon_status(data: Path, now_s: float) -> tuple[StatusPayload | None, list[Finding]]:
    """Returns the status of the daemon, None if it does not answer, and what is to be said.

    Args:
        data: The data folder.
        now_s: Unix time, seconds.
    """
    findings = [_lock_finding(data)]
    try:
        status: StatusPayload = request(data, "status", _TIMEOUT_S)
    except DaemonNotRunning:
        return None, [*findings, _silent(data, now_s)]
    except DaemonError as error:
        remedy = "`memory stop` ends it if it can, else end its process, and look at ray.log"
        return None, [*findings, problem(_DAEMON, str(error), remedy)]
    return status, [*findings, *_of_status(status)]


def _lock_finding(data: Path) -> Finding:
    owner = _owner(data)
    if not is_held(data):
        return ok(_LOCK, "free")
    if owner is None or not is_alive(owner):
        remedy = f"`fuser {data / LOCK_NAME}` names the process to end"
        return problem(_LOCK, f"held, but not by process {owner or 'unknown'}, which ended", remedy)
    return ok(_LOCK, f"held by process {owner}")


def _owner(data: Path) -> int | None:
    """Returns the process that took the lock last."""
    try:
        with (data / LOCK_NAME).open("rb") as file:
            return int(file.read(_MAX_PID_BYTES))
    except (OSError, ValueError):
        return None


def _silent(data: Path, now_s: float) -> Finding:
    """Returns why no daemon answers."""
    if not is_held(data):
        if running(data) is not None:
            return note(_DAEMON, "not running; daemon.json names a process of somebody else")
        return note(_DAEMON, "not running", "`memory start` starts it")
    try:
        age_s = now_s - (data / LOCK_NAME).stat().st_mtime
    except OSError:
        age_s = 0.0
    if age_s < _LONGEST_START_S:
        return note(_DAEMON, f"starting for {age_s:.0f} s")
    remedy = f"look at ray.log, then end process {_owner(data) or 'that holds the lock'}"
    return problem(_DAEMON, f"holds the lock for {age_s:.0f} s and does not answer", remedy)


def _of_status(status: StatusPayload) -> Iterator[Finding]:
    yield ok(_DAEMON, f"{status['state']}, {status['files']:,} files, {status['pending']:,} wait")
    if status["state"] == "workspace_missing":
        yield problem(_DAEMON, "its workspace is missing", "bring the folder back, or restart it")
    if status["disk_error"]:
        yield problem(_DAEMON, status["disk_error"], "make room, or make the data folder writable")
    if status["failed"]:
        first, number = status["failed"][0], len(status["failed"])
        detail = f"{number:,} failed, the first: {first['path']}: {first['reason']}"
        yield problem(_DAEMON, detail, "they are tried again; `memory status` names them")
    if status["model_calls"]["breaker"] != "closed":
        reason = status["model_calls"]["last_error"]
        yield problem(_DAEMON, f"the provider does not work: {reason}", "searches use words alone")
    if not all(actor["state"] == "alive" for actor in status["actors"]):
        names = [each["name"] for each in status["actors"] if each["state"] != "alive"]
        yield problem(_DAEMON, f"no answer of {', '.join(names)}", "Ray restarts them; see ray.log")
    if restarts := sum(actor["restarts"] for actor in status["actors"]):
        yield note(_DAEMON, f"actors were restarted {restarts:,} times", "ray.log says why")


def following_findings(
    data: Path, scan: Scan, status: StatusPayload | None, *, interval_s: float, now_s: float
) -> Iterator[Finding]:
    """Yields when the daemon looked last, and which files the index does not know as they are.

    Args:
        data: The data folder; a daemon writes down there whatever it does.
        scan: What is on disk.
        status: Of the daemon; None if none runs.
        interval_s: Seconds between two comparisons of disk and index.
        now_s: Unix time, seconds.
    """
    if status is not None:
        yield _looked(status, interval_s)
    try:
        with SnapshotReader(data) as reader:
            known = reader.files()
    except StoreError:
        return  # said already
    behind = _behind(scan, known)
    if not behind:
        yield ok(_FOLLOWING, "every file is in the index as it is")
        return
    names = [stamp.path for stamp in behind][:_MAX_NAMED]
    are = "is" if len(behind) == 1 else "are"
    detail = f"{counted(len(behind), 'file')} {are} newer than the index: {', '.join(names)}"
    if status is None:
        yield note(_FOLLOWING, detail, "`memory start` indexes them")
    elif status["state"] != "ready" or status["building"] or _are_new(behind, interval_s, now_s):
        yield note(_FOLLOWING, detail, "they are being indexed")
    else:
        yield problem(_FOLLOWING, detail, "`memory status` says what failed; `memory check` more")


def _looked(status: StatusPayload, interval_s: float) -> Finding:
    event_s, reconcile_s = status["last_event_age_s"], status["last_reconcile_age_s"]
    seen = "no change was seen" if event_s is None else f"last change seen {event_s:.0f} s ago"
    if reconcile_s is None:
        return note(_FOLLOWING, f"{seen}, all files were not compared yet")
    detail = f"{seen}, all files compared {reconcile_s:.0f} s ago"
    if reconcile_s > _MAX_INTERVALS * max(interval_s, _TIMEOUT_S):
        return problem(_FOLLOWING, detail, "`memory stop` and `memory start`; ray.log says why")
    return ok(_FOLLOWING, detail)


def _behind(scan: Scan, known: Sequence[FileSummary]) -> list[FileStamp]:
    changed = {event.raw_path for event in changes(scan, known)}
    return [stamp for stamp in scan.files if stamp.raw_path in changed]


def _are_new(files: Sequence[FileStamp], interval_s: float, now_s: float) -> bool:
    """Tells whether the daemon may not have seen them yet."""
    return all(now_s - file.mtime_ns / _NS < _MAX_INTERVALS * interval_s for file in files)
