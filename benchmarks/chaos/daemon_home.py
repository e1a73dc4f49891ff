"""How does a benchmark run a daemon of its own and ask it?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.cluster import runtime_folder
from actors.host import CALL_DEADLINE_S
from memory.daemon_client import request
from memory.errors import DaemonError
from memory.outbox import OUTBOX_NAME
from memory.processes import writing_below
from memory.template import write_workspace
from tests.chat_server import ChatServer, calls, says

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.chat_server import Turn

ROOT = Path(__file__).parents[2]
DEADLINE_S = CALL_DEADLINE_S + 5.0
"""What the daemon promises, and a little for a machine that is busy."""
START_S = 180.0
STOP_S = 90.0
STUCK_S = 60.0
THOUGHT_S = 0.2
"""How long the scripted model thinks about each step."""
CONFIG = """\
inference:
  customProviders:
    scripted: {{type: openai-compatible, baseUrl: "{url}/v1", apiKey: none}}
  defaultModel: scripted/librarian
memory:
  persistToDiskDelay: 2
  embeddings: {{provider: local, model: all-minilm-l6-v2}}
"""


def thinks(body: Mapping[str, Any]) -> Turn:
    """Searches once, then says that there is nothing to file."""
    time.sleep(THOUGHT_S)
    has_searched = any(message["role"] == "tool" for message in body["messages"])
    return says("noop") if has_searched else calls(("memory_search", {"query": "harbour"}))


@dataclass
class DaemonHome:
    """A folder with a configuration, a workspace, and the daemon that runs on it."""

    folder: Path
    chat: ChatServer = field(default_factory=ChatServer)
    daemon: subprocess.Popen[bytes] | None = None

    @classmethod
    def made(cls, folder: Path) -> DaemonHome:
        """Writes the configuration and the workspace of the template."""
        home = cls(folder)
        home.chat.script = thinks
        home.config.write_text(CONFIG.format(url=home.chat.url))
        (folder / "ray_config.yaml").write_text("embedder: {workers: 2}\n")
        write_workspace(home.workspace)
        return home

    @property
    def config(self) -> Path:
        return self.folder / "config.yml"

    @property
    def workspace(self) -> Path:
        return self.folder / "notes"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Starts the daemon and waits until everything is indexed."""
        where = {"config": self.config, "workspace": self.workspace, "data": self.data}
        flags = [text for name, path in where.items() for text in (f"--{name}", str(path))]
        with (self.folder / "daemon.txt").open("ab") as output:
            self.daemon = subprocess.Popen(
                [sys.executable, "-m", "memory", "start", *flags],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=output,
                stderr=output,
            )
        end = time.monotonic() + START_S
        while not self._is_ready():
            if time.monotonic() > end or self.daemon.poll() is not None:
                raise SystemExit((self.folder / "daemon.txt").read_text())
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            return bool(self.ask("status")["ready"])
        except DaemonError:
            return False

    def ask(self, command: str, **arguments: object) -> Any:
        return request(self.data, command, DEADLINE_S, **arguments)

    def actors(self) -> list[str]:
        """Returns the names of all actors."""
        return [actor["name"] for actor in self.ask("status")["actors"]]

    def pid_of(self, name: str) -> int:
        """Returns the process of an actor that is alive, else 0."""
        return next(
            (
                actor["pid"]
                for actor in self.ask("status")["actors"]
                if actor["name"] == name and actor["state"] == "alive"
            ),
            0,
        )

    def first_hit(self, query: str) -> str | None:
        """Returns the path of the best hit."""
        hits = self.ask("search", query=query, limit=3)["hits"]
        return hits[0]["path"] if hits else None

    def unhandled(self, identities: Iterable[str]) -> list[str]:
        """Waits for the facts that were saved, while they get fewer; returns what is wrong."""
        last, since = -1, time.monotonic()
        while queued := self.ask("status")["saves"]["queued"]:
            if queued != last:
                last, since = queued, time.monotonic()
            if time.monotonic() - since > STUCK_S:
                break
            time.sleep(0.2)
        lines = (self.data / OUTBOX_NAME).read_text().splitlines()
        handled = Counter(json.loads(line).get("acknowledged") for line in lines)
        return [
            f"fact {identity} was handled {handled[identity]} times"
            for identity in identities
            if handled[identity] != 1
        ]

    def ray_bytes(self) -> int:
        """Returns how large the files are that Ray has written."""
        logs = runtime_folder(self.data).glob("ray/session_2*/logs/**/*")
        return sum(path.stat().st_size for path in logs if path.is_file())

    def stop(self) -> None:
        """Has the daemon save and end."""
        self.ask("stop")
        assert self.daemon is not None
        if self.daemon.wait(STOP_S) != 0:
            raise SystemExit((self.folder / "daemon.txt").read_text())

    def kill(self) -> None:
        """Ends whatever still runs."""
        if self.daemon is not None and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        end = time.monotonic() + 20.0
        folder = runtime_folder(self.data)
        while writing_below(folder) and time.monotonic() < end:
            time.sleep(0.1)
        shutil.rmtree(folder, ignore_errors=True)
        self.chat.close()
