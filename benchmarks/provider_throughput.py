"""How near does the pool come to what the latency of a provider permits?

The provider is a process of its own on the loopback interface that answers each request after the
same time. With c requests in flight, n requests cannot take less than ceil(n / c) of these. The
pool, its workers and the SDK are the product's, on a real Ray, and the pool is called as the
Chunker calls it, with up to MAX_TEXTS texts of a file at a time::

    python benchmarks/provider_throughput.py [--latency SECONDS]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import private_ray
from embedding import WORDS
from engine_figures import Findings, Target, table
from measuring import machine

from memory.providers.access import OPENAI_COMPATIBLE, ProviderAccess
from memory.providers.factory import model_info

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.providers.base import ModelInfo

IN_FLIGHT = (1, 4, 16)
TURNS = 20
"""Requests of one run for each that may be in flight."""
ROUNDS = 3
NUM_WORKERS = 2
WORDS_A_TEXT = 20
LEAST_SHARE = 0.9
DEADLINE_S = 120.0


@contextlib.contextmanager
def server(latency_s: float) -> Iterator[str]:
    """Yields the base URL of a provider."""
    script = Path(__file__).parent / "latency_server.py"
    with subprocess.Popen(
        [sys.executable, str(script), str(latency_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def texts(number: int, seed: int) -> tuple[str, ...]:
    """Returns distinct texts of 20 words."""
    chance = random.Random(seed)
    return tuple(
        f"{seed} {each} {' '.join(chance.choices(WORDS, k=WORDS_A_TEXT))}" for each in range(number)
    )


def seconds_of_runs(info: ModelInfo, access: ProviderAccess, num_requests: int) -> list[float]:
    """Returns how long the pool takes for so many full requests, for each of some rounds."""
    import ray

    from actors.embedder import EmbedderWorker
    from actors.embedder_pool import EmbedderPool, PoolOptions
    from actors.indexing import MAX_TEXTS
    from actors.system import worker_threads

    remote = ray.remote(num_cpus=0, **worker_threads(info, NUM_WORKERS))
    workers = [
        remote(EmbedderWorker).remote(
            info, number, access, info.limits.of_worker(number, NUM_WORKERS)
        )
        for number in range(NUM_WORKERS)
    ]
    pool = ray.remote(num_cpus=0)(EmbedderPool).remote(info, PoolOptions(), *workers)
    number, taken = num_requests * info.limits.max_inputs, []
    for turn in range(ROUNDS + 1):
        asked = texts(number, turn)
        begin = time.perf_counter()
        answers = ray.get(
            [
                pool.embed.remote(asked[start : start + MAX_TEXTS])
                for start in range(0, number, MAX_TEXTS)
            ],
            timeout=DEADLINE_S,
        )
        taken.append(time.perf_counter() - begin)
        assert sum(len(answer.vectors) for answer in answers) == number
    for actor in (pool, *workers):
        ray.kill(actor)
    return taken[1:]  # the first one imports the SDK


def measured(latency_s: float) -> Findings:
    """Returns the figures for each number of requests in flight."""
    findings = Findings()
    with server(latency_s) as url, private_ray.running():
        access = ProviderAccess(OPENAI_COMPATIBLE, url, None)
        known = model_info("far", "any", access)
        for in_flight in IN_FLIGHT:
            info = replace(known, limits=replace(known.limits, max_concurrent=in_flight))
            best_s = TURNS * latency_s
            taken_s = statistics.median(seconds_of_runs(info, access, TURNS * in_flight))
            findings.add(
                f"share of the optimum with {in_flight} in flight",
                best_s / taken_s,
                "",
                anchor=("seconds that latency permits", best_s),
                target=Target(least=LEAST_SHARE),
            )
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2, help="of a request, seconds")
    options = parser.parse_args()
    findings = measured(options.latency)
    about = machine(("ray", "openai"))
    print(f"{about['date']}, latency {options.latency} s, load {os.getloadavg()[0]:.1f}")
    print(table(findings.figures))


if __name__ == "__main__":
    main()
