"""How does a host run the daemon as a child of its own?

In a session of its own, so that everything the child starts is known by the session and can be
ended with it. Its standard input is a pipe that nothing is written to but the configuration: the
end of that pipe is the end of the host, whatever ended it. What it prints goes to the host line by
line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory.processes import Process, end, find, of_session
from memory.template import write_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from memory.clock import Clock
    from memory.locations import Locations

MAX_LINE_BYTES = 4096
_READ_BYTES = 4096
_SWEEP_S = 5.0
"""Longest time that processes which were killed take to be gone."""
_SWEEP_PAUSE_S = 0.05
_LAST_WORDS_S = 1.0
"""Longest time to read what an ended child has printed."""
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Start:
    """What a child is started with."""

    command: Sequence[str]
    config: Mapping[str, Any] | None
    """The configuration itself; None if it is in a file."""
    default_workspace: Path | None = None
    """Folder that is made from the template if it is missing."""


def daemon_start(
    locations: Locations, config: Mapping[str, Any] | None, *, is_workspace_named: bool
) -> Start:
    """Returns how the daemon of ``memory start`` is started for a host.

    Args:
        locations: Where everything is.
        config: The configuration, if it is not in a file.
        is_workspace_named: Whether somebody chose the workspace, who then has to make it.
    """
    arguments = {
        "--config": locations.config,
        "--workspace": locations.workspace,
        "--data": locations.data,
    }
    flags = [text for name, path in arguments.items() for text in (name, str(path))]
    # -P: a folder called actors or memory where the host stands must not shadow ours.
    return Start(
        (sys.executable, "-P", "-m", "actors.daemon", "--hosted", *flags),
        config,
        None if is_workspace_named else locations.workspace,
    )


class ChildProcess:
    """A running child; ``start_child`` makes one."""

    def __init__(
        self, process: subprocess.Popen[bytes], clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._process = process
        self._clock = clock
        self._say = say
        # Its parent has not asked for its end yet, so that the id still is its own.
        self._itself = find(process.pid)
        self._ended = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._last_words = ""

    @property
    def pid(self) -> int:
        """Its process, and its session."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The last line it printed; complete after ``sweep``."""
        return self._last_words

    def listen(self) -> None:
        """Begins to wait for its lines and for its end."""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._watch())]

    async def wait(self) -> int:
        """Returns its exit code once it has ended; negative is the signal that ended it."""
        await self._ended.wait()
        return self._exit_code()

    async def stop(self, deadline_s: float) -> None:
        """Has the child save and end; after the deadline, ends it."""
        self._hang_up()
        self._signal(signal.SIGTERM)
        if not await self._clock.wait(self._ended, deadline_s):
            self._say(f"memory: the daemon did not end within {deadline_s:g} s and is killed")
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def sweep(self) -> None:
        """Ends what an ended child left of its session, and takes note of its end."""
        until_s = self._clock.monotonic() + _SWEEP_S
        while left := await asyncio.to_thread(self._left):
            await asyncio.to_thread(end, left)
            if self._clock.monotonic() > until_s:
                self._say(f"memory: {len(left)} processes of the daemon do not end")
                break
            await self._clock.sleep(_SWEEP_PAUSE_S)
        self._hang_up()
        await asyncio.wait(self._tasks, timeout=_LAST_WORDS_S)
        for task in self._tasks:
            task.cancel()
        # Only now may its id be given to another process.
        self._process.poll()

    def _left(self) -> tuple[Process, ...]:
        if self._itself is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            return ()
        return of_session(self.pid, self._itself.started)

    def _hang_up(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _signal(self, number: int) -> None:
        if self._ended.is_set():
            return
        if self._itself is not None:
            end((self._itself,), number)
        else:
            self._process.send_signal(number)

    async def _watch(self) -> None:
        """Notes the end without asking for it, which would give its id away."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            while not self._has_ended():
                await self._clock.sleep(_LOOK_S)
            self._ended.set()
            return
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(descriptor, self._ended.set)
            await self._ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    def _has_ended(self) -> bool:
        if sys.platform == "darwin":
            return self._process.poll() is not None
        try:
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, flags) is not None
        except ChildProcessError:  # the host asked for the end of all its children
            return True

    def _exit_code(self) -> int:
        if sys.platform == "darwin":
            return self._process.poll() or 0
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return 0
        if found is None:
            return 0
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    async def _read(self) -> None:
        reader = asyncio.StreamReader(limit=2 * _READ_BYTES)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout
        )
        rest = b""
        try:
            while piece := await reader.read(_READ_BYTES):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._take(line)
                if len(rest) > MAX_LINE_BYTES:
                    self._take(rest)
                    rest = b""
            self._take(rest)
        finally:
            transport.close()

    def _take(self, line: bytes) -> None:
        if text := line[:MAX_LINE_BYTES].decode(errors="replace").strip():
            self._last_words = text
            self._say(text)


async def start_child(start: Start, clock: Clock, say: Callable[[str], None]) -> ChildProcess:
    """Starts a child; the event loop goes on meanwhile.

    Args:
        start: What to start.
        clock: For deadlines.
        say: Takes each line that the child prints.

    Raises:
        OSError: it cannot be started.
    """
    starting = asyncio.ensure_future(asyncio.to_thread(_open, start))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_abandon)
        raise
    child = ChildProcess(process, clock, say)
    child.listen()
    return child


def _open(start: Start) -> subprocess.Popen[bytes]:
    if start.default_workspace is not None and not start.default_workspace.exists():
        write_workspace(start.default_workspace)
    process = subprocess.Popen(  # noqa: S603 - our own interpreter
        start.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # it ended already; its exit code says why
            process.stdin.write(json.dumps(start.config).encode() + b"\n")
            process.stdin.flush()
    return process


def _abandon(starting: asyncio.Future[subprocess.Popen[bytes]]) -> None:
    """Ends a child that nobody waits for any more: it ends with the pipe."""
    if not starting.cancelled() and starting.exception() is None:
        process = starting.result()
        if process.stdin is not None:
            process.stdin.close()
