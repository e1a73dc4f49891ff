"""The main job as a person runs it: start, change files, kill an actor, stop, start again."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from actors.cluster import runtime_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PATIENCE_S = 120.0


@dataclass
class Home:
    """A folder with a configuration, a workspace and whatever daemon runs on it."""

    folder: Path
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def workspace(self) -> Path:
        return self.folder / "notes"

    @property
    def data(self) -> Path:
        return self.folder / "data/memory"

    def memory(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*arguments),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def answer(self, *arguments: str) -> Any:
        done = self.memory(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, **environment: str) -> None:
        with (self.folder / "daemon.txt").open("ab") as output:
            self.daemon = subprocess.Popen(
                self._command("start", "--workspace", str(self.workspace)),
                cwd=self.folder,
                env={**os.environ, **environment},
                umask=0o022,
                stdout=output,
                stderr=output,
            )
        self.wait_for(lambda status: status["ready"])

    def wait_for(self, condition: Callable[[Any], bool]) -> Any:
        """Returns the first status for which the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition(status := self.answer("status")):
            assert time.monotonic() < deadline, f"{status}\n{self.printed()}"
            assert self.daemon is None or self.daemon.poll() is None, self.printed()
            time.sleep(0.2)
        return status

    def printed(self) -> str:
        return (self.folder / "daemon.txt").read_text()

    def _command(self, *arguments: str) -> list[str]:
        where = ["--config", str(self.folder / "config.yml"), "--data", str(self.data)]
        return [sys.executable, "-m", "memory", *arguments, *where]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    for name, text in {
        "wiki/alice.md": "# Alice\n\nAlice leads sales.\n\n## Home\n\nShe lives in Atlanta.\n",
        "wiki/bob.md": "# Bob\n\nBob repairs bicycles.\n",
        "old/a.md": "# A\n\nFirst.\n",
        "old/b.md": "# B\n\nSecond.\n",
    }.items():
        path = home.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    yield home
    if home.daemon is not None and home.daemon.poll() is None:
        home.daemon.terminate()
        home.daemon.wait(PATIENCE_S)
    shutil.rmtree(runtime_folder(home.data))


def test_the_main_job_from_first_start_to_second(home: Home) -> None:
    home.start()
    home.wait_for(lambda _status: "memory: plugin live with" in home.printed())
    assert "provider: local" in home.printed()
    assert "memory: plugin live with 4 files / 5 chunks indexed" in home.printed()
    first = home.answer("status")
    assert first["state"] == "ready"
    assert first["embedded_inputs"] == 5
    assert stat.S_IMODE(runtime_folder(home.data).stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.data.iterdir()} == {0o600}
    assert _listening_beyond_loopback(home) == []

    second = home.memory("start", "--workspace", str(home.workspace))
    assert second.returncode == 1
    assert "already running" in second.stderr

    found = home.answer("search", "who fixes bikes")
    assert found["source"] == "daemon"
    assert found["hits"][0]["path"] == "wiki/bob.md"
    assert found["hits"][0]["fresh"]
    section = home.answer("context", "Where does Alice live?")["section"]
    assert "| `wiki/alice.md` |" in section

    alice = home.workspace / "wiki/alice.md"
    alice.write_text(alice.read_text().replace("Atlanta", "Boston"))
    edited = home.wait_for(lambda status: status["embedded_inputs"] == 6)
    assert edited["chunks"] == 5

    (home.workspace / "wiki/bob.md").rename(home.workspace / "wiki/robert.md")
    home.wait_for(lambda _status: "wiki/robert.md" in _paths(home))
    for path in (home.workspace / "old").iterdir():
        path.unlink()
    (home.workspace / "old").rmdir()
    home.wait_for(lambda status: status["files"] == 2)
    assert _paths(home) == ["wiki/alice.md", "wiki/robert.md"]
    assert home.answer("status")["embedded_inputs"] == 6

    os.kill(_pid(home.answer("status"), "IndexKeeper"), signal.SIGKILL)
    home.wait_for(lambda status: _restarts(status) == 1 and status["files"] == 2)
    home.wait_for(lambda status: not status["pending"])
    home.wait_for(lambda _status: "IndexKeeper was restarted" in home.printed())
    assert _paths(home) == ["wiki/alice.md", "wiki/robert.md"]
    assert "alice.md (1 embedded, 0 reused, 1 kept, 1 removed)" in home.printed()

    ours = _processes_of(home)
    assert home.memory("stop").returncode == 0
    assert home.daemon is not None
    assert home.daemon.wait(PATIENCE_S) == 0
    _gone, left = psutil.wait_procs(ours, timeout=20)
    assert left == []

    from_disk = home.answer("search", "Boston")
    assert from_disk["source"] == "disk"
    assert from_disk["hits"][0]["path"] == "wiki/alice.md"

    _start_with_dashboard(home)
    again = home.answer("status")
    assert again["embedded_inputs"] == 0
    assert (again["files"], again["chunks"]) == (2, 3)
    assert _left_after_a_kill(home) == []


def _left_after_a_kill(home: Home) -> list[psutil.Process]:
    """Returns what is left of a daemon ten seconds after a kill (FAULTS 70)."""
    ours = _processes_of(home)
    assert home.daemon is not None
    home.daemon.kill()
    _gone, left = psutil.wait_procs(ours, timeout=10)
    return left


def _start_with_dashboard(home: Home) -> None:
    """Starts a daemon again, with Ray's web page, for an account that never used Ray."""
    port, account = _free_port(), home.folder / "account"
    (home.folder / "ray_config.yaml").write_text(f"dashboard: {{enabled: true, port: {port}}}\n")
    home.start(HOME=str(account))
    assert _modes_below(account) == {".ray": 0o700, ".ray/auth_token": 0o600}
    assert _statuses_without_token(port) == [401, 401]
    assert _status(port, "/api/jobs/", (account / ".ray/auth_token").read_text()) == 200
    assert _listening_beyond_loopback(home) == []
    assert len(list(runtime_folder(home.data).glob("ray/session_2*"))) == 1, "FAULTS 79"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _modes_below(folder: Path) -> dict[str, int]:
    """Returns the modes of what Ray keeps for an account, though the umask is 022 (FAULTS 77)."""
    paths = sorted((folder / ".ray").rglob("*"))
    return {
        path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in [folder / ".ray", *paths]
    }


def _statuses_without_token(port: int) -> list[int]:
    """Returns what the dashboard answers to a stranger who lists jobs or starts one (FAULTS 76)."""
    job = json.dumps({"entrypoint": "true"}).encode()
    return [_status(port, "/api/jobs/"), _status(port, "/api/jobs/", body=job)]


def _status(port: int, path: str, token: str = "", body: bytes | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _paths(home: Home) -> list[str]:
    return [file["path"] for file in home.answer("list")]


def _pid(status: Any, name: str) -> int:
    return next(actor["pid"] for actor in status["actors"] if actor["name"] == name)


def _restarts(status: Any) -> int:
    return sum(actor["restarts"] for actor in status["actors"])


def _listening_beyond_loopback(home: Home) -> list[str]:
    """Returns the addresses of our processes that another machine could reach (FAULTS 75)."""
    found = _listening(home)
    assert found, "not even Ray listens"
    return [f"{name} {address}" for name, address in found if not _is_loopback(address)]


def _listening(home: Home) -> list[tuple[str, str]]:
    """Returns the addresses at which our processes listen, and their names."""
    return [
        (process.name(), connection.laddr.ip)
        for process in _processes_of(home)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def _processes_of(home: Home) -> list[psutil.Process]:
    """Returns every process below the daemon, and every one that works in its Ray session."""
    assert home.daemon is not None
    folder = str(runtime_folder(home.data))
    below = psutil.Process(home.daemon.pid).children(recursive=True)
    return below + [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(folder in part for part in process.info["cmdline"] or ()) and process not in below
    ]
