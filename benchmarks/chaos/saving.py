"""Does anything that was answered get lost when the owner of an index is killed at random?

Again and again a process opens the index, changes it, syncs and saves as fast as it can, and is
killed with -9 at a random moment after the opening; then another one opens what is there, as the
next owner does::

    python benchmarks/chaos/saving.py [--kills N] [--seed N]

Prints the kills, what was under way then, and everything that was wrong; exits with 1 if anything
was. A kill takes half a second on an idle machine.

A kill leaves the system's page cache alone; the images of a power loss are enumerated in
``tests/unit/test_storage_crashes.py``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from memory.checks import dump
from memory.snapshot import SNAPSHOT_NAME
from tests.doubles import HashEmbedder
from tests.unit.building import new_index
from tests.unit.keeping import opened
from tests.unit.test_storage_kills import NUM_PATHS, change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EMBEDDER = HashEmbedder()
LONGEST_LIFE_S = 0.25
CHANGES_A_SYNC = 3
CHANGES_BETWEEN_SAVES = 20


def own(folder: Path, say: Callable[[str, int], None]) -> None:
    """Changes, syncs and saves until the process is killed, and says each step when it is done."""
    index, storage = opened(folder, EMBEDDER)
    if not storage.status().is_complete:
        storage.save(1.0)  # as the Persister does: a journal counts only beside a snapshot
    say("opened", index.revision)
    saving = threading.Thread()
    while True:
        with storage.changing:
            change(index, index.revision + 1)
        revision = index.revision
        say("changed", revision)
        if revision % CHANGES_A_SYNC == 0:
            say("syncing", revision)
            storage.sync()
            say("synced", revision)
        if revision % CHANGES_BETWEEN_SAVES == 0 and not saving.is_alive():
            say("saving", revision)
            saving = threading.Thread(target=lambda: say("saved", storage.save(1.0)))
            saving.start()


def complaints(folder: Path, answered: int) -> Iterator[str]:
    """Yields what the next owner finds wrong, after everything up to a revision was answered."""
    index, storage = opened(folder, EMBEDDER)
    storage.stop_logging()
    if index.revision < answered:
        yield f"revision {index.revision}, but {answered} was answered"
    expected = new_index(EMBEDDER)
    # The state of a file depends on the last change of each path, and on whether it was there.
    first = max(1, index.revision - 2 * NUM_PATHS + 1)
    for revision in range(first, index.revision + 1):
        change(expected, revision)
    if dump(index) != dump(expected):
        yield f"revision {index.revision} does not hold what its changes left"
    if [each.name for each in folder.glob("*.bad-*")]:
        yield "something was set aside as unreadable"
    if index.revision and not (folder / SNAPSHOT_NAME).exists():
        yield "the snapshot is gone"


def in_a_child(work: Callable[[Callable[[str, int], None]], None]) -> tuple[int, int]:
    """Starts a process that shares nothing but a pipe; returns its pid and the end to read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        work(lambda word, number: _write(writing, word, number))
        status = 0
    finally:
        os._exit(status)


def _write(descriptor: int, word: str, number: int) -> None:
    os.write(descriptor, f"{word} {number}\n".encode())  # whole: shorter than a pipe's buffer


def said(descriptor: int, start: bytes = b"") -> list[tuple[str, int]]:
    """Returns everything a process that is gone has said; half a line does not count."""
    with os.fdopen(descriptor) as lines:
        words = [line.split() for line in (start.decode() + lines.read()).split("\n")[:-1]]
    return [(word, int(number)) for word, number in words]


def one_kill(folder: Path, chance: random.Random) -> Counter[str]:
    """Kills an owner at a random moment and lets the next one look; returns what to count."""
    pid, pipe = in_a_child(lambda say: own(folder, say))
    start = os.read(pipe, len("opened"))  # it says when it is open
    time.sleep(chance.uniform(0, LONGEST_LIFE_S))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    life = said(pipe, start)
    words = [word for word, _ in life]
    is_saving = words.count("saving") > words.count("saved")
    is_syncing = words.count("syncing") > words.count("synced")
    answered = max(number for word, number in life if word not in {"saving", "syncing"})

    def look(say: Callable[[str, int], None]) -> None:
        for complaint in complaints(folder, answered):
            print(complaint, file=sys.stderr)
            say("wrong", 1)

    checker, answers = in_a_child(look)
    wrong = said(answers)
    is_unwell = os.waitpid(checker, 0)[1] != 0
    return Counter(
        {
            "changes": words.count("changed"),
            "syncs": words.count("synced"),
            "saves": words.count("saved"),
            "kills amid a save": int(is_saving),
            "kills amid a sync": int(is_syncing),
            "kills amid neither": int(not is_saving and not is_syncing),
            "wrong": len(wrong) + is_unwell,
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, total = random.Random(options.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        for _ in range(options.kills):
            total += one_kill(Path(scratch), chance)
    print(f"{options.kills} kills, " + ", ".join(f"{n:,} {what}" for what, n in total.items()))
    print(f"{total['wrong']} wrong")
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
