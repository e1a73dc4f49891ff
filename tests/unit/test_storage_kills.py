"""Is what a killed owner had answered there for the next one?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memory.checks import dump
from memory.reader import SnapshotReader
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put, remove
from tests.unit.keeping import opened

EMBEDDER = HashEmbedder()
NUM_PATHS = 7

CHILD = """
import os, sys, threading
from pathlib import Path
from tests.unit.keeping import opened
from tests.unit.test_storage_kills import EMBEDDER, change

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + bytes([10]))  # whole, from any thread

index, storage = opened(Path(sys.argv[1]), EMBEDDER)
say("opened", index.revision)
saving = None
while True:
    for _ in range(3):
        with storage.changing:
            change(index, index.revision + 1)
        say("changed", index.revision)
    revision = index.revision
    storage.sync()
    if storage.status().is_complete:
        say("synced", revision)
    if saving is None or not saving.is_alive():
        def save():
            say("saving", index.revision)
            say("saved", storage.save(1.0))
        saving = threading.Thread(target=save)
        saving.start()
"""


def change(index, revision):
    """Makes the change that leads to a revision; the same one in every life."""
    path = f"{revision % NUM_PATHS}.md"
    if revision % 5 == 0 and index.chunks(path):
        remove(index, path)
    else:
        texts = [f"Text {revision * number}." for number in range(1, 2 + revision % 4)]
        put(index, EMBEDDER, parsed(path, texts, mtime_ns=revision))


def at(index, revision):
    """Brings an index that nobody saves to a revision, and returns it."""
    while index.revision < revision:
        change(index, index.revision + 1)
    return index


def lines_until(child, word, count):
    """Yields what a child says until it has said a word so often; then it is killed.

    What it could still say before the kill counts; half a line does not.
    """
    for line in child.stdout:
        yield line.split()
        count -= line.startswith(word)
        if not count:
            break
    child.kill()
    yield from (line.split() for line in child.stdout.read().split("\n")[:-1])


@pytest.mark.slow
def test_nothing_that_was_answered_is_lost_by_kills(tmp_path):
    """FAULTS 1 and 2: amid changes, syncs and saves; somebody else reads meanwhile."""
    expected, revision, num_saves = new_index(EMBEDDER), 0, 0
    root = str(Path(__file__).parents[2])
    moments = [("saved", 1), ("saving", 2), ("changed", 25), ("saving", 9), ("synced", 12)]
    for word, count in moments:
        command = [sys.executable, "-c", CHILD, str(tmp_path)]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
            said = [(each, int(number)) for each, number in lines_until(child, word, count)]
        assert said[0] == ("opened", revision)
        num_saves += sum(each == "saved" for each, _ in said)
        # The system is still there, so a change survives without having been synced.
        answered = max(number for each, number in said if each != "saving")

        with SnapshotReader(tmp_path) as reader:
            listed, read = reader.files(), reader.header.info.revision
        index, storage = opened(tmp_path, EMBEDDER)
        storage.stop_logging()
        assert index.revision >= answered >= read
        revision = index.revision
        at(expected, revision)
        assert listed == index.files() == expected.files()
        assert dump(index) == dump(expected)

    assert num_saves >= 5
    assert revision > 50
