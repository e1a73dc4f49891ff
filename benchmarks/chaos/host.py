"""Does a host outlive everything that happens to its memory, and is nothing left behind?

    python benchmarks/chaos/host.py --times 20 --kill gcs_server raylet driver

Each round kills one process of the child with -9, in turn, counts what is left of the child's
session after ten seconds, asks for a section meanwhile and waits until the memory is ready again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from actors.cluster import runtime_folder
from memory.daemon_client import running
from memory.plugin import create
from memory.processes import find, of_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory.plugin import DaemonPlugin

ORPHAN_S = 10.0
PATIENCE_S = 300.0
PROMPT = "who repairs bicycles"


class Lag:
    """How long the event loop was kept from a task that is always due.

    On a machine with more work than cores the time is mostly others'; the processor time of the
    loop's own thread is not.
    """

    STEP_S = 0.005

    def __init__(self) -> None:
        self.lags_s: list[float] = []
        self.most_cpu_s = 0.0
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            began, cpu_began = time.perf_counter(), time.thread_time()
            await asyncio.sleep(self.STEP_S)
            self.lags_s.append(time.perf_counter() - began - self.STEP_S)
            self.most_cpu_s = max(self.most_cpu_s, time.thread_time() - cpu_began)

    def stop(self) -> None:
        self._task.cancel()


async def until(condition: Callable[[], object]) -> float:
    """Returns after how many seconds a condition held."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE_S:
            raise SystemExit("not within the time allowed")
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def one_round(memory: DaemonPlugin, data: Path, kind: str) -> tuple[int, str]:
    """Returns how many processes were left, and a line about the round."""
    child = find(running(data).pid)
    members = of_session(child.pid, child.started)
    victim = child if kind == "driver" else next(one for one in members if one.name == kind)
    began = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    gone_s = 0.0
    while of_session(child.pid, child.started) and gone_s < ORPHAN_S:
        await asyncio.sleep(0.02)
        gone_s = time.monotonic() - began
    num_left = len(of_session(child.pid, child.started))
    asked = time.monotonic()
    section = await memory.context_provider(PROMPT)
    answered_s = time.monotonic() - asked
    where = "disk" if "wiki/alice.md" in section else "stub"
    await until(lambda: memory.is_ready() and running(data).pid != child.pid)
    return num_left, (
        f"{kind}: nothing left after {gone_s:.1f} s, section from {where} in {answered_s:.1f} s,"
        f" ready after {time.monotonic() - began:.1f} s"
    )


async def chaos(folder: Path, times: int, kinds: list[str]) -> None:
    workspace, data = folder / "notes", folder / "data"
    (workspace / "wiki").mkdir(parents=True)
    (workspace / "wiki/alice.md").write_text("# Alice\n\nAlice repairs bicycles.\n")
    memory = create(
        {"memory": {"embeddings": {"provider": "local"}}}, workspace=workspace, data=data
    )
    pid, lag, num_orphans = os.getpid(), Lag(), 0
    await memory.start()
    await until(memory.is_ready)
    for number in range(times):
        left, line = await one_round(memory, data, kinds[number % len(kinds)])
        num_orphans += left
        print(f"{number + 1:3d} {line}", flush=True)
    await memory.stop()
    lag.stop()
    lags_ms = sorted(1000 * value for value in lag.lags_s)
    logs = [path for path in runtime_folder(data).rglob("*") if path.is_file()]
    num_bytes = sum(path.lstat().st_size for path in logs if not path.is_symlink())
    shutil.rmtree(runtime_folder(data))
    same = times if os.getpid() == pid else 0
    print(f"host pid same in {same} of {times}, orphans {num_orphans}")
    print(f"Ray's folder holds {num_bytes / 1e6:.1f} MB after {times + 1} starts")
    own_ms = 1000 * lag.most_cpu_s
    print(
        f"event loop late by {statistics.median(lags_ms):.1f} ms (median),"
        f" {lags_ms[int(0.999 * len(lags_ms))]:.0f} ms (99.9 %), {lags_ms[-1]:.0f} ms (most),"
        f" {own_ms:.0f} ms of it at most our own;"
        f" load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--kill", nargs="+", default=["gcs_server", "raylet", "driver"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        asyncio.run(chaos(Path(folder), options.times, options.kill))


if __name__ == "__main__":
    main()
