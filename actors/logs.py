"""Where do the log lines of the actors and of Ray go?

In a worker, Ray calls ``configure``; lines go to standard error, which Ray keeps in the session
folder per process. In the daemon, what Ray itself has to say goes to a file, so that the console
shows the memory alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
RAY_LOG_NAME = "ray.log"
STDOUT, STDERR = 1, 2
MAX_LOG_BYTES = 16 * 1024 * 1024
"""Of ``ray.log``; as much again is kept of what stood there before."""


def configure() -> None:
    """Lets ``memory`` and ``actors`` log from level INFO in this process."""
    _log_to(logging.StreamHandler(), "memory", "actors")


@contextlib.contextmanager
def ray_speaks_into(folder: Path) -> Iterator[TextIO]:
    """Sends everything this process prints to ``ray.log`` of a folder while the block runs.

    Ray writes with Python and with C++, so the descriptors themselves are turned around.

    Yields:
        The real standard error.
    """
    with contextlib.ExitStack() as stack:
        # Appended to, so that those who have it open go on at its start once it is cut off.
        (folder / RAY_LOG_NAME).open("w").close()
        file = (folder / RAY_LOG_NAME).open("a", errors="backslashreplace")
        stack.callback(_close, file)
        console = os.fdopen(os.dup(STDERR), "w", buffering=1, errors="backslashreplace")
        stack.callback(_close, console)
        for descriptor in (STDOUT, STDERR):
            stack.callback(_restore, os.dup(descriptor), descriptor)
            os.dup2(file.fileno(), descriptor)
        _log_to(logging.StreamHandler(file), "ray", "memory", "actors")
        yield console


def shorten(folder: Path) -> None:
    """Begins ``ray.log`` anew once it is too long; what stood there becomes ``ray.log.1``.

    Ray's processes keep the file open, so it is copied and cut off, not renamed; a line that comes
    in between is lost.
    """
    path = folder / RAY_LOG_NAME
    with contextlib.suppress(OSError):
        if path.stat().st_size > MAX_LOG_BYTES:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            os.truncate(path, 0)


def _close(stream: TextIO) -> None:
    # A closed terminal or a full disk refuses the rest once more; that nobody reads it is no fault.
    with contextlib.suppress(OSError):
        stream.close()


def _restore(saved: int, descriptor: int) -> None:
    os.dup2(saved, descriptor)
    os.close(saved)


def _log_to(handler: logging.Handler, *names: str) -> None:
    handler.setFormatter(logging.Formatter(FORMAT))
    for name in names:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [handler]
