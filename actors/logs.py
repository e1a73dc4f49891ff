"""Where do the log lines of the actors and of Ray go?

In a worker, Ray calls ``configure``; lines go to standard error, which Ray keeps in the session
folder per process. In the daemon, what Ray itself has to say goes to a file, so that the console
shows the memory alone.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
RAY_LOG_NAME = "ray.log"


def configure() -> None:
    """Lets ``memory`` and ``actors`` log from level INFO in this process."""
    _log_to(logging.StreamHandler(), "memory", "actors")


@contextlib.contextmanager
def ray_speaks_into(folder: Path) -> Iterator[None]:
    """Sends Ray's messages and prints to ``ray.log`` of a folder while the block runs."""
    with (folder / RAY_LOG_NAME).open("w") as file, contextlib.redirect_stdout(file):
        _log_to(logging.StreamHandler(file), "ray")
        yield


def _log_to(handler: logging.Handler, *names: str) -> None:
    handler.setFormatter(logging.Formatter(FORMAT))
    for name in names:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [handler]
