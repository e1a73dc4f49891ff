"""Does the index end equal to the files, whatever happens to them and however fast?

Random operations on a folder of its own, with real events of the kernel, then a comparison of every
file and every vector (``memory check --rebuild-compare``). The actors run in this process; a hash
stands for the model.

Prints the operations a second that were reached, the seconds until the index was equal after the
last one, and the differences; exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from file_operations import operate
from inline_system import HashModel, InlineSystem

from memory.checking import Patience, Report, check_files
from memory.chunk_limits import chunk_limits
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.globs import Globs
from memory.providers.factory import model_info
from memory.recomputing import Recomputing
from memory.workspace import Workspace

INFO = model_info("local", "all-minilm-l6-v2")
START_S = 30.0
LONGEST_WAIT_S = 90.0


async def run(options: argparse.Namespace, scratch: Path) -> dict[str, object]:
    """Returns the figures of one run."""
    root, outside, data = (scratch / name for name in ("workspace", "outside", "data"))
    for folder in (root, outside, data):
        folder.mkdir()
    memory = MemorySettings(
        embeddings=EmbeddingsSettings(provider="local"), reconcile_interval=options.reconcile
    )
    system = InlineSystem.start(root, data, Settings(memory=memory), INFO)
    try:
        await until_watched(system)
        act = partial(
            operate,
            root,
            outside,
            seed=options.seed,
            count=options.operations,
            rate=options.rate,
        )
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            running = asyncio.get_running_loop().run_in_executor(process, act)
            lasted_s, done = await running
        begin = time.monotonic()
        report = await asyncio.to_thread(compare, system, root)
        waited_s = time.monotonic() - begin
        watched = await system.watcher.status()
        chunked = await system.chunker.status.remote()
    finally:
        await system.stop()
    return {
        "operations": options.operations,
        "operations_per_s": round(options.operations / lasted_s),
        "files": report.num_files,
        "chunks": report.num_chunks,
        "texts_embedded": system.model.num_texts,
        "events": watched.num_events,
        "overflows": watched.num_overflows,
        "observer_restarts": watched.num_restarts,
        "comparisons": chunked.num_reconciles,
        "equal_after_s": round(waited_s, 1),
        "differences": [difference._asdict() for difference in report.differences],
        "unsettled": report.unsettled,
        "kinds": dict(done.most_common()),
    }


async def until_watched(system: InlineSystem) -> None:
    """Waits until events arrive."""
    async with asyncio.timeout(START_S):
        while (await system.watcher.status()).mode == "waiting":  # noqa: ASYNC110 - only asked
            await asyncio.sleep(0.05)


def compare(system: InlineSystem, root: Path) -> Report:
    """Waits until the index follows, and compares everything."""
    workspace, limits = Workspace(root, exclude=Globs()), chunk_limits(None, INFO)
    patience = Patience(LONGEST_WAIT_S, time.monotonic, time.sleep)
    report = check_files(workspace, limits, system, patience)
    again = Recomputing(workspace, limits, HashModel(INFO), is_exact=True)
    report.differences += again.differences(system, report.equal)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=200.0, help="operations a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reconcile", type=float, default=60.0, help="seconds between comparisons")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as scratch:
        found = asyncio.run(run(options, Path(scratch)))
    print(json.dumps(found, indent=2))
    print(f"{found['operations']} operations, {len(found['differences'])} differences")
    return int(bool(found["differences"]))


if __name__ == "__main__":
    sys.exit(main())
