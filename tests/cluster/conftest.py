"""One Ray for all cluster tests, and a running memory per test that asks for one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import psutil
import pytest

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

from typing import TYPE_CHECKING

import ray

from actors import system
from actors.ray_config import EmbedderOptions, RayConfig
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.locations import Locations
from tests.cluster.running import Running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Starts Ray once; afterwards no process of it may be left."""
    folder = Path(tempfile.mkdtemp(prefix="mem-test-"))  # 0700, and short: sockets lie below it
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        namespace=f"test-{os.getpid()}",
        object_store_memory=128 * 1024 * 1024,
        log_to_driver=False,
        configure_logging=False,
        _temp_dir=str(folder),
        runtime_env={"worker_process_setup_hook": "actors.logs.configure"},
    )
    children = psutil.Process().children(recursive=True)
    yield
    ray.shutdown()
    _gone, alive = psutil.wait_procs(children, timeout=20)
    shutil.rmtree(folder, ignore_errors=True)
    assert alive == []


@pytest.fixture
def settings() -> Settings:
    return Settings(
        memory=MemorySettings(
            embeddings=EmbeddingsSettings(provider="local"),
            persist_to_disk_delay=0.3,
            reconcile_interval=2.0,
        )
    )


@pytest.fixture
def ray_config() -> RayConfig:
    return RayConfig(embedder=EmbedderOptions(workers=1))


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    workspace, data = tmp_path / "workspace", tmp_path / "data"
    workspace.mkdir()
    data.mkdir()
    return Locations(tmp_path / "config.yml", workspace, data)


@pytest.fixture
def running(
    cluster: None, settings: Settings, locations: Locations, ray_config: RayConfig
) -> Iterator[Running]:
    """A memory over a few files, ready to be disturbed."""
    for number in range(6):
        path = locations.workspace / f"wiki/note-{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Note {number}\n\nAbout the number {number}.\n\n## Detail\n\nMore.\n")
    memory = Running(system.start(settings, locations, ray_config), settings, locations)
    memory.wait_until_equal()
    yield memory
    memory.end()
