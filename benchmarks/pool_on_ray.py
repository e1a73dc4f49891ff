"""How fast is the product's EmbedderPool with one worker on a private Ray?"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import private_ray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memory.providers.base import ModelInfo

DEADLINE_S = 600


@contextlib.contextmanager
def running(info: ModelInfo) -> Iterator[Callable[[Sequence[str]], NDArray[np.float32]]]:
    """Yields a function that embeds through the pool, from outside the cluster."""
    with private_ray.running():
        import ray

        from actors.embedder import EmbedderWorker
        from actors.embedder_pool import EmbedderPool, PoolOptions

        remote = ray.remote(num_cpus=0, concurrency_groups={"query": 1, "control": 1})
        worker = remote(EmbedderWorker).remote(info, 0)
        pool = ray.remote(num_cpus=0)(EmbedderPool).remote(info, PoolOptions(), worker)
        yield lambda texts: ray.get(pool.embed.remote(tuple(texts)), timeout=DEADLINE_S).vectors
