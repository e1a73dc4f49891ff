"""Is every answer from the disk of one moment while the index is saved all the time?

A process changes an index and saves it after each change, without a pause. Meanwhile this one asks
as the command line does without a daemon (``list``, ``show``, ``search`` in turn, through
``memory.disk``), and some times as a command of its own::

    python benchmarks/chaos/reading.py [--reads N] [--commands N]

Every answer must be that of one revision between the one on disk before it and the one after it.
Prints the reads, what was saved meanwhile and everything that was wrong; exits with 1 if anything
was.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory import disk
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.errors import MemoryPluginError, WorkspaceError
from memory.messages import Query
from memory.payloads import list_payload
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put, remove
from tests.unit.keeping import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memory.index import MemoryIndex

EMBEDDER = HashEmbedder()
SETTINGS = Settings(memory=MemorySettings(embeddings=EmbeddingsSettings(provider="local")))
NUM_PATHS = 9
SECOND_NS = 1_000_000_000
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris"]
"""One for each file, so that a search finds that file alone."""


def change(index: MemoryIndex, revision: int) -> None:
    """Makes the change that leads to a revision."""
    path = f"{revision % NUM_PATHS}.md"
    if revision % 5 == 0 and index.chunks(path):
        remove(index, path)
    else:
        word = WORDS[revision % NUM_PATHS]
        texts = [f"{word} {revision} part {number}" for number in range(1 + revision % 4)]
        put(index, EMBEDDER, parsed(path, texts, mtime_ns=revision * SECOND_NS))


def own(folder: Path) -> None:
    """Changes and saves until the process is killed."""
    index, storage = opened(folder, EMBEDDER)
    while True:
        with storage.changing:
            change(index, index.revision + 1)
        storage.save(time.time())


class History:
    """What each revision holds, made again beside the owner."""

    def __init__(self) -> None:
        self._index = new_index(EMBEDDER)
        self._lists: list[Any] = []
        self._contents: list[dict[str, list[str]]] = []
        self._note()

    def _note(self) -> None:
        files = self._index.files()
        self._lists.append(list_payload(files))
        found = {file.path: self._index.chunks(file.path) for file in files}
        self._contents.append(
            {path: [chunk.content for chunk in each[1]] for path, each in found.items() if each}
        )

    def of(self, first: int, last: int) -> Iterator[tuple[Any, dict[str, list[str]]]]:
        """Yields list and contents of each revision of a range, both ends included."""
        while len(self._lists) <= last:
            change(self._index, self._index.revision + 1)
            self._note()
        yield from zip(self._lists[first : last + 1], self._contents[first : last + 1], strict=True)


def listed(folder: Path, _number: int) -> Callable[[Any, dict[str, list[str]]], bool]:
    answer = disk.list_files(folder)
    return lambda files, _contents: answer == files


def shown(folder: Path, number: int) -> Callable[[Any, dict[str, list[str]]], bool]:
    path = f"{number % NUM_PATHS}.md"
    try:
        answer = [chunk["content"] for chunk in disk.show(folder, path)["chunks"]]
    except WorkspaceError:
        return lambda _files, contents: path not in contents
    return lambda _files, contents: contents.get(path) == answer


def searched(folder: Path, number: int) -> Callable[[Any, dict[str, list[str]]], bool]:
    path, word = f"{number % NUM_PATHS}.md", WORDS[number % NUM_PATHS]
    answer = disk.search(folder, SETTINGS, Query(word, 50), workspace=folder, now_s=time.time())
    found = {(hit["path"], hit["snippet"].replace("*", "")) for hit in answer["hits"]}
    return lambda _files, contents: (
        {each for each, _ in found} == {path} & contents.keys()
        and all(any(text in snippet for text in contents[each]) for each, snippet in found)
    )


def commanded(folder: Path, _number: int) -> Callable[[Any, dict[str, list[str]]], bool]:
    command = [sys.executable, "-m", "memory", "list", "--json", "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MemoryPluginError(done.stderr.strip())
    answer = json.loads(done.stdout)
    return lambda files, _contents: answer == files


READS = {"list": listed, "show": shown, "search": searched}


def revision_of(folder: Path) -> int:
    """Returns which revision is on disk now."""
    return disk.status(folder, 0.0)["generation"]


def is_whole(
    folder: Path,
    history: History,
    read: Callable[[Path, int], Callable[[Any, dict[str, list[str]]], bool]],
    number: int,
) -> str:
    """Reads once; returns what is wrong."""
    before = revision_of(folder)
    try:
        fits = read(folder, number)
    except (MemoryPluginError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    after = revision_of(folder)
    if any(fits(files, contents) for files, contents in history.of(before, after)):
        return ""
    return f"of no revision from {before} to {after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reads", type=int, default=1_000)
    parser.add_argument("--commands", type=int, default=20)
    options = parser.parse_args()
    kinds = list(READS.items())
    plan = [kinds[number % len(kinds)] for number in range(options.reads)]
    plan += [("command", commanded)] * options.commands
    history, done, num_wrong = History(), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        folder = Path(scratch)
        opened(folder, EMBEDDER)[1].save(time.time())
        if not (owner := os.fork()):
            try:
                own(folder)
            finally:
                os._exit(1)
        try:
            for number, (name, read) in enumerate(plan):
                if wrong := is_whole(folder, history, read, number):
                    print(f"{name}: {wrong}", file=sys.stderr)
                    num_wrong += 1
                done[name] += 1
            num_saves = revision_of(folder)
        finally:
            os.kill(owner, signal.SIGKILL)
            os.waitpid(owner, 0)
    print(", ".join(f"{count:,} {name}" for name, count in done.items()))
    print(f"{num_saves:,} saves meanwhile, {num_wrong} wrong")
    return int(num_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
