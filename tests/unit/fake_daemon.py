"""A daemon that answers on a real Unix socket with prepared bytes."""

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path


class FakeDaemon:
    """Answers each connection with the next prepared bytes; keeps the requests."""

    def __init__(self, data, folder):
        self.requests = []
        self.answers = []
        self.release = threading.Event()
        self.path = str(folder / "d.sock")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        data.mkdir(parents=True, exist_ok=True)
        address = {"pid": os.getpid(), "socket": self.path, "started_at": 0.0}
        (data / "daemon.json").write_text(json.dumps(address))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def will_answer(self, result):
        self.answers.append(json.dumps({"ok": True, "result": result}).encode() + b"\n")

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                line = lines.readline()
                if not line:
                    continue
                self.requests.append(json.loads(line))
                answer = self.answers.pop(0)
                if answer is None:
                    self.release.wait(5)
                else:
                    connection.sendall(answer)

    def close(self):
        self.release.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


@contextlib.contextmanager
def fake_daemon(data):
    """Gives a daemon of a data folder."""
    # A socket path must stay below 107 bytes, which a test folder may not.
    folder = Path(tempfile.mkdtemp(prefix="m"))
    daemon = FakeDaemon(data, folder)
    try:
        yield daemon
    finally:
        daemon.close()
        shutil.rmtree(folder)
