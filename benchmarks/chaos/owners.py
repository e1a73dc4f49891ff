"""Does ever more than one process write a data folder, while many want to?

Processes try again and again to own one folder; who does changes the index and saves it, who is
refused reads it. Some owners are killed with -9::

    python benchmarks/chaos/owners.py [--processes N] [--seconds N]

Prints who owned it how often, and everything that was wrong: two owners at a time, a reader without
an answer, a change that the next owner does not find. Exits with 1 if anything was.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from memory import disk
from memory.data_lock import data_lock
from memory.errors import LockHeld, MemoryPluginError
from tests.doubles import HashEmbedder
from tests.unit.keeping import opened
from tests.unit.test_storage_kills import change

EMBEDDER = HashEmbedder()
CHANGES = 3
KILLED_SHARE = 0.1
LONGEST_PAUSE_S = 0.01


def compete(folder: Path, log: int, end: float, chance: random.Random) -> None:
    """Owns, or reads, until the time is over or it kills itself."""
    while time.monotonic() < end:
        try:
            with data_lock(folder):
                own(folder, log, chance)
        except LockHeld:
            read(folder, log)
        time.sleep(chance.uniform(0, LONGEST_PAUSE_S))


def own(folder: Path, log: int, chance: random.Random) -> None:
    """Changes and saves; says how far the index was before and is now."""
    index, storage = opened(folder, EMBEDDER)
    say(log, "own", index.revision)
    for _ in range(CHANGES):
        with storage.changing:
            change(index, index.revision + 1)
    storage.save(1.0)
    say(log, "end", index.revision)
    if chance.random() < KILLED_SHARE:
        os.kill(os.getpid(), signal.SIGKILL)
    storage.stop_logging()


def read(folder: Path, log: int) -> None:
    """Reads the index without owning it."""
    try:
        disk.list_files(folder)
        say(log, "read", 0)
    except (MemoryPluginError, OSError) as error:
        print(f"a reader: {error}", file=sys.stderr)
        say(log, "unread", 0)


def say(log: int, word: str, number: int) -> None:
    """Adds a line to what all have said; the file keeps their order."""
    os.write(log, f"{word} {number} {os.getpid()}\n".encode())


def judged(lines: list[str]) -> Counter[str]:
    """Counts, and finds what is wrong with the order of what was said."""
    seen, owner, revision = Counter[str](), "", 0
    for line in lines:
        word, number, process = line.split()
        seen[word] += 1
        if word == "own":
            seen["wrong"] += bool(owner) or int(number) != revision
            owner = process
        elif word == "end":
            seen["wrong"] += owner != process
            owner, revision = "", int(number)
        seen["wrong"] += word == "unread"
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        folder, end = Path(scratch, "data"), time.monotonic() + options.seconds
        folder.mkdir()
        opened(folder, EMBEDDER)[1].save(1.0)
        log = os.open(Path(scratch, "log"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        num_started, running, ended = 0, set[int](), Counter[int]()
        while running or time.monotonic() < end:
            while len(running) < options.processes and time.monotonic() < end:
                num_started += 1
                pid = os.fork()
                if not pid:
                    try:
                        compete(folder, log, end, random.Random(num_started))
                        os._exit(0)
                    finally:
                        os._exit(1)
                running.add(pid)
            pid, status = os.wait()
            running.remove(pid)
            ended[status] += 1
        seen = judged(Path(scratch, "log").read_text().splitlines())
    seen["wrong"] += num_started - ended[0] - ended[signal.SIGKILL]
    print(
        f"{seen['end']} owners, one after the other, {ended[signal.SIGKILL]} of them killed; "
        f"{seen['read']:,} reads of the refused; {seen['wrong']} wrong"
    )
    return int(seen["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
