"""How fast is the product's EmbedderPool with one worker on a private Ray?"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.base import ModelInfo

DEADLINE_S = 600


@contextlib.contextmanager
def running(info: ModelInfo) -> Iterator[Callable[[Sequence[str]], NDArray[np.float32]]]:
    """Yields a function that embeds through the pool, from outside the cluster."""
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    from actors.embedder import EmbedderWorker
    from actors.embedder_pool import EmbedderPool

    folder = tempfile.mkdtemp(prefix="mem-")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=128 * 1024 * 1024,
        log_to_driver=False,
        configure_logging=False,
        _temp_dir=folder,
    )
    try:
        remote = ray.remote(num_cpus=0, concurrency_groups={"query": 1, "control": 1})
        worker = remote(EmbedderWorker).remote(info, 0)
        pool = ray.remote(num_cpus=0)(EmbedderPool).remote(info, worker)
        yield lambda texts: ray.get(pool.embed.remote(tuple(texts)), timeout=DEADLINE_S)
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
