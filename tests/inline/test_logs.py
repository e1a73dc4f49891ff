"""Where the daemon's own lines go when their place is gone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CLOSED_TERMINAL = """
import contextlib, os, pty, sys
from pathlib import Path
from actors.logs import ray_speaks_into
terminal, end = pty.openpty()
os.dup2(end, 2)
os.close(end)
with ray_speaks_into(Path(sys.argv[1])) as console:
    os.close(terminal)
    with contextlib.suppress(OSError):
        console.write("a line that nobody can read\\n")
    os.write(1, b"Ray speaks")
print("went on")
"""


def test_a_terminal_that_was_closed_does_not_make_the_end_a_failure(tmp_path: Path):
    """Closing the stream tries once more to write what could not be written."""
    ended = subprocess.run(
        [sys.executable, "-c", CLOSED_TERMINAL, str(tmp_path)],
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, b"went on\n")
    assert (tmp_path / "ray.log").read_text() == "Ray speaks"


TALKATIVE = """
import os, sys
from pathlib import Path
from actors import logs
logs.MAX_LOG_BYTES = 1_000
with logs.ray_speaks_into(Path(sys.argv[1])):
    for number in range(100):
        os.write(1, b"%98d.\\n" % number)
        logs.shorten(Path(sys.argv[1]))
"""


def test_a_log_that_is_too_long_begins_anew_for_everybody_who_has_it_open(tmp_path: Path):
    log, before = tmp_path / "ray.log", tmp_path / "ray.log.1"
    subprocess.run([sys.executable, "-c", TALKATIVE, str(tmp_path)], timeout=60, check=True)

    assert before.stat().st_size == 1_100
    assert log.read_bytes() + before.read_bytes() == b"".join(
        b"%98d.\n" % number for number in [99, *range(88, 99)]
    )
