"""What do saving, opening and holding the index cost?"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import engine_corpus
import engine_index
from engine_figures import Findings, Target
from engine_peers import write_synced
from measuring import cold_seconds, median_seconds, memory_now, peak_mb_during, resident_mb, seconds

from memory.messages import Query

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine_corpus import Material
    from measuring import Memory

    from memory.index import MemoryIndex
    from memory.storage import IndexStorage

LIMIT = 10
REPEATS = 5
COLD_CHUNKS = 10_000
_WARM_CHUNKS = 2_000
# The command as it is, but for the model: it would take longer than everything else together.
_COMMAND_WITHOUT_MODEL = """
import memory.disk
def given(model, text):
    import numpy as np
    return np.full(model.dim, model.dim**-0.5, np.float32), ""
memory.disk._embed = given
from memory.cli import main
raise SystemExit(main())
"""


def saving(folder: Path, material: Material) -> Findings:
    """The whole index made durable, against a write of the same bytes to the same disk."""
    data = engine_index.saved(folder, material)
    index = engine_index.opened(data)
    target = folder / "saved"
    target.mkdir(exist_ok=True)
    findings = Findings()
    resident = resident_mb()
    storage = engine_index.stored(target, index)
    saves, plain, pauses = [], [], []
    with ThreadPoolExecutor(1) as helper:
        save = partial(storage.save, 0.0, helper)
        peak = peak_mb_during(save)
        content = engine_index.saved_bytes(target)
        for _ in range(REPEATS):
            saves.append(1000 * seconds(save))
            # What the helper still does must not slow the anchor down.
            helper.submit(int).result()
            plain.append(1000 * seconds(lambda: write_synced(folder / "plain.bin", content)))
            pauses.append(_longest_wait_ms(storage, save))
    findings.add(
        f"save of {len(content) / 1e6:,.0f} MB",
        statistics.median(saves),
        "ms",
        anchor=("write and fsync of the bytes", statistics.median(plain)),
        target=Target(ratio_most=2),
    )
    findings.add(
        "longest pause of the keeper in a save", max(pauses), "ms", target=Target(most=250)
    )
    if peak is None:
        findings.notes.append("the peak of memory in a save is only measured on Linux")
    else:
        findings.add(
            "peak memory in a save",
            peak,
            "MB",
            anchor=("before it", resident),
            target=Target(ratio_most=1.15),
        )
    return findings


def _longest_wait_ms(storage: IndexStorage, save: Callable[[], int]) -> float:
    """Returns how long a change had to wait at most while the index was saved beside it."""
    longest = 0.0
    with ThreadPoolExecutor(1) as saver:
        saving = saver.submit(save)
        while not saving.done():
            begin = time.perf_counter()
            with storage.changing:
                longest = max(longest, 1000 * (time.perf_counter() - begin))
            time.sleep(0.0005)
        saving.result()
    return longest


def loading(folder: Path, material: Material) -> Findings:
    """A saved index opened and asked once; imports are not counted."""
    data = engine_index.saved(folder, material)
    first = material.queries(1)
    _opened_and_asked(data, first)  # imports
    spent = []
    for _ in range(3):
        begin = time.process_time()
        _opened_and_asked(data, first)
        spent.append(time.process_time() - begin)
    findings = Findings()
    findings.add(
        "load to the first answer, CPU",
        statistics.median(spent),
        "s",
        anchor=(
            "read of the bytes",
            median_seconds(lambda: engine_index.saved_bytes(data), REPEATS),
        ),
        target=Target(most=1),
    )
    return findings


def holding(folder: Path, material: Material) -> Findings:
    """Memory of an index that was opened and has answered all questions."""
    data = engine_index.saved(folder, material)
    small = replace(material, num_chunks=engine_corpus.CHUNKS_A_FILE)
    _opened_and_asked(engine_index.saved(folder, small), small.queries(1))  # imports
    queries, before = material.queries(), memory_now()
    index = _opened_and_asked(data, queries)
    return _held_since(before, index, data, "opened")


def holding_filled(folder: Path, material: Material) -> Findings:
    """Memory of an index that was filled here and has answered all questions."""
    data = engine_index.saved(folder, material)
    warm = _filled(replace(material, num_chunks=_WARM_CHUNKS))  # imports
    queries = material.queries()
    _ask(warm, queries)
    del warm
    before = memory_now()
    index = _filled(material)
    _ask(index, queries)
    findings = _held_since(before, index, data, "filled")
    engine_index.keep(folder / "filled", index)
    _ask(index, queries)
    findings.extend(_held_since(before, index, data, "filled and saved"))
    return findings


def _held_since(before: Memory | None, index: MemoryIndex, data: Path, what: str) -> Findings:
    """Returns the memory a chunk that an index takes, beside its vector in the memory of FAISS."""
    findings, after = Findings(), memory_now()
    if before is None or after is None:
        findings.notes.append("the memory of an index is only measured on Linux")
        return findings
    num_chunks = index.status().num_chunks
    vector_kb = engine_index.vector_bytes(data) / 1024
    own = 1024 * (after.own - before.own) / num_chunks - vector_kb
    files = 1024 * (after.files - before.files) / num_chunks
    findings.add(
        f"memory a chunk beside its vector, {what}", own + files, "KiB", target=Target(most=4)
    )
    findings.add(f"of which its own, {what}", own, "KiB", anchor=("its vector", vector_kb))
    findings.add(f"of which pages of the snapshot, {what}", files, "KiB")
    return findings


def cold_search(folder: Path, material: Material) -> Findings:
    """``memory search`` as a process of its own, without the load of the model."""
    small = replace(material, num_chunks=min(COLD_CHUNKS, material.num_chunks))
    data = engine_index.saved(folder, small)
    config = folder / "config.yml"
    config.write_text("memory: {embeddings: {provider: local}}\n")
    words = ["search", small.queries(1)[0], "--data", str(data), "--config", str(config)]
    findings = Findings()
    findings.add(
        f"cold search by command line at {small.num_chunks:,}, without the model",
        cold_seconds(["-c", _COMMAND_WITHOUT_MODEL, *words], folder, REPEATS),
        "s",
        anchor=("python -c pass", cold_seconds(["-c", "pass"], folder, REPEATS)),
        target=Target(most=0.5),
    )
    return findings


def _opened_and_asked(data: Path, queries: list[str]) -> MemoryIndex:
    index = engine_index.opened(data)
    _ask(index, queries)
    return index


def _filled(material: Material) -> MemoryIndex:
    """Returns an index filled file by file; nothing else of the files stays in memory."""
    index = engine_index.empty()
    for update in material.updates():
        index.apply(update)
    return index


def _ask(index: MemoryIndex, queries: list[str]) -> None:
    for text, vector in zip(queries, engine_corpus.query_vectors(queries), strict=True):
        index.search(Query(text, LIMIT), vector)
