"""Is half a file, or a mixture of two versions, ever what the index ends with?

    python benchmarks/chaos/rewriting.py [--seconds N] [--files N] [--seed N]

A process saves files in place again and again, each in some pieces with pauses, as fast as it can,
while they are indexed. Each version names itself in every section, so that the index itself shows
what a record holds. Prints the versions written, how often a record held a part of a version while
it was being written (that is what the disk held), and how often sections of two versions stood in
one record. Exits with 1 if that ever happened, or if any file differs afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from inline_system import InlineSystem
from watching import INFO, compare, until_watched

from memory.config import EmbeddingsSettings, MemorySettings, Settings

SECTIONS = 6
LOOK_S = 0.02
LONGEST_PAUSE_S = 0.005


def text_of(version: int) -> str:
    """Returns a version of a file; each has another length."""
    sections = (f"## Part {n} {version}\n\n{'x' * (version % 97)}\n\n" for n in range(1, SECTIONS))
    return f"# Part 0 {version}\n\nText.\n\n" + "".join(sections)


def rewrite(paths: list[Path], seconds: float, seed: int) -> int:
    """Saves files in place until the time is over; returns the number of versions."""
    chance, end, version = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        version += 1
        text = text_of(version)
        borders = sorted(chance.sample(range(len(text)), 2))
        with chance.choice(paths).open("w") as file:
            for first, last in zip((0, *borders), (*borders, len(text)), strict=True):
                file.write(text[first:last])
                file.flush()
                time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
    return version


async def look(system: InlineSystem, names: list[str], seen: dict[str, int]) -> None:
    """Counts for ever what records hold."""
    while True:
        for name in names:
            found = await system.keeper.chunks.remote(name)
            trails = [chunk.headlines.rsplit("#", 1)[1] for chunk in found[1]] if found else []
            versions = {trail.split()[2] for trail in trails if len(trail.split()) > 2}
            # The last heading may be cut off within its number.
            whole = {trail.split()[2] for trail in trails[:-1] if len(trail.split()) > 2}
            seen["looks"] += 1
            seen["parts"] += bool(versions) and len(trails) < SECTIONS
            seen["mixtures"] += len(whole) > 1
        await asyncio.sleep(LOOK_S)


async def run(options: argparse.Namespace, scratch: Path) -> dict[str, int | float]:
    """Returns the figures."""
    root, data = scratch / "workspace", scratch / "data"
    root.mkdir()
    data.mkdir()
    names = [f"note-{number}.md" for number in range(options.files)]
    memory = MemorySettings(embeddings=EmbeddingsSettings(provider="local"))
    system = InlineSystem.start(root, data, Settings(memory=memory), INFO)
    seen = {"looks": 0, "parts": 0, "mixtures": 0}
    try:
        await until_watched(system)
        looking = asyncio.create_task(look(system, names, seen))
        act = partial(rewrite, [root / name for name in names], options.seconds, options.seed)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            versions = await asyncio.get_running_loop().run_in_executor(process, act)
        began = time.monotonic()
        report = await asyncio.to_thread(compare, system, root)
        waited_s = time.monotonic() - began
        looking.cancel()
    finally:
        await system.stop()
    return {
        "versions": versions,
        "texts_embedded": system.model.num_texts,
        **seen,
        "equal_after_s": round(waited_s, 1),
        "differences": len(report.differences),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        found = asyncio.run(run(options, Path(scratch)))
    print(json.dumps(found, indent=2))
    print(f"{found['mixtures']} mixtures, {found['differences']} differences")
    return int(bool(found["mixtures"] or found["differences"]))


if __name__ == "__main__":
    sys.exit(main())
