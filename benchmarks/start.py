"""How long does a start on an unchanged workspace take, once the keeper is there?

Files and vectors are made up, the actors and their Ray are real; no model is loaded. The clock of
``ready`` starts at the keeper's first answer, that of the first answer when the actors are created.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import engine_index
import private_ray
from engine_corpus import INFO, Material, update_of
from engine_figures import Findings, Target, table
from measuring import machine, seconds

from memory.chunk_limits import chunk_limits
from memory.config import EmbeddingsSettings, MemorySettings, Settings
from memory.globs import Globs
from memory.locations import Locations
from memory.markdown import parse_file
from memory.messages import Query
from memory.workspace import SourceFile, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

SECTIONS_A_FILE = 10
DEADLINE_S = 120.0
POLL_S = 0.01
READY_MOST_S = 2.0


def write_files(folder: Path, num_files: int) -> None:
    """Writes markdown files of ten sections."""
    for parsed in Material(num_files * SECTIONS_A_FILE).parsed_files():
        sections = (
            f"{'#' if not number else '##'} {chunk.headlines.split('# ')[-1]}\n\n{chunk.content}\n"
            for number, chunk in enumerate(parsed.chunks)
        )
        path = folder / parsed.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(sections))


def index_files(workspace: Workspace, data: Path) -> int:
    """Saves the index of a workspace; returns its number of chunks."""
    index = engine_index.empty()
    limits = chunk_limits(None, INFO)
    for stamp in workspace.scan().files:
        source = workspace.read(stamp.raw_path)
        if isinstance(source, SourceFile):
            index.apply(update_of(parse_file(source, limits=limits)))
    engine_index.keep(data, index)
    return index.status().num_chunks


def until(condition: Callable[[], object]) -> float:
    """Returns the seconds until a condition holds."""
    begin = time.perf_counter()
    while not condition():
        if time.perf_counter() - begin > DEADLINE_S:
            raise TimeoutError
        time.sleep(POLL_S)
    return time.perf_counter() - begin


def measured(num_files: int, scratch: Path) -> Findings:
    """Returns the figures of one start."""
    folder, data = scratch / "workspace", scratch / "data"
    data.mkdir()
    write_files(folder, num_files)
    workspace = Workspace(folder, exclude=Globs(()))
    num_chunks = index_files(workspace, data)
    scan_s = seconds(workspace.scan)
    settings = Settings(
        memory=MemorySettings(embeddings=EmbeddingsSettings(provider=INFO.provider))
    )
    locations = Locations(config=scratch / "config.yml", workspace=folder, data=data)
    findings = Findings()
    with private_ray.running():
        import ray

        from actors.ray_config import load_ray_config
        from actors.system import start

        begin = time.perf_counter()
        system = start(settings, locations, load_ray_config(scratch))
        asked = system.keeper.search.remote(Query("harbour", 5), None)
        ray.get(asked, timeout=DEADLINE_S)
        answered_s = time.perf_counter() - begin
        ready_s = until(lambda: ray.get(system.chunker.status.remote(), timeout=DEADLINE_S).ready)
        embedded = ray.get(system.pool.status.remote(), timeout=DEADLINE_S).num_embedded
    findings.add(f"first answer of {num_chunks:,} chunks, with Ray's processes", answered_s, "s")
    findings.add(
        f"{num_files:,} unchanged files ready after it",
        ready_s,
        "s",
        anchor=("one scan of them", scan_s),
        target=Target(most=READY_MOST_S),
    )
    findings.add("texts embedded", embedded, "", target=Target(most=0))
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=6_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mem-start-") as scratch:
        findings = measured(options.files, Path(scratch))
    about = machine(("ray", "numpy"))
    print(f"{about['date']}, load {os.getloadavg()[0]:.1f}")
    print(table(findings.figures))


if __name__ == "__main__":
    main()
