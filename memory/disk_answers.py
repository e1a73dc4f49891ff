"""``python -m memory.disk_answers``: what does the saved index answer, in a process of its own?

For a host whose daemon is away. To open an index and a model takes a second, some of it with the
interpreter held, and memory that the host would keep; so that happens beside it. One JSON request
on standard input, one JSON answer on standard output, as over the daemon's socket.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.clock import SystemClock
from memory.daemon_client import result_of
from memory.errors import DaemonError, MemoryPluginError, SnapshotMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory.config import Settings


def ask_disk(request: Mapping[str, object], timeout_s: float) -> Any:
    """Returns the answer to a request; blocks.

    Args:
        request: ``command`` (``search`` or ``context``) with its arguments, ``data``, and the
            configuration as ``config`` (a path) or ``settings`` (a mapping).
        timeout_s: Seconds after which the process is killed.

    Raises:
        SnapshotMissing: nothing was saved yet.
        DaemonError: there is no answer.
    """
    command = (sys.executable, "-P", "-m", "memory.disk_answers")
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            command,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DaemonError(f"the saved index did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise DaemonError(f"the saved index cannot be read: {error.strerror or error}") from None
    if done.returncode == _NOTHING_SAVED:
        raise SnapshotMissing(str(request["data"]))
    return result_of(done.stdout)


_NOTHING_SAVED = 3


def main() -> int:
    """Answers one request; returns the exit code."""
    # One answer has nothing to share out among the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    request = json.load(sys.stdin.buffer)
    try:
        answer: dict[str, object] = {"ok": True, "result": _answer(request)}
    except SnapshotMissing:
        return _NOTHING_SAVED
    except (MemoryPluginError, OSError, ValueError) as error:
        answer = {"ok": False, "error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def _answer(request: Mapping[str, Any]) -> object:
    from memory import disk  # noqa: PLC0415 - the asking side needs none of it
    from memory.messages import Query  # noqa: PLC0415 - as above

    data, settings = Path(request["data"]), _settings(request)
    if request["command"] == "context":
        return disk.context(data, settings, request["prompt"])
    workspace = request["workspace"]
    return disk.search(
        data,
        settings,
        Query(request["query"], int(request["limit"])),
        workspace=Path(workspace) if workspace else None,
        now_s=SystemClock().time(),
    )


def _settings(request: Mapping[str, Any]) -> Settings:
    from memory.config import from_mapping, load  # noqa: PLC0415 - as above

    path = Path(request["config"])
    mapping = request["settings"]
    return load(path) if mapping is None else from_mapping(mapping, path)


if __name__ == "__main__":
    sys.exit(main())
