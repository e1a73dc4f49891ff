"""Is every file indexed although the kernel lost most of the events?

    python benchmarks/chaos/overflow.py [--files N] [--moved N] [--idle SECONDS]

The process that watches is stopped (SIGSTOP) while N files are made, so that the kernel's queue
overflows, and goes on afterwards. Then a folder of some of the files is renamed, and at last the
memory is idle. Prints how many files were told by events alone, after how many seconds all of them
were found and all of them were indexed, the texts that the rename cost and the files read while
idle. Exits with 1 if they were not found within a minute, if a file is missing or wrong, if the
rename cost an embedding, or if an idle memory read more files than are due once a day. The actors
run in one process; a hash stands for the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inline_system import InlineSystem
from watching import INFO, compare

from actors import watcher
from actors.observing import start_observing
from memory.config import EmbeddingsSettings, MemorySettings, Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from actors.observing import Observing, PathsListener

FILES_A_FOLDER = 100
REPORT_S = 0.1
FOUND_S = 60.0
"""Within which a rescan must follow lost events."""
PATIENCE_S = 60.0
"""Longest time without progress."""
BYTES_A_KIB = 1024


class Ears:
    """Notes each file that an event names, on its way to the Watcher."""

    def __init__(self) -> None:
        self.paths: set[str] = set()

    def start(
        self, root: Path, listener: PathsListener, on_overflow: Callable[[], None]
    ) -> Observing | None:
        def listen(paths: tuple[str, ...], is_directory: bool) -> None:  # noqa: FBT001 - as called
            if not is_directory:
                self.paths.update(paths)
            listener(paths, is_directory)

        return start_observing(root, listen, on_overflow)


async def follow(root: Path, data: Path, pipe: Connection) -> None:
    """Indexes, and reports again and again until it is asked to compare everything."""
    ears, num_reads = Ears(), 0
    watcher.start_observing = ears.start
    memory = MemorySettings(embeddings=EmbeddingsSettings(provider="local"))
    system = InlineSystem.start(root, data, Settings(memory=memory), INFO)
    chunker = system.shell
    read = chunker._workspace.read  # noqa: SLF001 - to count what nobody else counts

    def counted(raw_path: str) -> Any:
        nonlocal num_reads
        num_reads += 1
        return read(raw_path)

    chunker._workspace.read = counted  # type: ignore[method-assign] # noqa: SLF001 - as above
    while not pipe.poll():
        watched, chunked = await system.watcher.status(), await chunker.status()
        pipe.send(
            {
                "mode": watched.mode,
                "overflows": watched.num_overflows,
                "told": len(ears.paths),
                "comparisons": chunked.num_reconciles,
                "pending": chunked.num_pending,
                "files": (await system.keeper.status.remote()).num_files,
                "texts": system.model.num_texts,
                "reads": num_reads,
            }
        )
        await asyncio.sleep(REPORT_S)
    report = await asyncio.to_thread(compare, system, root)
    await system.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // BYTES_A_KIB
    pipe.send({"differences": len(report.differences), "files": report.num_files, "peak_mb": peak})


def run_follower(root: Path, data: Path, pipe: Connection) -> None:
    """The main function of the process that watches."""
    asyncio.run(follow(root, data, pipe))


class Follower:
    """That process, seen from the one that makes the files."""

    def __init__(self, root: Path, data: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=run_follower, args=(root, data, other))
        self._process.start()
        self.last: dict[str, Any] = {}

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> float:
        """Returns the seconds until a report fits; stops waiting once nothing changes any more."""
        began = changed = time.monotonic()
        while True:
            report = self._pipe.recv()
            if report != self.last:
                self.last, changed = report, time.monotonic()
            if condition(report):
                return time.monotonic() - began
            if time.monotonic() - changed > PATIENCE_S:
                raise SystemExit(f"no progress any more: {report}")

    def watch_for(self, seconds: float) -> None:
        """Reads reports for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.last = self._pipe.recv()

    def signal(self, number: signal.Signals) -> None:
        """Stops or continues the process."""
        if self._process.pid is not None:
            os.kill(self._process.pid, number)

    def finish(self) -> dict[str, Any]:
        """Returns the outcome of the comparison, and waits for the end of the process."""
        self._pipe.send("compare")
        report: dict[str, Any] = {}
        while "differences" not in report:
            report = self._pipe.recv()
        self._process.join()
        return report


def make_files(folders: list[Path], count: int) -> float:
    """Makes so many files, each with a text of its own; returns the seconds it took."""
    began = time.monotonic()
    for number in range(count):
        path = folders[number // FILES_A_FOLDER] / f"note-{number}.md"
        path.write_text(f"# Note {number}\n\nText of note {number}.\n")
    return time.monotonic() - began


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Returns the figures."""
    root, data = scratch / "workspace", scratch / "data"
    data.mkdir()
    moved = options.moved // FILES_A_FOLDER
    folders = [
        root / ("moved" if number < moved else "stays") / f"folder-{number}"
        for number in range(-(-options.files // FILES_A_FOLDER))
    ]
    for folder in folders:
        folder.mkdir(parents=True)
    follower = Follower(root, data)
    follower.until(lambda at: at["mode"] == "events" and at["comparisons"] > 1)
    follower.signal(signal.SIGSTOP)
    made_s = make_files(folders, options.files)
    follower.signal(signal.SIGCONT)
    found_s = follower.until(lambda at: at["files"] + at["pending"] >= options.files)
    complete_s = found_s + follower.until(
        lambda at: at["files"] == options.files and not at["pending"]
    )
    complete = follower.last
    follower.watch_for(2)
    (root / "moved").rename(root / "elsewhere")
    compared = follower.last["comparisons"]
    renamed_s = follower.until(
        lambda at: (
            at["comparisons"] > compared and at["files"] == options.files and not at["pending"]
        )
    )
    renamed = follower.last
    follower.watch_for(2)
    before = follower.last
    follower.watch_for(options.idle)
    idle = follower.last
    return {
        "made_per_s": round(options.files / made_s),
        "told_by_events": complete["told"],
        "lost": options.files - complete["told"],
        "overflows": complete["overflows"],
        "found_after_s": round(found_s, 1),
        "complete_after_s": round(complete_s, 1),
        "files_per_s": round(options.files / complete_s),
        "texts": complete["texts"],
        "renamed_files": moved * FILES_A_FOLDER,
        "renamed_after_s": round(renamed_s, 1),
        "texts_for_the_rename": renamed["texts"] - complete["texts"],
        "idle_s": options.idle,
        "comparisons_while_idle": idle["comparisons"] - before["comparisons"],
        "reads_while_idle": idle["reads"] - before["reads"],
        **follower.finish(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=60_000)
    parser.add_argument("--moved", type=int, default=10_000, help="files below the renamed folder")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        found = run(options, Path(scratch))
    print(json.dumps(found, indent=2))
    wrong = {
        "s too late": max(0, round(found["found_after_s"] - FOUND_S)),
        "files missing": options.files - found["files"],
        "differences": found["differences"],
        "texts embedded for a rename": found["texts_for_the_rename"],
        # Each file is read once a day.
        "reads while idle": max(
            0, found["reads_while_idle"] - round(options.files * (options.idle + 60) / 86_400) - 1
        ),
    }
    print(", ".join(f"{number:,} {what}" for what, number in wrong.items()))
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
