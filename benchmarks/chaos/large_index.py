"""Does a save of a very large index leave the event loop free, and does it take memory (FAULTS 19)?

    python benchmarks/chaos/large_index.py [--chunks N] [--dim N]

An index of short texts with random vectors (by default 320,000 of dimension 1,536, which is a
snapshot of 1 GB) is saved as the keeper does it, in a thread beside the event loop, with one for
the checksums, while the loop ticks and searches come in. Prints size and time of the save beside a
plain write of as many bytes, how late the loop got, how long a search took meanwhile and before,
and by how much the resident memory grew. Exits with 1 if one tick in a hundred was a quarter of a
second late, or if the save took a tenth of the snapshot in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory.analysis import Analyzer
from memory.bulk import build_batch
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import Query
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNKS_A_FILE = 20
FILES_A_BATCH = 250
TICK_S = 0.005
MOST_LAG_S = 0.25
MOST_GROWTH = 0.1
NUM_WORDS = 20_000


def filled(num_chunks: int, dim: int) -> MemoryIndex:
    """Returns an index of random texts and vectors."""
    chance = np.random.default_rng(0)
    analyzer = Analyzer("english")
    index = MemoryIndex(HashEmbedder(dim).info, analyzer, IndexSettings(), epoch="large")
    for first in range(0, num_chunks // CHUNKS_A_FILE, FILES_A_BATCH):
        words = chance.integers(NUM_WORDS, size=(FILES_A_BATCH, CHUNKS_A_FILE, 8))
        files = tuple(
            parsed(f"{first + number}.md", [" ".join(f"w{word}" for word in text) for text in each])
            for number, each in enumerate(words)
        )
        batch = build_batch(analyzer, files)
        hashes = tuple({chunk.content_hash: 0 for file in files for chunk in file.chunks})
        vectors = chance.standard_normal((len(hashes), dim), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        index.add(batch, hashes, vectors)
    return index


def resident_mb() -> float:
    """Returns the process's own pages."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


def searched_s(index: MemoryIndex, vector: np.ndarray) -> float:
    """Returns how long a search takes."""
    began = time.perf_counter()
    index.search(Query("w17 w123 w4711", 10), vector)
    return time.perf_counter() - began


class Watch:
    """What the event loop and the memory go through while something runs beside them."""

    def __init__(self) -> None:
        self.lags_s: list[float] = []
        self.most_cpu_s = 0.0
        self.peak_mb = 0.0

    async def until(self, done: asyncio.Future[int]) -> None:
        """Ticks until something is done."""
        while not done.done():
            began, cpu_began = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_S)
            self.lags_s.append(time.perf_counter() - began - TICK_S)
            self.most_cpu_s = max(self.most_cpu_s, time.thread_time() - cpu_began)
            self.peak_mb = max(self.peak_mb, resident_mb())


def asked(index: MemoryIndex, dim: int, ended: threading.Event) -> Iterator[float]:
    """Yields how long each search takes until the event."""
    vector = np.full(dim, dim**-0.5, np.float32)
    while not ended.is_set():
        yield searched_s(index, vector)


async def saved(storage: IndexStorage, index: MemoryIndex, dim: int) -> tuple[float, Watch, list]:
    """Saves in a thread; returns the seconds, what the loop saw and the searches meanwhile."""
    watch, ended, loop = Watch(), threading.Event(), asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as helper, ThreadPoolExecutor(2) as threads:
        searches = loop.run_in_executor(threads, lambda: list(asked(index, dim, ended)))
        began = time.perf_counter()
        saving = loop.run_in_executor(threads, storage.save, 1.0, helper)
        await watch.until(saving)
        seconds = time.perf_counter() - began
        ended.set()
        return seconds, watch, await searches


def plain_s(path: Path, num_bytes: int) -> float:
    """Returns how long it takes to write and flush as many bytes."""
    block, began = os.urandom(1 << 20), time.perf_counter()
    with path.open("wb") as file:
        for _ in range(num_bytes >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=320_000)
    parser.add_argument("--dim", type=int, default=1_536)
    options = parser.parse_args()
    began = time.perf_counter()
    index = filled(options.chunks, options.dim)
    print(f"{options.chunks:,} chunks built in {time.perf_counter() - began:.0f} s", flush=True)
    vector = np.full(options.dim, options.dim**-0.5, np.float32)
    before = statistics.median(searched_s(index, vector) for _ in range(9))
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        folder = Path(scratch)
        storage = IndexStorage(folder, index, saved_revision=-1, saved_at=0.0, complete=False)
        for name in ("first", "second"):
            resident = resident_mb()
            seconds, watch, searches = asyncio.run(saved(storage, index, options.dim))
            size = (folder / SNAPSHOT_NAME).stat().st_size
            plain = plain_s(folder / "plain", size)
            growth = watch.peak_mb - resident
            print(
                f"{name} save: {size / 1e6:,.0f} MB in {seconds:.1f} s, plain write {plain:.1f} s; "
                f"loop at most {1000 * max(watch.lags_s):.0f} ms late, median "
                f"{1000 * statistics.median(watch.lags_s):.1f} ms, at most "
                f"{1000 * watch.most_cpu_s:.0f} ms of its own work; search "
                f"{1000 * statistics.median(searches):.0f} ms (before {1000 * before:.0f} ms); "
                f"{growth:,.0f} MB more resident",
                flush=True,
            )
    is_late = statistics.quantiles(watch.lags_s, n=100)[98] >= MOST_LAG_S
    return int(is_late or growth >= MOST_GROWTH * size / 1e6)


if __name__ == "__main__":
    sys.exit(main())
