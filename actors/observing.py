"""How is the workspace watched, and when has the watching died?

watchdog loses events without telling (queue overflow), says nothing of folders that got no watch,
goes deaf when the root is deleted, and loses its thread when a handler raises; so the handler never
raises, overflows are read from its log, a spare watch is asked for, and ``is_healthy`` compares the
root with the one that is watched. After an overflow watchdog watches everything anew, hears nothing
meanwhile, and at times its thread dies of it, so an observer that lost events counts as dead. On a
network file system the kernel tells only of what this machine changes, so that one is polled.
"""

from __future__ import annotations

import errno
import logging
import os
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, final

from watchdog import events
from watchdog.events import DirModifiedEvent, FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserverVFS

from memory.mounts import deaf_mount, parse_mountinfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from watchdog.observers.api import BaseObserver

    from memory.mounts import Mount

    PathsListener = Callable[[tuple[str, ...], bool], None]

logger = logging.getLogger(__name__)

WATCHDOG_LOGGER = "watchdog.observers"
CHANGES = frozenset({"created", "modified", "attrib", "moved", "deleted"})
EVENTS: list[type[FileSystemEvent]] = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type)
    and issubclass(kind, FileSystemEvent)
    and kind.event_type in CHANGES
    and kind is not DirModifiedEvent
]
"""What the kernel is asked to tell. Otherwise it also tells of all that is opened and closed, which
is half of what a save raises, and a scan of many folders would fill its queue.
"""
EVENTS_LOST = "events were lost"
"""Part of the one line that watchdog logs per overflow; a second line tells of its recovery."""
NO_WATCHES_LEFT = frozenset({errno.ENOSPC, errno.EMFILE})
MOUNTINFO = Path("/proc/self/mountinfo")
POLL_S = 2.0
JOIN_S = 5.0


@final
class _Handler(FileSystemEventHandler):
    """Passes on workspace-relative paths; an error here would kill watchdog's thread."""

    def __init__(self, root: str, listener: PathsListener) -> None:
        self._root = root
        self._listener = listener

    def on_any_event(self, event: FileSystemEvent) -> None:
        try:
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
        self.heard = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if EVENTS_LOST in record.getMessage():
                self.heard = True
                self._on_overflow()
        except Exception:  # noqa: BLE001 - as every handler: it must not end the thread that logs
            self.handleError(record)


@final
class Observing:
    """One running observer of one root folder."""

    def __init__(
        self,
        observer: BaseObserver,
        root: Path,
        *,
        identity: tuple[int, int],
        mode: str,
        overflow: _OverflowListener,
    ) -> None:
        self._observer = observer
        self._root = root
        self._identity = identity
        self._overflow = overflow
        self.mode = mode
        """``events`` or ``polling``."""

    def is_healthy(self) -> bool:
        """Returns whether all threads live, the root is watched, and no event was lost."""
        # On Linux one more thread reads the kernel's queue; watchdog does not publish it.
        reader = getattr(self._observer, "_inotify_fd", self._observer)
        emitters = self._observer.emitters
        threads = (self._observer, reader, *emitters)
        return (
            bool(emitters)
            and not self._overflow.heard
            and all(thread.is_alive() for thread in threads)
            and _identity(self._root) == self._identity
        )

    def stop(self) -> None:
        """Ends the observer and its threads; blocks for at most some seconds."""
        logging.getLogger(WATCHDOG_LOGGER).removeHandler(self._overflow)
        groups = [getattr(emitter, "_inotify", None) for emitter in self._observer.emitters]
        try:
            self._observer.stop()
        except KeyError:
            # watchdog 7.1 loses count of a folder whose name was given to another one, and stops
            # half-way: what its emitters wait for is closed here, so that the rest can go on.
            for group in filter(None, groups):
                group._move_event_grouper.close()  # noqa: SLF001 - there is no other way to it
            self._observer.stop()
        if self._observer.is_alive():
            self._observer.join(JOIN_S)


def start_observing(
    root: Path, listener: PathsListener, on_overflow: Callable[[], None]
) -> Observing | None:
    """Starts watching a folder; polls it on a network mount, or if no watches are left.

    Args:
        root: Workspace folder; may be a symbolic link to it.
        listener: Called in another thread with relative paths and whether they are folders.
        on_overflow: Called in another thread when events were lost.

    Returns:
        None if the folder does not exist.
    """
    # watchdog warns, in many kilobytes, whenever a folder comes back that it has seen before.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    identity = _identity(root)  # before the start, so that a root replaced meanwhile is noticed
    if identity is None:
        return None
    try:
        observer, mode = _observe_or_poll(root, listener)
    except FileNotFoundError:
        return None
    overflow = _OverflowListener(on_overflow)
    logging.getLogger(WATCHDOG_LOGGER).addHandler(overflow)
    return Observing(observer, root, identity=identity, mode=mode, overflow=overflow)


def _observe_or_poll(root: Path, listener: PathsListener) -> tuple[BaseObserver, str]:
    if (mount := _network_mount(root)) is not None:
        logger.warning(
            "%s is a network file system (%s), polling the workspace every %g s",
            *mount,
            POLL_S,
        )
        return _started(_poller, root, listener), "polling"
    try:
        return _started(Observer, root, listener), "events"
    except OSError as error:
        if error.errno not in NO_WATCHES_LEFT:
            raise
    logger.warning(
        "no inotify watches left, polling the workspace instead;"
        " raise fs.inotify.max_user_watches and max_user_instances"
    )
    return _started(_poller, root, listener), "polling"


def _network_mount(root: Path) -> Mount | None:
    """Returns the network mount that the root lies on or has below it; None if it is not known."""
    try:
        text = os.fsdecode(MOUNTINFO.read_bytes())
    except OSError:  # not a Linux
        return None
    return deaf_mount(os.path.realpath(root), parse_mountinfo(text))


def _started(make: Callable[[], BaseObserver], root: Path, listener: PathsListener) -> BaseObserver:
    """Returns a running observer.

    Raises:
        OSError: there is no root, or no watch for it or for a folder below it.
    """
    folder = os.path.realpath(root)  # watchdog would watch a symbolic link instead of its target
    observer = make()
    try:
        handler = _Handler(folder, listener)
        observer.schedule(handler, folder, recursive=True, event_filter=EVENTS)
        observer.start()
        _ask_for_a_spare_watch(observer)
    except BaseException:
        observer.stop()  # its threads run already
        raise
    return observer


def _ask_for_a_spare_watch(observer: BaseObserver) -> None:
    """Raises OSError if no watch is left: watchdog skips such folders below the root silently."""
    with tempfile.TemporaryDirectory() as folder:
        observer.unschedule(observer.schedule(FileSystemEventHandler(), folder))


def _poller() -> BaseObserver:
    """Returns an observer that follows no symbolic links, which may form endless loops."""
    return PollingObserverVFS(os.lstat, os.scandir, polling_interval=POLL_S)


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
