"""How long does a stop take amid embedding, and is what was done on disk then (FAULTS 18)?

Again and again the actors, in one process, index a folder with a model that takes up to half a
minute for a request, and are stopped at a random moment as ``memory stop`` does::

    python benchmarks/chaos/stopping.py [--stops N] [--seed N]

Prints median, p99 and maximum of a stop in seconds, and everything that was wrong: a file that the
index had when the stop began and that the next owner does not find. Exits with 1 if anything was,
or if the p99 is not below 5 s.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inline_system import Handle, InlineSystem, Worker

from actors.system import MemorySystem
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.reader import SnapshotReader
from tests.doubles import HashEmbedder

if TYPE_CHECKING:
    from inline_system import HashModel

    from actors.embedder import Vectors

SETTINGS = Settings(memory=MemorySettings(embeddings=EmbeddingsSettings(provider="local")))
INFO = HashEmbedder().info
NUM_FILES = 60
LONGEST_REQUEST_S = 30.0
SLOW_SHARE = 0.1
LONGEST_LIFE_S = 2.0
MOST_S = 5.0


class SlowWorker(Worker):
    """Takes a moment for most requests and half a minute for some."""

    def __init__(self, model: HashModel, chance: random.Random) -> None:
        super().__init__(model)
        self._chance = chance
        self.is_busy = asyncio.Event()

    async def embed(self, texts: tuple[str, ...]) -> Vectors:  # type: ignore[override]
        """Waits as a provider does."""
        self.is_busy.set()
        is_slow = self._chance.random() < SLOW_SHARE
        await asyncio.sleep(LONGEST_REQUEST_S if is_slow else 0.01)
        return super().embed(texts)


async def one_stop(root: Path, data: Path, chance: random.Random) -> tuple[float, int, int]:
    """Starts and stops; returns the seconds of the stop, the files indexed and those lost."""
    workers: list[SlowWorker] = []

    def worker_of(model: HashModel) -> SlowWorker:
        workers.append(SlowWorker(model, chance))
        return workers[-1]

    inline = InlineSystem.start(root, data, SETTINGS, INFO, worker_of)
    unused: Any = None
    system = MemorySystem(
        watcher=Handle(inline.watcher),
        chunker=inline.chunker,
        pool=unused,
        workers=(),
        keeper=inline.keeper,
        persister=inline.persister,
        provider=unused,
        emitter=unused,
        arguments=(),
    )
    await workers[0].is_busy.wait()
    await asyncio.sleep(chance.uniform(0, LONGEST_LIFE_S))
    indexed = {file.path for file in await inline.keeper.files.remote()}
    began = time.perf_counter()
    await system.stop()
    stop_s = time.perf_counter() - began
    with SnapshotReader(data) as reader:
        found = {file.path for file in reader.files()}
    return stop_s, len(indexed), len(indexed - found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    stops, num_indexed, num_lost = [], 0, 0
    for _ in range(options.stops):
        with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
            root, data = Path(scratch, "workspace"), Path(scratch, "data")
            root.mkdir()
            data.mkdir()
            for number in range(NUM_FILES):
                text = "\n\n".join(f"# Part {part}\n\nText {number}." for part in range(5))
                (root / f"{number}.md").write_text(text)
            figures = asyncio.run(one_stop(root, data, chance))
        stops.append(figures[0])
        num_indexed += figures[1]
        num_lost += figures[2]
    p99 = statistics.quantiles(stops, n=100, method="inclusive")[98] if len(stops) > 1 else stops[0]
    print(
        f"{len(stops)} stops: median {statistics.median(stops):.3f} s, p99 {p99:.3f} s, "
        f"maximum {max(stops):.3f} s; {num_indexed:,} files were indexed by then, {num_lost} lost"
    )
    return int(num_lost > 0 or p99 >= MOST_S)


if __name__ == "__main__":
    sys.exit(main())
