"""The composition root: which actors exist, and who holds whose handle.

Handles form a DAG, so actors are created bottom-up and each constructor gets its neighbours::

    Watcher -> Chunker -> EmbedderPool -> Embedder-0..N
                       -> IndexKeeper
                       -> Persister -> IndexKeeper
    SaveHandler -> EventEmitter -> ContextProvider -> EmbedderPool, IndexKeeper
                -> ContextProvider
"""

from __future__ import annotations

import contextlib
import errno
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import ray

from actors.chunker import Chunker, ChunkerOptions
from actors.cluster import namespace_of
from actors.context_provider import ContextProvider
from actors.embedder import EmbedderWorker
from actors.embedder_pool import EmbedderPool, PoolOptions
from actors.event_emitter import EventEmitter
from actors.index_keeper import IndexKeeper
from actors.logs import RAY_LOG_NAME
from actors.loops import call
from actors.persister import Persister
from actors.save_handler import SaveHandler
from actors.watcher import Watcher
from actors.worker_calls import NUM_SPARE
from memory.agent_run.endpoints import off_reason
from memory.clock import SystemClock
from memory.debounce import Debounce
from memory.embedding_config import configured_model
from memory.errors import MemoryPluginError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ray.actor import ActorProxy

    from actors.ray_config import ActorOptions, RayConfig
    from actors.roster import Pingable
    from memory.config import Settings
    from memory.locations import Locations
    from memory.providers.base import ModelInfo

logger = logging.getLogger(__name__)

START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 10.0
FLUSH_DEADLINE_S = 60.0
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
MAX_ANSWERS_AT_ONCE = 8

Shell = TypeVar("Shell")


@dataclass(frozen=True)
class MemorySystem:
    """Every handle of a running memory; keep it as long as the actors shall live."""

    watcher: ActorProxy[Watcher]
    chunker: ActorProxy[Chunker]
    pool: ActorProxy[EmbedderPool]
    workers: tuple[ActorProxy[EmbedderWorker], ...]
    keeper: ActorProxy[IndexKeeper]
    persister: ActorProxy[Persister]
    provider: ActorProxy[ContextProvider]
    emitter: ActorProxy[EventEmitter]
    arguments: tuple[ray.ObjectRef[object], ...]
    """Constructor arguments, which Ray needs again when it restarts an actor."""
    saver: ActorProxy[SaveHandler] | None = None
    """None if saved facts are not handled here, see ``off_reason``."""

    def named(self) -> Mapping[str, Pingable]:
        """Returns the handles by the names the actors carry in Ray."""
        handles: dict[str, Any] = {
            "Watcher": self.watcher,
            "Chunker": self.chunker,
            "EmbedderPool": self.pool,
            **{f"Embedder-{n}": worker for n, worker in enumerate(self.workers)},
            "IndexKeeper": self.keeper,
            "Persister": self.persister,
            "ContextProvider": self.provider,
            "EventEmitter": self.emitter,
            **({"SaveHandler": self.saver} if self.saver else {}),
        }
        return handles

    async def confirm_model(self) -> str:
        """Loads the model on every worker and, if the index asks for it, checks the dimension.

        Returns:
            What was found about the saved index, one line; empty if there is nothing to say.

        Raises:
            EmbeddingError: the model cannot be used.
        """
        clock = SystemClock()
        report = await call(self.keeper.report.remote, clock=clock, deadline_s=START_DEADLINE_S)
        dim = await call(
            lambda: self.pool.warm_up.remote(report.needs_probe),
            clock=clock,
            deadline_s=START_DEADLINE_S,
        )
        if report.needs_probe:
            await call(
                lambda: self.keeper.confirm_dimension.remote(dim),
                clock=clock,
                deadline_s=START_DEADLINE_S,
            )
        return report.reason

    async def stop(self) -> None:
        """Stops in flow order, so that what was embedded is saved: save handler, watcher, chunker.

        The index is saved whatever the others do.

        Raises:
            StoreError: it could not be saved; the last saved one is intact.
        """
        for name, stopping in (
            *((("save handler", self.saver.stop.remote),) if self.saver else ()),
            ("watcher", self.watcher.stop.remote),
            ("chunker", self.chunker.stop.remote),
        ):
            try:
                await call(stopping, clock=SystemClock(), deadline_s=STOP_DEADLINE_S)
            except TimeoutError:
                logger.warning("the %s did not stop in time", name)
            except Exception:
                logger.exception("the %s did not stop cleanly", name)
        try:
            await call(
                self.persister.flush.remote, clock=SystemClock(), deadline_s=FLUSH_DEADLINE_S
            )
        except Exception as error:
            raise StoreError(_not_saved(error)) from error

    def end(self) -> None:
        """Ends every actor, for a program that goes on without them; blocks for a moment."""
        if not ray.is_initialized():  # to kill an actor Ray would even start one
            return
        handles: Any = self.named().values()
        for handle in handles:
            with contextlib.suppress(Exception):  # it is gone, or Ray is
                ray.kill(handle, no_restart=True)


def _not_saved(error: Exception) -> str:
    """Returns one line for the person who stopped the memory."""
    remedy = "what is not in the last saved one is indexed again at the next start"
    match error:
        case TimeoutError():
            reason = f"no answer within {FLUSH_DEADLINE_S:.0f} s"
        case OSError():
            reason = error.strerror or str(error)
            is_full = error.errno in DISK_FULL
            first = "make room on its disk" if is_full else "make the data folder writable"
            remedy = f"{first}; {remedy}"
        case MemoryPluginError():
            reason = str(error)
        case _:
            logger.error("the index was not saved", exc_info=error)
            reason = f"internal error, see {RAY_LOG_NAME}"
    return f"the index was not saved: {reason}; {remedy}"


def start(settings: Settings, locations: Locations, config: RayConfig) -> MemorySystem:
    """Creates the actors on the Ray this process is connected to, and returns at once.

    Raises:
        ConfigError: the configured model is not known, or its key cannot be read.
    """
    memory, actors = settings.memory, config.actors
    factory = _ActorFactory(namespace_of(config, locations.data))
    create = factory.create
    info, access = configured_model(settings)
    num_workers = config.embedder.num_workers()
    workers = tuple(
        create(
            EmbedderWorker,
            f"Embedder-{n}",
            actors.embedder,
            (info, n, access, info.limits.of_worker(n, num_workers)),
            **worker_threads(info, num_workers),
        )
        for n in range(num_workers)
    )
    prices = PoolOptions(memory.embeddings.token_budget, memory.embeddings.price_per_million_tokens)
    pool = create(EmbedderPool, "EmbedderPool", actors.embedder_pool, (info, prices, *workers))
    keeper = create(
        IndexKeeper,
        "IndexKeeper",
        actors.index_keeper,
        (settings, info, locations.data, locations.workspace),
        concurrency_groups={"control": 1, "save": 1, "sync": 1},
    )
    debounce = Debounce(memory.persist_to_disk_delay, memory.persist_to_disk_max_delay)
    persister = create(Persister, "Persister", actors.persister, (locations.data, keeper, debounce))
    work = ChunkerOptions(locations.workspace, memory, info, config.builder)
    chunker = create(Chunker, "Chunker", actors.chunker, (work, keeper, pool, persister))
    provider = create(
        ContextProvider,
        "ContextProvider",
        actors.context_provider,
        (settings, keeper, pool),
        max_concurrency=MAX_ANSWERS_AT_ONCE,
    )
    emitter = create(EventEmitter, "EventEmitter", actors.event_emitter, (locations.data, provider))
    saver = None
    if off_reason(settings) is None:
        saving = (settings, locations.workspace, emitter, provider)
        saver = create(SaveHandler, "SaveHandler", actors.save_handler, saving)
    return MemorySystem(
        watcher=create(Watcher, "Watcher", actors.watcher, (locations.workspace, chunker)),
        chunker=chunker,
        pool=pool,
        workers=workers,
        keeper=keeper,
        persister=persister,
        provider=provider,
        emitter=emitter,
        saver=saver,
        arguments=tuple(factory.arguments),
    )


def worker_threads(info: ModelInfo, num_workers: int) -> dict[str, object]:
    """Returns how much a worker does at once: one batch, or its part of what the provider takes.

    Of a provider it holds one request more, which waits for its turn. The queries of a calibration
    share their group with questions, which must not wait for them.
    """
    if not info.limits.max_concurrent:
        return {"max_concurrency": 1, "concurrency_groups": {"query": 1, "control": 1}}
    batches = info.limits.of_worker(0, num_workers) + NUM_SPARE
    groups = {"query": batches + MAX_ANSWERS_AT_ONCE, "control": 1}
    return {"max_concurrency": batches, "concurrency_groups": groups}


class _ActorFactory:
    """Makes plain classes named actors of one namespace; retries are ours, so Ray makes none."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.arguments: list[ray.ObjectRef[object]] = []
        """Keeps the constructor arguments of every actor alive."""

    def create(
        self,
        shell: type[Shell],
        name: str,
        options: ActorOptions,
        arguments: tuple[object, ...],
        **ray_options: object,
    ) -> ActorProxy[Shell]:
        """Starts one actor; its constructor runs later, in its own process."""
        settings: dict[str, Any] = {**options.model_dump(), "max_task_retries": 0, **ray_options}
        remote: Any = ray.remote(**settings)(shell)
        # Ray needs the arguments again for a restart, and forgets those it made references of
        # itself (ray issue 53727); so the references are ours, and kept.
        references = [ray.put(argument) for argument in arguments]
        self.arguments.extend(references)
        handle: ActorProxy[Shell] = remote.options(name=name, namespace=self._namespace).remote(
            *references
        )
        return handle
