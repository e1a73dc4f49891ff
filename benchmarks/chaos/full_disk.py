"""Does an index on a disk that is full lose anything, and does it go on once there is room?

On a file system of 1 MiB in memory an index changes, syncs and saves until nothing fits any more,
and on, and facts are saved; then room is made::

    python benchmarks/chaos/full_disk.py [--changes N]

Prints how often the disk refused and everything that was wrong: less on disk than was answered,
half a file, a fact that was refused and is there, an index that does not go on. Exits with 1 if
anything was, with 2 if it may not mount (that takes root).
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from memory.checks import dump
from memory.identity import Identity, read_embedding_json, write_embedding_json
from memory.outbox import OUTBOX_NAME, Outbox, SkillEvent, event_id
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put
from tests.unit.keeping import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.index import MemoryIndex

EMBEDDER = HashEmbedder()
IDENTITY = Identity.of(EMBEDDER.info)


def change(index: MemoryIndex, number: int) -> None:
    """Adds a file of a few hundred bytes."""
    texts = [f"Text {number} of {part}. " * 5 for part in range(3)]
    put(index, EMBEDDER, parsed(f"{number}.md", texts))


def fill(folder: Path, num_changes: int, seen: Counter[str]) -> Iterator[str]:
    """Changes, saves and makes room; yields what is wrong."""
    index, storage = opened(folder, EMBEDDER)
    storage.save(1.0)
    write_embedding_json(folder, IDENTITY)
    outbox, kept = Outbox(folder / OUTBOX_NAME), []
    killable = 0
    for number in range(1, num_changes + 1):
        with storage.changing:
            change(index, number)
        if storage.status().is_complete:
            killable = number
        elif not seen["refused changes"]:
            yield from looked_at(folder, killable, kept)
        seen["refused changes"] += not storage.status().is_complete
        fact = SkillEvent(event_id(f"{number}"), f"{number}", (), (), 1.0)
        try:
            outbox.add(fact)
            kept.append(fact)
        except OSError:
            seen["refused facts"] += 1
        if number % 10 == 0:
            try:
                killable = storage.save(1.0)
                seen["saves"] += 1
            except OSError:
                seen["refused saves"] += 1
        with contextlib.suppress(OSError):
            write_embedding_json(folder, IDENTITY)
    yield from looked_at(folder, killable, kept)
    mount(folder, "remount,size=64m")
    storage.save(2.0)
    with storage.changing:
        change(index, num_changes + 1)
    storage.sync()
    fact = SkillEvent(event_id("last"), "last", (), (), 1.0)
    outbox.add(fact)
    yield from looked_at(folder, num_changes + 1, [*kept, fact])


def looked_at(folder: Path, answered: int, kept: list[SkillEvent]) -> Iterator[str]:
    """Yields what somebody finds wrong who copies the folder now."""
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        copy = Path(scratch, "copy")
        shutil.copytree(folder, copy)
        if left := [path.name for path in copy.iterdir() if path.name.endswith(".tmp")]:
            yield f"left behind: {left}"
        if read_embedding_json(copy) is None:
            yield "embedding.json is gone"
        index, storage = opened(copy, EMBEDDER)
        storage.stop_logging()
        if index.revision < answered:
            yield f"revision {index.revision}, but {answered} was answered"
        expected = new_index(EMBEDDER)
        for number in range(1, index.revision + 1):
            change(expected, number)
        if dump(index) != dump(expected):
            yield f"revision {index.revision} does not hold what its changes left"
        if list(Outbox(copy / OUTBOX_NAME).pending) != kept:
            yield "the outbox holds other facts than were answered"


def mount(folder: Path, options: str) -> None:
    """Mounts a file system in memory, or changes it."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        try:
            mount(Path(scratch), "size=1m")
        except subprocess.CalledProcessError:
            print("a file system cannot be mounted here")
            return 2
        try:
            seen = Counter[str]()
            wrong = list(fill(Path(scratch), options.changes, seen))
        finally:
            subprocess.run(["umount", "-l", scratch], check=True)  # the journal is open
    for complaint in wrong:
        print(complaint, file=sys.stderr)
    print(", ".join(f"{count} {name}" for name, count in seen.items()) + f", {len(wrong)} wrong")
    return int(
        bool(wrong) or not all(seen[f"refused {what}"] for what in ("changes", "facts", "saves"))
    )


if __name__ == "__main__":
    sys.exit(main())
