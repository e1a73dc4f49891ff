"""What does the daemon do between its start and its stop?"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import TYPE_CHECKING

from ray.exceptions import RayActorError

from actors.answers import Answers
from actors.cluster import runtime_folder, start_cluster, stop_cluster
from actors.console import Console
from actors.control import ControlServer
from actors.ray_config import load_ray_config
from actors.reporting import Reporter
from actors.system import MemorySystem, start
from memory.clock import SystemClock
from memory.errors import EmbeddingError
from memory.payloads import blank_status
from memory.providers.factory import model_info

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memory.config import Settings
    from memory.locations import Locations
    from memory.payloads import StatusPayload

logger = logging.getLogger(__name__)

POLL_S = 0.5


class Service:
    """One run of the daemon.

    Args:
        settings: Checked configuration.
        locations: Workspace and data folder; the lock of the latter is held by the caller.
    """

    def __init__(self, settings: Settings, locations: Locations) -> None:
        self._settings = settings
        self._locations = locations
        self._ray_config = load_ray_config(locations.config.parent)
        memory = settings.memory
        self._info = model_info(str(memory.embeddings.provider), memory.embeddings.model)
        self._clock = SystemClock()
        self._console = Console(sys.stderr)
        self._stopping = asyncio.Event()
        self._reporter: Reporter | None = None
        self._answers = Answers(settings, locations.workspace)
        self._control = ControlServer(
            runtime_folder(locations.data),
            locations.data,
            {"status": self._status, "stop": self._stop, **self._answers.commands()},
        )

    async def run(self) -> int:
        """Runs until a signal or the command ``stop``; returns the exit code."""
        loop = asyncio.get_running_loop()
        await self._control.start()
        self._console.say(f"starting on {self._locations.workspace}")
        try:
            await asyncio.to_thread(start_cluster, self._ray_config, self._locations.data)
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self._stopping.set)
            system = start(self._settings, self._locations, self._ray_config)
            self._reporter = Reporter(system, self._info)
            self._answers.system = system
            return await self._serve(system, self._reporter)
        finally:
            await self._control.stop()
            self._console.close()
            await asyncio.to_thread(stop_cluster)

    async def _serve(self, system: MemorySystem, reporter: Reporter) -> int:
        progress = asyncio.create_task(self._show_progress(system, reporter))
        try:
            if found := await system.confirm_model():
                self._console.say(found)
            await self._stopping.wait()
        except EmbeddingError as error:
            self._console.say(str(error))
            return 1
        finally:
            progress.cancel()
            await asyncio.gather(progress, return_exceptions=True)
            self._console.say("stopping")
            await system.stop()
        return 0

    async def _show_progress(self, system: MemorySystem, reporter: Reporter) -> None:
        """Prints progress, the live line once, and a line per indexed file after that."""
        last_line, live = 0, False
        while True:
            status = await reporter.status()
            try:
                activity = await system.chunker.activity.remote(last_line)
            except RayActorError:
                activity, last_line = (), 0  # a fresh Chunker counts from one again
            if activity:
                last_line = activity[-1].number
            if live:
                for entry in activity:
                    self._console.indexed(entry)
            else:
                self._console.progress(status)
                if live := status["ready"]:
                    self._console.live(status)
            await self._clock.sleep(POLL_S)

    async def _status(self, _request: Mapping[str, Any]) -> StatusPayload:
        return await self._reporter.status() if self._reporter else blank_status("starting")

    async def _stop(self, _request: Mapping[str, Any]) -> dict[str, object]:
        self._stopping.set()
        return {}
