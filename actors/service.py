"""What does the daemon do between its start and its stop?"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

from actors.answers import Answers
from actors.cluster import (
    leave_at_once,
    nothing_left,
    runtime_folder,
    start_cluster,
    stop_cluster,
    vital_processes,
)
from actors.console import Console
from actors.control import ControlServer
from actors.logs import RAY_LOG_NAME, ray_speaks_into, shorten
from actors.loops import call, run_forever
from actors.ray_config import load_ray_config
from actors.ray_watch import watched
from actors.rebuilding import begin, is_complete
from actors.reporting import Reporter, latest
from actors.system import start
from memory.agent_run.endpoints import off_reason
from memory.clock import SystemClock
from memory.embedding_config import configured_model
from memory.errors import BadEmbedding, ConfigError, EmbeddingError, ProviderUnavailable
from memory.rebuild_progress import GO_ON, rebuilt
from memory.supervision import INTERRUPTED, UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from actors.ray_config import RayConfig
    from actors.statuses import FileIndexed
    from memory.clock import Clock
    from memory.config import Settings
    from memory.locations import Locations
    from memory.payloads import RebuildPayload
    from memory.status_payloads import StatusPayload

logger = logging.getLogger(__name__)

POLL_S = 0.5
CONFIRM_RETRY_S = 60.0


def run(
    settings: Settings,
    locations: Locations,
    *,
    report: Callable[[RebuildPayload], int] | None = None,
) -> int:
    """Runs the daemon until it is told to stop; the data folder's lock must be held.

    Ray is started and ended in the main thread: its processes end with the thread that made them.

    Args:
        settings: The configuration.
        locations: Where everything is.
        report: If given, every file is embedded anew, and the daemon ends after that. Gets the
            figures, once standard output is that of the process again; returns the exit code.

    Returns:
        The exit code.

    Raises:
        ConfigError: ``ray_config.yaml`` or the model cannot be used.
        DaemonError: Ray did not start.
        StoreError: there is no place for the sockets, or the index could not be saved at the end.
    """
    ray_config = load_ray_config(locations.config.parent)
    with ray_speaks_into(locations.data) as stream:
        console = Console(stream)
        console.say(f"starting on {locations.workspace}")
        # Ray's processes inherit the mask and live on when the terminal is closed: they save the
        # index. The service itself listens to the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        with nothing_left(ray_config, locations.data):
            start_cluster(ray_config, locations.data)
            code, done = _serve(settings, locations, ray_config, console, rebuilds=bool(report))
    if report is not None and done is not None:
        return report(done) or code
    return code


def _serve(
    settings: Settings,
    locations: Locations,
    ray_config: RayConfig,
    console: Console,
    *,
    rebuilds: bool,
) -> tuple[int, RebuildPayload | None]:
    """Returns the exit code, and what was embedded anew if that was asked for."""
    has_ray = True
    try:
        service = Service(settings, locations, ray_config, console)
        code = asyncio.run(service.run(rebuilds=rebuilds))
        has_ray = service.has_ray
    except OSError:
        logger.exception("the daemon ended")  # the person is told the reason alone
        raise
    finally:
        console.close()
        if has_ray:
            stop_cluster()
    if not has_ray:
        leave_at_once(code)
    return code, service.rebuilt


class Service:
    """One run of the daemon on a started Ray."""

    def __init__(
        self,
        settings: Settings,
        locations: Locations,
        ray_config: RayConfig,
        console: Console,
        clock: Clock | None = None,
    ) -> None:
        self._console = console
        self._clock = clock or SystemClock()
        self._started_at = self._clock.time()
        self._stopping = asyncio.Event()
        self._exit_code, self._is_interrupted = 0, False
        self.has_ray = True
        """Whether the Ray that it was started on still works."""
        self.rebuilt: RebuildPayload | None = None
        """What was embedded anew, once that is complete."""
        self._last_line, self._is_live = 0, False
        self._data = locations.data
        self._system = start(settings, locations, ray_config)
        self._reporter = Reporter(
            self._system, configured_model(settings)[0], saves_off=off_reason(settings)
        )
        answers = Answers(self._system, settings, locations.workspace)
        self._control = ControlServer(
            runtime_folder(locations.data),
            locations.data,
            {"status": self._status, "stop": self._stop, **answers.commands()},
        )

    async def run(self, *, rebuilds: bool = False) -> int:
        """Runs until a signal or the command ``stop``; returns the exit code.

        Args:
            rebuilds: Whether to embed every file anew, and to end after that.

        Raises:
            StoreError: the index could not be saved at the end; the last saved one is intact.
        """
        with watched(vital_processes(), self._lose_ray):
            return await self._run(rebuilds=rebuilds)

    async def _run(self, *, rebuilds: bool) -> int:
        self._listen_to_signals()
        await self._control.start()
        progress = asyncio.create_task(run_forever(self._show, clock=self._clock))
        confirmation = asyncio.create_task(self._confirm_model())
        retry = asyncio.create_task(self._retry_facts())
        rebuild = asyncio.create_task(self._rebuild()) if rebuilds else None
        try:
            await self._stopping.wait()
        finally:
            background = [progress, confirmation, retry, *([rebuild] if rebuild else [])]
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            try:
                if self.has_ray:
                    self._console.say("stopping")
                    await self._system.stop()
            finally:
                await self._control.stop()
        if rebuilds and self.rebuilt is None and not self._exit_code:
            self._console.say(f"the rebuild is not complete yet; {GO_ON}")
            self._exit_code = INTERRUPTED if self._is_interrupted else 1
        return self._exit_code

    def _lose_ray(self, name: str) -> None:
        """Ends the service without its actors: what they answered is in the journal."""
        if self.has_ray:
            self._console.say(f"Ray's {name} has ended, and the daemon ends with it")
            self.has_ray, self._exit_code = False, 1
            self._stopping.set()

    def _listen_to_signals(self) -> None:
        """Lets signals stop the service; a hangup too, unless ``nohup`` said to ignore it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._end, number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    def _end(self, number: int) -> None:
        self._is_interrupted = number == signal.SIGINT
        self._stopping.set()

    async def _confirm_model(self) -> None:
        while not await self._is_model_settled():
            await self._clock.sleep(CONFIRM_RETRY_S)

    async def _is_model_settled(self) -> bool:
        """Asks once; returns whether there is an answer. A refusal is one, and ends the service."""
        again = f"it is asked again in {CONFIRM_RETRY_S:.0f} s"
        try:
            if found := await self._system.confirm_model():
                self._console.say(found)
        except (ProviderUnavailable, BadEmbedding) as error:
            self._console.say(f"{error}; {again}")
            return False
        except (ConfigError, EmbeddingError) as error:
            self._console.say(str(error))
            self._exit_code = UNUSABLE
            self._stopping.set()
        except TimeoutError:
            self._console.say(f"the model has not answered yet; {again}")
            return False
        except Exception:
            logger.exception("the model cannot be checked")
            self._console.say(f"the model cannot be checked, see {RAY_LOG_NAME}; {again}")
            return False
        return True

    async def _retry_facts(self) -> None:
        """Has facts tried again whose handler had failed: the cause may be gone."""
        try:
            retry = self._system.emitter.retry_failed.remote
            await call(retry, clock=self._clock, deadline_s=CONFIRM_RETRY_S)
        except Exception:
            logger.exception("facts that failed are not tried again")

    async def _rebuild(self) -> None:
        """Embeds every file anew and ends the service, whatever comes of it."""
        try:
            before = await self._reporter.status()
            begun = await begin(self._system, self._clock)
            while not await is_complete(self._system, begun["rebuild"], self._clock):
                await self._clock.sleep(POLL_S)
            self.rebuilt = rebuilt(begun, before, await self._reporter.status())
        except Exception as error:
            logger.exception("the rebuild broke off")
            reason = str(error) or "an actor does not answer"
            self._console.say(f"the rebuild broke off: {reason}; {GO_ON}")
            self._exit_code = 1
        self._stopping.set()

    async def _show(self) -> None:
        """Prints what is new: progress until the live line, then a line per changed file."""
        await asyncio.to_thread(shorten, self._data)
        status = await self._reporter.status()
        for name, pid in self._reporter.restarted():
            self._console.say(f"{name} was restarted, now process {pid}")
            if name == "Chunker":
                self._last_line = 0  # a fresh Chunker counts from one again
        activity = await self._activity(self._last_line)
        self._last_line = activity[-1].number if activity else self._last_line
        if self._is_live:
            for entry in activity:
                self._console.indexed(entry)
        else:
            self._console.progress(status)
            if status["ready"]:
                self._is_live = True
                self._console.live(status)
        self._console.problems(status)
        self._console.facts(status["saves"], self._started_at)
        await self._clock.sleep(POLL_S)

    async def _activity(self, after: int) -> tuple[FileIndexed, ...]:
        activity = self._system.chunker.activity
        return await latest(activity.remote(after), ())

    async def _status(self, _request: Mapping[str, Any]) -> StatusPayload:
        return await self._reporter.status()

    async def _stop(self, _request: Mapping[str, Any]) -> dict[str, object]:
        self._stopping.set()
        return {}
