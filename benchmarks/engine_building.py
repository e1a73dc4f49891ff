"""How fast is an empty index filled, in one process and by Ray tasks, and how fast is Orama?"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import engine_corpus
import engine_index
import engine_orama
import private_ray
from engine_corpus import ENGLISH
from engine_figures import NO_TARGET, Findings, Target
from measuring import interleaved_ms, percentiles, seconds

from memory.analysis import Analyzer
from memory.bulk import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from engine_corpus import Material

    from memory.bulk import FileBatch
    from memory.index import MemoryIndex
    from memory.messages import FileUpdate, ParsedFile

    Prepare = Callable[[Sequence[FileUpdate]], Callable[[], FileBatch]]
    """Begins to prepare files, and gives what waits for the end of it."""

ORAMA_SIZES = (2_000, 10_000)
FILES_A_BATCH = 100
"""A thousand chunks."""
DEADLINE_S = 600
_ORAMA_FIGURES = "orama.json"


def orama(folder: Path, material: Material) -> Findings:
    """Filling and hybrid searches of small indexes, beside Orama's of the same chunks."""
    sizes = sorted({min(size, material.num_chunks) for size in ORAMA_SIZES})
    package = folder / "orama"
    package.mkdir(exist_ok=True)
    missing = engine_orama.install(package)
    if missing:
        return Findings(notes=[f"Orama is left out: {missing}"])
    peer = engine_orama.measured(package, material, sizes)
    (folder / _ORAMA_FIGURES).write_text(json.dumps(peer.inserts_a_s(sizes[-1])))
    findings = Findings()
    with _ray_tasks() as tasks:
        for size in sizes:
            part = replace(material, num_chunks=size)
            _add_rates(findings, part, tasks, ("Orama", peer.inserts_a_s(size)))
    index, _ = engine_index.built(replace(material, num_chunks=sizes[-1]))
    ours = percentiles(interleaved_ms({"ours": engine_index.searches(index, material)})["ours"])
    for cut, target in (("p50 ms", Target(ratio_most=1 / 30)), ("p95 ms", NO_TARGET)):
        findings.add(
            f"hybrid {cut.removesuffix(' ms')} at {sizes[-1]:,}",
            ours[cut],
            "ms",
            anchor=("Orama", peer.hybrid[cut]),
            target=target,
        )
    return findings


def building(folder: Path, material: Material) -> Findings:
    """The same for all chunks; Orama's rate is that of fewer."""
    known = folder / _ORAMA_FIGURES
    anchor = None
    if known.exists():
        anchor = (f"Orama at {ORAMA_SIZES[-1]:,}", json.loads(known.read_text()))
    findings = Findings()
    with _ray_tasks() as tasks:
        _add_rates(findings, material, tasks, anchor)
    index, duration = engine_index.built(material)
    rate = index.status().num_chunks / duration
    findings.add("edit by edit, for comparison", rate, "chunks/s", anchor=anchor)
    engine_index.keep(folder / f"data-{material.num_chunks}", index)
    return findings


@dataclass(frozen=True)
class _Tasks:
    prepare: Prepare
    count: int


def _add_rates(
    findings: Findings, material: Material, tasks: _Tasks, anchor: tuple[str, float] | None
) -> None:
    """Adds how many chunks a second are added, vectors given, by one process and by tasks."""
    updates = list(material.updates())
    num_chunks = sum(len(update.parsed.chunks) for update in updates if update.parsed)
    for name, prepare, at_once, target in (
        ("in Ray tasks", tasks.prepare, tasks.count, Target(ratio_least=2)),
        ("in one process", _here(), 1, NO_TARGET),
    ):
        index = engine_index.empty()
        duration = seconds(partial(_fill, index, updates, prepare, at_once))
        if index.status().num_chunks != num_chunks:
            raise ValueError("chunks are missing")
        findings.add(
            f"bulk build of {num_chunks:,} {name}",
            num_chunks / duration,
            "chunks/s",
            anchor=anchor,
            target=target,
        )


def _fill(
    index: MemoryIndex, updates: Sequence[FileUpdate], prepare: Prepare, at_once: int
) -> None:
    """Adds files as the Chunker and the keeper do: some batches are prepared while one is added."""
    waiting: deque[tuple[list[FileUpdate], Callable[[], FileBatch]]] = deque()
    batches = iter(_batches(updates))
    for batch in islice(batches, at_once):
        waiting.append((batch, prepare(batch)))
    while waiting:
        files, prepared = waiting.popleft()
        ready = prepared()
        for batch in islice(batches, 1):
            waiting.append((batch, prepare(batch)))
        index.add(ready, *engine_corpus.vectors_of(files))


def _batches(updates: Sequence[FileUpdate]) -> Iterator[list[FileUpdate]]:
    for start in range(0, len(updates), FILES_A_BATCH):
        yield list(updates[start : start + FILES_A_BATCH])


def _here() -> Prepare:
    analyzer = Analyzer(ENGLISH)
    return lambda updates: partial(build_batch, analyzer, _files(updates))


@contextlib.contextmanager
def _ray_tasks() -> Iterator[_Tasks]:
    """Yields the product's Ray tasks, whose processes have started."""
    with private_ray.running():
        import ray

        from actors.building import ray_tasks
        from actors.ray_config import BuilderOptions

        options = BuilderOptions()
        build: Any = ray_tasks(ENGLISH, options)

        def prepare(updates: Sequence[FileUpdate]) -> Callable[[], FileBatch]:
            return partial(ray.get, build(_files(updates)), timeout=DEADLINE_S)

        first = list(engine_corpus.Material(1_000).updates())
        for wait in [prepare(first) for _ in range(options.num_tasks())]:
            wait()
        yield _Tasks(prepare, options.num_tasks())


def _files(updates: Sequence[FileUpdate]) -> tuple[ParsedFile, ...]:
    return tuple(update.parsed for update in updates if update.parsed is not None)
