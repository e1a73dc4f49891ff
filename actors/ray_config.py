"""What does ray_config.yaml allow, and what do its values mean?

A file of that name beside the configuration replaces the one that comes with the package; groups it
leaves out keep the packaged values.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from pydantic import Field, ValidationError

from memory.config import Group
from memory.config_complaints import complaints
from memory.errors import ConfigError
from memory.yaml_file import read_yaml

RAY_CONFIG_NAME = "ray_config.yaml"
MAX_DEFAULT_WORKERS = 4
"""A worker holds a model: about 350 MB with the default one."""


class ClusterOptions(Group):
    """``cluster``: which Ray is used."""

    address: str = "local"
    """``local`` for a private Ray, else the address of a running one."""
    namespace: str = ""
    """Ray namespace; empty for one per data folder."""
    object_store_mi_b: int = Field(default=256, ge=80, alias="objectStoreMiB")
    """Size of a private Ray's object store, MiB."""


class DashboardOptions(Group):
    """``dashboard``: Ray's web page (a private Ray only)."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = Field(default=8265, ge=1, le=65_535)


class EmbedderOptions(Group):
    """``embedder``: size of the pool."""

    workers: int = Field(default=0, ge=0, le=1_000)
    """Number of Embedder workers; 0 for one per CPU core, at most MAX_DEFAULT_WORKERS."""

    def num_workers(self) -> int:
        """Returns the number of workers to start."""
        return self.workers or min(os.cpu_count() or 1, MAX_DEFAULT_WORKERS)


class BuilderOptions(Group):
    """``builder``: Ray tasks that prepare many new files for the index."""

    tasks: int = Field(default=0, ge=0, le=1_000)
    """Tasks at the same time; 0 for one per CPU core, at most MAX_DEFAULT_WORKERS."""
    num_cpus: float = Field(default=0.0, ge=0)
    resources: dict[str, float] = Field(default_factory=dict)

    def num_tasks(self) -> int:
        """Returns the most tasks at the same time."""
        return self.tasks or min(os.cpu_count() or 1, MAX_DEFAULT_WORKERS)


class ActorOptions(Group):
    """``actors.<name>``: resources and restarts of one kind of actor."""

    num_cpus: float = Field(default=0.0, ge=0)
    num_gpus: float = Field(default=0.0, ge=0)
    resources: dict[str, float] = Field(default_factory=dict)
    max_restarts: int = Field(default=-1, ge=-1)
    """-1 restarts without limit."""


class Actors(Group):
    """``actors``: one entry per kind of actor, under the name the dashboard shows."""

    watcher: ActorOptions = Field(default=ActorOptions(), alias="Watcher")
    chunker: ActorOptions = Field(default=ActorOptions(), alias="Chunker")
    embedder: ActorOptions = Field(default=ActorOptions(), alias="Embedder")
    embedder_pool: ActorOptions = Field(default=ActorOptions(), alias="EmbedderPool")
    index_keeper: ActorOptions = Field(default=ActorOptions(), alias="IndexKeeper")
    persister: ActorOptions = Field(default=ActorOptions(), alias="Persister")
    context_provider: ActorOptions = Field(default=ActorOptions(), alias="ContextProvider")
    event_emitter: ActorOptions = Field(default=ActorOptions(), alias="EventEmitter")
    save_handler: ActorOptions = Field(default=ActorOptions(), alias="SaveHandler")


class RayConfig(Group):
    """Everything in ray_config.yaml."""

    cluster: ClusterOptions = ClusterOptions()
    dashboard: DashboardOptions = DashboardOptions()
    embedder: EmbedderOptions = EmbedderOptions()
    builder: BuilderOptions = BuilderOptions()
    actors: Actors = Actors()


def load_ray_config(folder: Path) -> RayConfig:
    """Reads ``ray_config.yaml`` of a folder, else the packaged one.

    Raises:
        ConfigError: one line per problem, each naming file, line, key and remedy.
    """
    own = folder / RAY_CONFIG_NAME
    path = own if own.is_file() else packaged_ray_config()
    file = read_yaml(path)
    try:
        return RayConfig.model_validate(file.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError("\n".join(complaints(error, path, file, RayConfig))) from None


def packaged_ray_config() -> Path:
    """Returns the ``ray_config.yaml`` of the wheel, or of the checkout for an editable install."""
    packaged = Path(str(resources.files("actors") / RAY_CONFIG_NAME))
    return packaged if packaged.is_file() else Path(__file__).parent.parent / RAY_CONFIG_NAME
