"""Is anything opened outside of the workspace, whoever asks and whatever happens meanwhile?

FAULTS 31 and 86, invariant I6. Every open of this process is looked at.
"""

from __future__ import annotations

import os
import sys
import threading

import pytest

from memory.agent_run.files import RunFiles, ToolError
from memory.config import MemorySettings
from memory.errors import WorkspaceError
from memory.excerpts import read_excerpt
from memory.globs import Globs
from memory.workspace import SourceFile, Workspace

SETTINGS = MemorySettings()
HOSTILE = [
    *("../secret.md", "wiki/../../secret.md", "/etc/passwd", "/etc/passwd.md", "//etc/x.md"),
    *("~/secret.md", "~root/x.md", "%2e%2e/secret.md", "..%2fsecret.md", "file:///etc/x.md"),
    *("wiki/link.md", "out/secret.md", "wiki/out/secret.md", "loop/loop/../secret.md", "..\\x.md"),
    *("wiki/a.md/../../../secret.md", "./../secret.md", "wiki/.././../secret.md", "\0/secret.md"),
    *("wiki/\u2025/secret.md", "wiki/\uff0e\uff0e/secret.md", "..", "../", "/", "out", "out/"),
    *("/proc/self/environ", "/proc/self/root/etc/x.md", "/dev/stdin", "wiki/dangling.md"),
]
recorder = {"on": False, "opened": []}


def record_open(event, args):
    if recorder["on"] and event == "open":
        recorder["opened"].append((os.fsdecode(args[0]), args[2]))


# An audit hook stays for the life of the process.
sys.addaudithook(record_open)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "workspace"
    (root / "wiki").mkdir(parents=True)
    (root / "wiki" / "a.md").write_text("inside")
    (tmp_path / "outside").mkdir()
    for secret in (tmp_path / "secret.md", tmp_path / "outside" / "secret.md"):
        secret.write_text("secret")
    (tmp_path / "outside" / "a.md").write_text("secret, and longer")
    (root / "wiki" / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "wiki" / "dangling.md").symlink_to(tmp_path / "new.md")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "wiki" / "out").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(".")
    return root


def run_files(root):
    return RunFiles(root, writable=Globs(["*"]), exclude=Globs(), max_file_bytes=1000)


CALLS = {
    "memory_get": lambda root, path: read_excerpt(root, SETTINGS, path)["text"],
    "fs_read": lambda root, path: run_files(root).read(path, 1, 9),
    "fs_list": lambda root, path: run_files(root).listing(path),
    "fs_write": lambda root, path: run_files(root).write(path, "evil"),
}


@pytest.mark.parametrize("call", CALLS)
def test_no_hostile_path_opens_anything_outside(root, call):
    """Each open is that of the root, or of one name in a folder that is open, following no link."""
    before = sorted(root.parent.rglob("*"))
    recorder.update(on=True, opened=[])
    answers = []
    try:
        for path in HOSTILE:
            try:
                answers.append(CALLS[call](root, path))
            except (WorkspaceError, ToolError) as error:
                answers.append(str(error))
    finally:
        recorder["on"] = False

    outside = [
        path
        for path, flags in recorder["opened"]
        if path != str(root) and ("/" in path or path in {".", ".."} or not flags & os.O_NOFOLLOW)
    ]
    assert len(HOSTILE) >= 20
    assert not outside
    assert not [answer for answer in answers if "secret" in answer and "secret.md" not in answer]
    if call != "fs_write":
        assert sorted(root.parent.rglob("*")) == before
    assert (root.parent / "secret.md").read_text() == "secret"
    assert sorted(os.listdir(root.parent / "outside")) == ["a.md", "secret.md"]  # noqa: PTH208
    assert not (root.parent / "new.md").exists()


def test_a_folder_that_turns_into_a_link_and_back_never_leads_out(root):
    """Whatever is between two system calls: the folder is swapped without a pause."""
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.rename(root / "wiki", root / "kept")  # noqa: PTH104 - as fast as can be
            os.symlink(root.parent / "outside", root / "wiki")  # noqa: PTH211
            os.unlink(root / "wiki")  # noqa: PTH108
            os.rename(root / "kept", root / "wiki")  # noqa: PTH104

    workspace = Workspace(root, exclude=Globs())
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        found = [workspace.read("wiki/a.md") for _attempt in range(400)]
        with_files = [list(workspace.scan().files) for _attempt in range(20)]
    finally:
        stop.set()
        swapper.join()

    read = {file.data for file in found if isinstance(file, SourceFile)}
    assert read <= {b"inside"}
    assert {stamp.size for stamps in with_files for stamp in stamps} <= {len(b"inside")}
    assert workspace.read("wiki/a.md").data == b"inside"
