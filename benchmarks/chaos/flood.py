"""How much memory does a flood of file events take while the keeper of the index does nothing?

A real daemon on a workspace of some hundred files; then its IndexKeeper is stopped (SIGSTOP), and
the files are written again and again, 100,000 times in all. After that the keeper goes on::

    python benchmarks/chaos/flood.py [--events N] [--files N]

Prints by how much the memory of the daemon's processes together grew (proportional set size, looked
at ten times a second) while the keeper stood still and while the rest was made up for, and what
``memory check --rebuild-compare`` finds. Exits with 1 if it grew by 100 MB or more, or anything
differs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from actor_kills import Checker
from daemon_home import DaemonHome

from memory.config import load

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_GROWTH_MB = 100.0
LOOK_S = 0.1
SETTLED_S = 5.0
PATIENCE_S = 300.0


class Memory:
    """The proportional set size of some processes together, and the most it was."""

    def __init__(self, daemon: int) -> None:
        self._daemon = psutil.Process(daemon)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.most_mb = self.now_mb()
        self._thread.start()

    def now_mb(self) -> float:
        return sum(map(_pss, self._processes())) / 1e6

    def forget(self) -> float:
        """Begins anew; returns the most so far."""
        most_mb, self.most_mb = self.most_mb, self.now_mb()
        return most_mb

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.most_mb = max(self.most_mb, self.now_mb())

    def _processes(self) -> Iterator[psutil.Process]:
        yield self._daemon
        yield from self._daemon.children(recursive=True)


def _pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def write_all(workspace: Path, num_files: int, number: int) -> None:
    for place in range(num_files):
        path = workspace / f"flood/{place % 10}/{place:03}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# File {place}\n\nWritten for the {number}th time, as file {place}.\n")


def flood(options: argparse.Namespace, folder: Path) -> int:
    home = DaemonHome.made(folder)
    write_all(home.workspace, options.files, 0)
    memory = None
    try:
        home.start()
        checker = Checker(home, load(home.config))
        checker.differences()
        time.sleep(SETTLED_S)
        assert home.daemon is not None
        memory = Memory(home.daemon.pid)
        before_mb, keeper = memory.now_mb(), home.pid_of("IndexKeeper")
        os.kill(keeper, signal.SIGSTOP)
        began = time.monotonic()
        rounds = -(-options.events // options.files)
        for number in range(1, rounds + 1):
            write_all(home.workspace, options.files, number)
        wrote_s = time.monotonic() - began
        time.sleep(SETTLED_S)
        standing_mb = memory.forget() - before_mb
        os.kill(keeper, signal.SIGCONT)
        began = time.monotonic()
        while home.ask("status")["pending"] and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.1)
        differences = checker.differences()
        caught_up_s = time.monotonic() - began
        after_mb = memory.forget() - before_mb
        home.stop()
    finally:
        if memory is not None:
            memory.end()
        home.kill()
    grew = max(standing_mb, after_mb) >= MOST_GROWTH_MB
    print(
        f"{rounds * options.files:,} writes of {options.files} files in {wrote_s:.0f} s; at"
        f" {before_mb:.0f} MB the processes grew by {standing_mb:.0f} MB while the keeper stood"
        f" still, by {after_mb:.0f} MB until all was made up for, {caught_up_s:.0f} s later;"
        f" differences {len(differences)}"
    )
    for difference in differences[:20]:
        print("WRONG", difference)
    return 1 if grew or differences else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        return flood(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
