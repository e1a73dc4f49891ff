"""Does a start claim memory for a file that is none of ours, whatever name it has?"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from memory.access_token import TOKEN_NAME, access_token
from memory.daemon_client import ADDRESS_NAME, running
from memory.errors import ConfigError
from memory.identity import EMBEDDING_JSON
from memory.journal import JOURNAL_NAME
from memory.outbox import OUTBOX_NAME, Outbox
from memory.snapshot import SNAPSHOT_NAME
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, put
from tests.unit.keeping import opened
from tests.unit.successions import Memory

SPARSE_BYTES = 256 * 1024 * 1024
SNAPSHOT_START = b"\x89MSP\r\n\x1a\n"
FOREIGN = {
    # First bytes, length of the file.
    "empty": (b"", 0),
    "garbage": (bytes(range(256)) * 4_096, 1 << 20),
    "zeros": (b"", SPARSE_BYTES),
    "an image": (b"\x89PNG\r\n\x1a\n", SPARSE_BYTES),
    "a snapshot of nothing": (SNAPSHOT_START + b"\3\0\0\0", SPARSE_BYTES),
    "a later snapshot": (SNAPSHOT_START + b"\4\0\0\0", SPARSE_BYTES),
    "a later journal": (b"\x89MWL\r\n\x1a\n\2\0\0\0", SPARSE_BYTES),
    "a bomb of arrays": (b"\xdd\xff\xff\xff\xff" * 200_000, 1_000_000),
    "deep arrays": (b"\x91" * 1_000_000, 1_000_000),
    "deep json": (b"[" * 10_000_000, 10_000_000),
    "a bomb of json": (b'{"event": {"prompt": "' + b"x" * 1_000_000, SPARSE_BYTES),
    "lines": (b"# Notes\n" * 20_000, 160_000),
}
NAMES = (
    SNAPSHOT_NAME,
    JOURNAL_NAME,
    f"next/{SNAPSHOT_NAME}",
    f"next/{JOURNAL_NAME}",
    f"previous/{SNAPSHOT_NAME}",
    OUTBOX_NAME,
    EMBEDDING_JSON,
    ADDRESS_NAME,
    TOKEN_NAME,
)
MOST_GROWTH_MB = 50
CODE = """
import sys
from pathlib import Path
from tests.unit.test_foreign_files import measure
measure(Path(sys.argv[1]), sys.argv[2])
"""


def start(folder: Path) -> set[str]:
    """Reads everything that a start reads; returns the files of the index that answers."""
    memory = Memory(folder, HashEmbedder())
    paths = memory.indexes.answering.paths()
    memory.kill()
    Outbox(folder / OUTBOX_NAME)
    running(folder)
    with suppress(ConfigError):
        access_token(folder)
    return paths


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(home: Path, name: str) -> None:
    """Prints what a process finds of an index in whose folder one file is foreign, and its peak."""
    start(home)
    before = resident_mb()
    for kind, (content, num_bytes) in FOREIGN.items():
        folder = home / kind
        index, storage = opened(folder, HashEmbedder())
        put(index, HashEmbedder(), parsed("a.md", ["One."]))
        storage.save(1.0)
        storage.stop_logging()
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        os.truncate(folder / name, num_bytes)
        (folder / name).chmod(0o600)
        found = sorted(start(folder))
        sys.stdout.write(json.dumps([kind, found, resident_mb() - before]) + "\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak has another unit")
@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_file_of_any_name_costs_what_it_is_of_and_no_memory(tmp_path, name):
    """FAULTS 10: twelve files, each in the place of each of ours."""
    for kind in FOREIGN:
        (tmp_path / kind).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path), name],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert [kind for kind, *_ in lines] == list(FOREIGN)
    for _kind, paths, growth_mb in lines:
        assert paths == ([] if name == SNAPSHOT_NAME else ["a.md"])
        assert growth_mb < MOST_GROWTH_MB
