"""Where do the actors' log lines go?

Ray calls ``configure`` in each worker process. Only our own loggers are touched; lines go to
standard error, which Ray keeps in the session folder per process.
"""

from __future__ import annotations

import logging

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure() -> None:
    """Lets ``memory`` and ``actors`` log from level INFO in this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(FORMAT))
    for name in ("memory", "actors"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [handler]
