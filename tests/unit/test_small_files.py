"""Is every small file beside the index whole after any crash, and harmless whatever it holds?"""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import pytest

from memory import template
from memory.access_token import TOKEN_NAME, access_token
from memory.atomic_file import OsDisk, sweep_temporaries
from memory.daemon_client import ADDRESS_NAME, running
from memory.errors import ConfigError
from memory.identity import EMBEDDING_JSON, Identity, read_embedding_json, write_embedding_json
from tests.doubles import HashEmbedder
from tests.unit import crash_disk
from tests.unit.building import parsed, put
from tests.unit.crash_disk import CrashDisk, Killed, crash_images
from tests.unit.keeping import opened

EMBEDDER = HashEmbedder()
OLD = Identity.of(EMBEDDER.info)
NEW = replace(OLD, model="another")
WRITERS = {
    EMBEDDING_JSON: lambda folder, disk: write_embedding_json(folder, NEW, disk=disk),
    TOKEN_NAME: lambda folder, disk: access_token(folder, disk=disk),
}


def is_whole(folder, name):
    """Tells whether a file is the one before, which a token has none of, or the one after."""
    if name == TOKEN_NAME:
        path = folder / name
        return not path.exists() or len(path.read_text("ascii").strip()) == 43
    return read_embedding_json(folder).model in {OLD.model, NEW.model}


@pytest.fixture
def homes(tmp_path):
    """Makes folders, each with the ``embedding.json`` that is there before."""

    def home(name):
        folder = tmp_path / f"{name}"
        folder.mkdir()
        write_embedding_json(folder, OLD)
        return folder

    return home


@pytest.mark.parametrize("name", WRITERS)
def test_a_kill_at_any_operation_leaves_a_whole_file(homes, name):
    """FAULTS 2 and 7."""
    for killed_at in range(100):
        home = homes(killed_at)
        disk = CrashDisk(home, killed_at=killed_at)
        try:
            WRITERS[name](home, disk)
            break
        except Killed:
            disk.reap()

        assert is_whole(home, name)
        sweep_temporaries(home, name)
        WRITERS[name](home, OsDisk())
        assert is_whole(home, name)
        assert {each.name for each in home.iterdir()} <= {name, EMBEDDING_JSON}

    assert killed_at > 5


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
def test_a_failure_of_any_operation_leaves_a_whole_file_and_nothing_else(homes, name, error):
    """FAULTS 4 to 6."""
    num_refused = 0
    for failing in range(100):
        home = homes(failing)
        disk = CrashDisk(home, failing={failing}, error=error)
        try:
            WRITERS[name](home, disk)
        except OSError:
            num_refused += 1
        if disk.num_calls <= failing:
            break

        assert is_whole(home, name)
        # What could not be removed waits for the next start.
        sweep_temporaries(home, name)
        assert {each.name for each in home.iterdir()} <= {name, EMBEDDING_JSON}
        WRITERS[name](home, OsDisk())
        assert is_whole(home, name)

    assert num_refused > 4


@pytest.mark.parametrize("name", WRITERS)
def test_a_power_loss_at_any_operation_leaves_a_whole_file(homes, tmp_path, name):
    """FAULTS 3."""
    home = homes("home")
    disk = CrashDisk(home)
    WRITERS[name](home, disk)
    disk.reap()
    for number, image in enumerate(crash_images(disk)):
        folder = tmp_path / f"image-{number}"
        folder.mkdir()
        crash_disk.put(folder, image)

        assert is_whole(folder, name)
    assert number > 10


def test_whatever_embedding_json_holds_the_index_stays_and_a_trial_call_is_all_it_costs(tmp_path):
    """FAULTS 8 and 9: each flipped byte, each length."""
    index, storage = opened(tmp_path, EMBEDDER)
    put(index, EMBEDDER, parsed("a.md", ["One."]))
    storage.save(1.0)
    storage.stop_logging()
    write_embedding_json(tmp_path, OLD)
    path = tmp_path / EMBEDDING_JSON
    data, before = path.read_bytes(), len(EMBEDDER.texts)
    damaged = [data[:length] for length in range(len(data))]
    for position, byte in enumerate(data):
        flipped = bytes([byte ^ 1 << position % 8])
        damaged.append(data[:position] + flipped + data[position + 1 :])
    for content in damaged:
        path.write_bytes(content)
        recorded = read_embedding_json(tmp_path)
        again, storage = opened(tmp_path, EMBEDDER)
        storage.stop_logging()

        assert again.paths() == {"a.md"}
        assert recorded is None or isinstance(recorded.dimension, int)
    assert len(EMBEDDER.texts) == before


FORGED = {
    "empty": b"",
    "garbage": os.urandom(100_000),
    "zeros": bytes(100_000),
    "deep": b"[" * 10_000_000,
    "deep maps": b'{"pid":' * 1_000_000,
    "a list": b"[1, 2]",
    "another kind": b'{"pid": [], "socket": {}, "provider": 1, "model": 2, "dimension": []}',
    "a huge number": b'{"pid": 1' + b"0" * 4_000 + b', "socket": "x"}',
    "no process": b'{"pid": -1, "socket": "x"}',
    "a later version": b'{"version": 9}',
    "a bomb": b'{"provider": "' + b"x" * 100_000_000 + b'"}',
    "not utf-8": b'{"pid": 1, "socket": "\xff\xfe"}',
}


@pytest.mark.slow
@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_what_is_no_such_file_counts_as_missing_and_claims_no_memory(tmp_path, content):
    """FAULTS 10."""
    for name in (EMBEDDING_JSON, ADDRESS_NAME, TOKEN_NAME):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    tracemalloc.start()
    try:
        assert read_embedding_json(tmp_path) is None
        assert running(tmp_path) is None
        with suppress(ConfigError):
            assert 20 <= len(access_token(tmp_path)) <= 4_096
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 10_000_000


@pytest.mark.parametrize("name", [EMBEDDING_JSON, ADDRESS_NAME])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_what_can_never_be_read_counts_as_missing_at_once(tmp_path, name, make):
    make(tmp_path / name)

    assert read_embedding_json(tmp_path) is None
    assert running(tmp_path) is None


def test_a_flipped_byte_of_the_address_at_most_hides_the_daemon(tmp_path):
    """FAULTS 8."""
    data = json.dumps({"pid": os.getpid(), "socket": "/tmp/x/control.sock"}).encode()
    for position, byte in enumerate(data):
        for bit in range(8):
            flipped = bytes([byte ^ 1 << bit])
            content = data[:position] + flipped + data[position + 1 :]
            (tmp_path / ADDRESS_NAME).write_bytes(content)
            address = running(tmp_path)

            assert address is None or address.pid > 0


def test_a_kill_while_the_template_is_copied_leaves_no_half_file(tmp_path, monkeypatch):
    """It would be taken for somebody's own ever after."""
    wanted = {
        path.relative_to(template._template_folder()): path.read_bytes()
        for path in template._template_folder().rglob("*.md")
    }
    for killed_at in range(100):
        root = tmp_path / f"{killed_at}"
        root.mkdir()
        disk = CrashDisk(root, killed_at=killed_at)
        with monkeypatch.context() as patch:
            patch.setattr("memory.atomic_file.OsDisk", lambda disk=disk: disk)
            try:
                template.write_workspace(root)
                break
            except Killed:
                disk.reap()

        left = {path.relative_to(root): path.read_bytes() for path in root.rglob("*.md")}
        assert left.items() <= wanted.items()
        template.write_workspace(root)
        for path, content in wanted.items():
            assert (root / path).read_bytes() == content

    assert killed_at > 10
