"""How is the workspace watched, and when has the watching died?

watchdog loses events without telling (queue overflow), goes deaf when the root is deleted, and
loses its thread when a handler raises; so the handler never raises, overflows are read from its
log, and ``is_healthy`` compares the root with the one that is watched.
"""

from __future__ import annotations

import errno
import logging
import os
import warnings
from typing import TYPE_CHECKING, final

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from watchdog.observers.api import BaseObserver

    PathsListener = Callable[[tuple[str, ...], bool], None]

logger = logging.getLogger(__name__)

WATCHDOG_LOGGER = "watchdog.observers"
IGNORED_EVENTS = frozenset({"opened", "closed_no_write", "closed"})
"""``closed`` follows a ``modified`` and exists on Linux only; the others are mere reads."""
JOIN_S = 5.0


@final
class _Handler(FileSystemEventHandler):
    """Passes on workspace-relative paths; an error here would kill watchdog's thread."""

    def __init__(self, root: str, listener: PathsListener) -> None:
        self._root = root
        self._listener = listener

    def on_any_event(self, event: FileSystemEvent) -> None:
        try:
            if event.event_type in IGNORED_EVENTS:
                return
            if event.is_directory and event.event_type == "modified":
                return
            paths = tuple(
                os.path.relpath(os.fsdecode(path), self._root).replace(os.sep, "/")
                for path in (event.src_path, event.dest_path)
                if path
            )
            self._listener(paths, event.is_directory)
        except Exception:
            logger.exception("lost an event of the workspace")


@final
class _OverflowListener(logging.Handler):
    """Hears watchdog say that events were lost; it has no other way to tell."""

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._on_overflow = on_overflow

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage().lower():
            self._on_overflow()


@final
class Observing:
    """One running observer of one root folder."""

    def __init__(
        self, observer: BaseObserver, root: Path, mode: str, overflow: logging.Handler
    ) -> None:
        self._observer = observer
        self._root = root
        self._identity = _identity(root)
        self._overflow = overflow
        self.mode = mode
        """``events`` or ``polling``."""

    def is_healthy(self) -> bool:
        """Returns whether all threads live and the root is still the folder that is watched."""
        return (
            self._observer.is_alive()
            and bool(self._observer.emitters)
            and all(emitter.is_alive() for emitter in self._observer.emitters)
            and self._identity is not None
            and _identity(self._root) == self._identity
        )

    def stop(self) -> None:
        """Ends the observer and its threads; blocks for at most some seconds."""
        logging.getLogger(WATCHDOG_LOGGER).removeHandler(self._overflow)
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join(JOIN_S)


def start_observing(
    root: Path, listener: PathsListener, on_overflow: Callable[[], None]
) -> Observing | None:
    """Starts watching a folder; polls it where the kernel has no watches left.

    Args:
        root: Workspace folder.
        listener: Called in another thread with relative paths and whether they are folders.
        on_overflow: Called in another thread when events were lost.

    Returns:
        None if the folder does not exist.
    """
    # watchdog warns, in many kilobytes, whenever a folder comes back that it has seen before.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    overflow = _OverflowListener(on_overflow)
    for observer, mode in ((Observer(), "events"), (PollingObserver(timeout=2), "polling")):
        observer.schedule(_Handler(str(root), listener), str(root), recursive=True)
        try:
            observer.start()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EMFILE} or mode == "polling":
                raise
            logger.warning(
                "no inotify watches left, polling the workspace instead;"
                " raise fs.inotify.max_user_watches and max_user_instances"
            )
            continue
        logging.getLogger(WATCHDOG_LOGGER).addHandler(overflow)
        return Observing(observer, root, mode, overflow)
    return None


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
