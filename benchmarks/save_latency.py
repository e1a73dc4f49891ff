"""How long does ``memory_save`` take on a running daemon, over its socket?

Saves of different texts take turns with a bare append of the same line, synced, to a file beside
the outbox: what no durable save can be faster than.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine_figures import Findings, Target, table
from measuring import machine, seconds

from memory.config import Settings
from memory.daemon_client import request
from memory.errors import DaemonError
from memory.local_access import LocalAccess
from memory.outbox import SkillEvent, event_id
from memory.template import write_workspace
from memory.tools import memory_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

NUM_WARM_UP = 5
DEADLINE_S = 120.0
P99 = 98
"""Index of the 99th percentile among the 99 cut points of ``statistics.quantiles``."""
MOST_S = 0.05
"""FAULTS 90."""
CONFIG = "memory:\n  embeddings: {provider: local}\n  saveHandler: false\n"


def facts(count: int) -> Iterator[str]:
    """Yields different texts of some 100 characters."""
    for number in range(count):
        yield (
            f"The contract {number} with the carrier of harbour {number % 7} ends on"
            f" 20{27 + number % 9}-03-31; Globex renews it."
        )


def started(home: Path) -> subprocess.Popen[bytes]:
    """Starts a daemon on a fresh copy of the template and waits until it is ready.

    Raises:
        TimeoutError: it is not within two minutes.
    """
    (home / "config.yml").write_text(CONFIG)
    write_workspace(home / "workspace")
    where = ("--config", "config.yml", "--workspace", "workspace", "--data", "data")
    with (home / "daemon.txt").open("wb") as output:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "memory", "start", *where],
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            stdout=output,
            stderr=output,
        )
    end = time.monotonic() + DEADLINE_S
    while not _is_ready(home):
        if time.monotonic() > end or daemon.poll() is not None:
            daemon.terminate()
            raise TimeoutError((home / "daemon.txt").read_text())
        time.sleep(0.1)
    return daemon


def _is_ready(home: Path) -> bool:
    try:
        return bool(request(home / "data", "status", DEADLINE_S)["ready"])
    except DaemonError:
        return False


def append_synced(path: Path, line: bytes) -> None:
    """Appends a line as the outbox does, and nothing else."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def measured(home: Path, num_saves: int) -> tuple[list[float], list[float]]:
    """Returns the seconds of each save and of each bare append, after a few that do not count."""
    access = LocalAccess(home / "data", Settings(), configured=home / "workspace")
    save = next(tool for tool in memory_tools(access) if tool.name == "memory_save")
    saves, appends = [], []
    for text in facts(NUM_WARM_UP + num_saves):
        event = SkillEvent(event_id(text), text, (), (), 0.0)
        line = json.dumps({"event": asdict(event)}).encode() + b"\n"
        begin = time.perf_counter()
        answer = await save({"content": text})
        saves.append(time.perf_counter() - begin)
        if answer.is_error or answer.data["state"] != "queued":
            raise ValueError(answer.text)
        appends.append(seconds(lambda line=line: append_synced(home / "data/bare.jsonl", line)))
    return saves[NUM_WARM_UP:], appends[NUM_WARM_UP:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-save-") as scratch:
        daemon = started(Path(scratch))
        try:
            saves, appends = asyncio.run(measured(Path(scratch), options.saves))
        finally:
            daemon.terminate()
            daemon.wait(DEADLINE_S)
    findings = Findings()
    for name, value, bare in (
        ("median", statistics.median(saves), statistics.median(appends)),
        ("p99", *(statistics.quantiles(each, n=100)[P99] for each in (saves, appends))),
    ):
        anchor = ("synced append of the same line", bare * 1000)
        findings.add(
            f"memory_save {name}",
            value * 1000,
            "ms",
            anchor=anchor,
            target=Target(most=MOST_S * 1000),
        )
    about = machine(("ray", "numpy"))
    print(f"{about['date']}, load {os.getloadavg()[0]:.1f}, {options.saves} saves")
    print(table(findings.figures))


if __name__ == "__main__":
    main()
