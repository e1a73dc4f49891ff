"""How near does the pool with the local model come to bare loops on as many cores?"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING

import private_ray
from embedding import generated_texts
from measuring import seconds

from memory.providers.factory import model_info, open_embedder
from memory.providers.local import LOCAL, MINILM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

INFO = model_info(LOCAL, MINILM)
DEADLINE_S = 600
REPEATS = 5


def figures(texts_a_worker: int) -> dict[str, float]:
    """Returns texts a second and ratios, for one worker and for one on each core."""
    found: dict[str, float] = {}
    for num_workers in sorted({1, os.cpu_count() or 1}):
        loops, pool = _texts_per_s(texts_a_worker, num_workers)
        of = f", {num_workers} at once"
        found |= {f"bare loop texts/s{of}": loops, f"pool texts/s{of}": pool}
        found[f"pool / bare loop{of}"] = pool / loops
    return found


def _texts_per_s(texts_a_worker: int, num_workers: int) -> tuple[float, float]:
    """Returns the medians of bare loops and of the pool, which take turns."""
    texts = generated_texts(texts_a_worker * num_workers)
    bare, pooled = [], []
    with _pool(num_workers) as embed, _bare_loops(len(texts), num_workers) as embed_bare:
        embed(texts[: 2 * num_workers])
        for _ in range(REPEATS):
            bare.append(seconds(embed_bare))
            pooled.append(seconds(lambda: embed(texts)))
    return len(texts) / statistics.median(bare), len(texts) / statistics.median(pooled)


@contextlib.contextmanager
def _pool(num_workers: int) -> Iterator[Callable[[Sequence[str]], object]]:
    """Yields a function that embeds through the pool, from outside the cluster."""
    with private_ray.running():
        import ray

        from actors.embedder import EmbedderWorker
        from actors.embedder_pool import EmbedderPool, PoolOptions
        from actors.system import worker_threads

        remote = ray.remote(num_cpus=0, **worker_threads(INFO, num_workers))
        workers = [remote(EmbedderWorker).remote(INFO, number) for number in range(num_workers)]
        pool = ray.remote(num_cpus=0)(EmbedderPool).remote(INFO, PoolOptions(), *workers)
        yield lambda texts: ray.get(pool.embed.remote(tuple(texts)), timeout=DEADLINE_S)


@contextlib.contextmanager
def _bare_loops(num_texts: int, num_processes: int) -> Iterator[Callable[[], None]]:
    """Yields a function that has processes with loaded models embed a part of the texts each."""
    with contextlib.ExitStack() as stack:
        loops = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, __file__, str(num_texts), str(number), str(num_processes)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(num_processes)
        ]

        def embed() -> None:
            for loop in loops:
                assert loop.stdin is not None
                print(file=loop.stdin, flush=True)
            for loop in loops:
                assert loop.stdout is not None
                assert loop.stdout.readline()

        embed()
        yield embed


def _loop() -> None:
    """Embeds its part of the texts for every line of the input."""
    num_texts, number, num_processes = map(int, sys.argv[1:])
    embedder, texts = open_embedder(INFO), generated_texts(num_texts)[number::num_processes]
    for _ in sys.stdin:
        embedder.embed_documents(texts)
        print("done", flush=True)


if __name__ == "__main__":
    _loop()
