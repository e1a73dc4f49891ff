"""Whatever stands where the private folder belongs, a person is told in one line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from actors import event_emitter, index_keeper
from actors.cluster import runtime_folder
from memory import private_folder
from memory.config import Settings
from memory.data_lock import data_lock
from memory.errors import StoreError
from memory.outbox import OUTBOX_NAME
from memory.snapshot import SNAPSHOT_NAME
from tests.doubles import HashEmbedder

UNREADABLE = Path("/proc/self/mem")
"""A regular file that everybody may open; the first byte is an error of the system."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch) -> Path:
    """The path of the private folder of ``tmp_path / "data"``, in a temporary folder of its own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(private_folder, "MAX_FOLDER_BYTES", 1_000)
    place = runtime_folder(tmp_path / "data")
    place.rmdir()
    return place


def test_the_folder_is_made_once_and_open_to_its_owner_only(tmp_path: Path, place: Path):
    for _start in range(2):
        assert runtime_folder(tmp_path / "data") == place
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        place.chmod(0o755)


@pytest.mark.parametrize("kind", ["file", "dangling link", "link to a folder", "pipe"])
def test_something_foreign_in_its_place_is_named_and_left_alone(
    tmp_path: Path, place: Path, kind: str
):
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    match kind:
        case "file":
            place.write_text("mine")
        case "dangling link":
            place.symlink_to("nowhere")
        case "link to a folder":
            place.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            os.mkfifo(place)
    before = place.lstat()

    with pytest.raises(StoreError) as caught:
        runtime_folder(tmp_path / "data")

    said = str(caught.value)
    assert said.startswith(f"{place} is not a folder of yours")
    assert "remove it" in said
    assert "TMPDIR" in said
    assert place.lstat() == before
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o755


def test_a_folder_of_somebody_else_is_named(tmp_path: Path, place: Path, monkeypatch):
    place.mkdir()
    owner = place.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    foreign = place.with_name(place.name.replace(f"-{owner}-", f"-{owner + 1}-"))
    place.rename(foreign)

    with pytest.raises(StoreError, match="is not a folder of yours"):
        runtime_folder(tmp_path / "data")


def test_a_temporary_folder_that_is_gone_is_named(tmp_path: Path, place: Path):
    (tmp_path / "tmp").rmdir()

    with pytest.raises(StoreError, match=r"cannot be made: No such file .*; set TMPDIR"):
        runtime_folder(tmp_path / "data")


def _ended(tmp_path: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    """Runs a daemon that is expected to give up at once."""
    (tmp_path / "config.yml").write_text("memory: {embeddings: {provider: local}}\n")
    places = {"config": "config.yml", "workspace": ".", "data": "data"}
    flags = [text for name, at in places.items() for text in (f"--{name}", str(tmp_path / at))]
    return subprocess.run(
        [sys.executable, "-m", "actors.daemon", *flags],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_a_daemon_whose_data_folder_cannot_be_made_ends_with_one_line(tmp_path: Path):
    (tmp_path / "data").write_text("not a folder")

    ended = _ended(tmp_path, tmp_path)

    assert ended.returncode == 1
    assert ended.stderr == f"memory: {tmp_path / 'data'}: File exists\n"


@pytest.mark.slow
def test_a_daemon_that_finds_a_foreign_file_ends_with_one_line(tmp_path: Path):
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as short:  # its path must be short
        name = f"memory-{os.getuid()}-{private_folder.data_key(tmp_path / 'data')}"
        foreign = Path(short, name)
        foreign.symlink_to("nowhere")

        ended = _ended(tmp_path, Path(short))

    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(f"memory: {foreign} is not a folder of yours")


@pytest.mark.slow
@pytest.mark.skipif(not UNREADABLE.exists(), reason="there is no file whose reading fails")
@pytest.mark.parametrize("name", [SNAPSHOT_NAME, OUTBOX_NAME])
def test_a_daemon_whose_file_cannot_be_read_now_ends_with_one_line(tmp_path: Path, name: str):
    """It may be whole, so it must neither be moved away nor embedded anew, or forgotten."""
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / name
    file.symlink_to(UNREADABLE)
    for left in (".embedding.json.0badf00d.tmp", ".daemon.json.0badf00d.tmp"):
        (file.parent / left).write_text("half")

    ended = _ended(tmp_path, tmp_path)

    assert not list(file.parent.glob("*.tmp"))
    assert ended.returncode == 1
    assert ended.stderr == f"memory: {file}: Input/output error\n"
    assert file.is_symlink()


@pytest.mark.slow
def test_a_second_daemon_ends_with_one_line_and_touches_nothing(tmp_path: Path):
    """FAULTS 14: before it starts a Ray."""
    with data_lock(tmp_path / "data"):
        before = [(path.name, path.stat().st_mtime_ns) for path in (tmp_path / "data").iterdir()]
        ended = _ended(tmp_path, tmp_path)
        after = [(path.name, path.stat().st_mtime_ns) for path in (tmp_path / "data").iterdir()]

    assert ended.returncode == 1
    assert ended.stderr.startswith("memory: ")
    assert f"is in use by process {os.getpid()}" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert after == before


ACTORS = {
    index_keeper: lambda data: index_keeper.IndexKeeper(
        Settings(), HashEmbedder().info, data, data
    ),
    event_emitter: lambda data: event_emitter.EventEmitter(data, None),
}


@pytest.mark.skipif(not UNREADABLE.exists(), reason="there is no file whose reading fails")
@pytest.mark.parametrize("module", ACTORS, ids=["keeper", "emitter"])
def test_an_actor_whose_file_cannot_be_read_now_starts_afresh(tmp_path: Path, monkeypatch, module):
    ended = []

    def end(name: str, error: BaseException) -> NoReturn:
        ended.append(f"{name}: {error}")
        raise SystemExit

    monkeypatch.setattr(module, "end_process", end)
    for name in (SNAPSHOT_NAME, OUTBOX_NAME):
        (tmp_path / name).symlink_to(UNREADABLE)

    with pytest.raises(SystemExit):
        ACTORS[module](tmp_path)
    assert len(ended) == 1
    assert "Input/output error" in ended[0]
