"""How fast is the index changed, and do changes leave traces?"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import engine_corpus
import engine_index
import numpy as np
from engine_figures import NO_TARGET, Findings, Target
from measuring import interleaved_ms, percentiles, seconds

from memory.atomic_file import OsDisk
from memory.journal import encode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from engine_corpus import Material

    from memory.index import MemoryIndex
    from memory.journal_writer import JournalWriter
    from memory.messages import FileUpdate, ParsedFile

NUM_EDITS = 200
NUM_CHURNED = 10_000
EDIT_PAUSE_S = 0.05
"""As often as one local model embeds a section."""
QUERY_PAUSE_S = 0.01


def editing(folder: Path, material: Material) -> Findings:
    """One section of a file changed, its vector given: planning and applying."""
    index = engine_index.opened(engine_index.saved(folder, material))
    durations = []
    for number, parsed in enumerate(islice(material.parsed_files(), NUM_EDITS), start=1):
        edit = engine_corpus.edited(parsed, number)
        update = engine_index.planned(index, edit)
        durations.append(1000 * seconds(partial(_plan_and_apply, index, edit, update)))
    findings, taken = Findings(), percentiles(durations)
    findings.add("one-file edit p50", taken["p50 ms"], "ms")
    findings.add("one-file edit p95", taken["p95 ms"], "ms", target=Target(most=50))
    return findings


def journal(folder: Path, material: Material) -> Findings:
    """The same edits made durable: what the journal grows by, and how long each takes to be safe.

    A record is appended and synced as the storage does it; the anchor appends as many bytes to
    another file and syncs them. Who begins changes with the edit: the first flush after a pause may
    pay for the second.
    """
    index = engine_index.opened(engine_index.saved(folder, material))
    data = folder / "journal"
    data.mkdir(exist_ok=True)
    writer, changes = engine_index.journalled(data, index)
    disk = OsDisk()
    plain_file = disk.create(data / "plain.bin")
    sizes: list[int] = []
    durable: list[float] = []
    plain: list[float] = []
    for number, parsed in enumerate(islice(material.parsed_files(), NUM_EDITS), start=1):
        edit = engine_corpus.edited(parsed, number)
        _plan_and_apply(index, edit, engine_index.planned(index, edit))
        change = changes.pop()
        record = encode_record(*change)
        sizes.append(len(record))
        both = [
            (durable, partial(_append_and_sync, writer, change)),
            (plain, partial(_append_plainly, disk, plain_file, bytes(len(record)))),
        ]
        for durations, work in both[:: 1 if number % 2 else -1]:
            durations.append(1000 * seconds(work))
    writer.close()
    disk.close(plain_file)
    findings = Findings()
    findings.add("journal of one edit, largest", max(sizes) / 1000, "kB", target=Target(most=20))
    ours, anchor = percentiles(durable), percentiles(plain)
    for cut, target in (("p50 ms", NO_TARGET), ("p95 ms", Target(most=10))):
        findings.add(
            f"one edit made durable {cut.removesuffix(' ms')}",
            ours[cut],
            "ms",
            anchor=("append and fdatasync of as many bytes", anchor[cut]),
            target=target,
        )
    return findings


def interference(folder: Path, material: Material) -> Findings:
    """Questions at odd moments, to one thread that also applies edits, as the keeper does."""
    index = engine_index.opened(engine_index.saved(folder, material))
    with ThreadPoolExecutor(1) as keeper:
        searches = [
            partial(keeper.submit, search) for search in engine_index.searches(index, material)
        ]
        _asked_at_odd_moments(searches)
        idle = percentiles(_asked_at_odd_moments(searches))
        stop = threading.Event()
        edits = threading.Thread(target=_edit_on, args=(keeper, index, material, stop))
        edits.start()
        busy = percentiles(_asked_at_odd_moments(searches))
        stop.set()
        edits.join()
    findings = Findings()
    findings.add(
        f"hybrid p95 while {1 / EDIT_PAUSE_S:g} edits a second run",
        busy["p95 ms"],
        "ms",
        anchor=("p95 without edits", idle["p95 ms"]),
        target=Target(ratio_most=2),
    )
    return findings


def churn(folder: Path, material: Material) -> Findings:
    """Many edits of one file; the index that saw them against the one that did not."""
    data = engine_index.saved(folder, material)
    before, after = engine_index.opened(data), engine_index.opened(data)
    num_edits = min(NUM_CHURNED, material.num_chunks)
    for update in _edits_of_one_file(after, material, num_edits):
        after.apply(update)
    taken = interleaved_ms(
        {
            "before": engine_index.searches(before, material),
            "after": engine_index.searches(after, material),
        }
    )
    findings = Findings()
    cuts = {side: percentiles(each) for side, each in taken.items()}
    for cut in ("p50 ms", "p95 ms"):
        findings.add(
            f"hybrid {cut.removesuffix(' ms')} after {num_edits:,} edits of one file",
            cuts["after"][cut],
            "ms",
            anchor=("before", cuts["before"][cut]),
            target=Target(ratio_most=1.1),
        )
    churned = folder / "churned"
    engine_index.keep(churned, after)
    sizes = [len(engine_index.saved_bytes(each)) / 1e6 for each in (data, churned)]
    findings.add(
        f"size on disk after {num_edits:,} edits of one file",
        sizes[1],
        "MB",
        anchor=("before", sizes[0]),
        target=Target(ratio_most=1.1),
    )
    return findings


def _plan_and_apply(index: MemoryIndex, edit: ParsedFile, update: FileUpdate) -> None:
    index.plan(edit)
    index.apply(update)


def _append_and_sync(writer: JournalWriter, change: tuple[int, bytes]) -> None:
    writer.append(*change)
    writer.sync()


def _append_plainly(disk: OsDisk, descriptor: int, data: bytes) -> None:
    disk.write(descriptor, data)
    disk.fdatasync(descriptor)


def _edits_of_one_file(
    index: MemoryIndex, material: Material, num_edits: int
) -> Iterator[FileUpdate]:
    parsed = next(material.parsed_files())
    for number in range(1, num_edits + 1):
        yield engine_index.planned(index, engine_corpus.edited(parsed, number))


def _asked_at_odd_moments(searches: Sequence[Callable[[], Future[object]]]) -> list[float]:
    """Returns how long each answer took, in ms; two questions are a random pause apart.

    Args:
        searches: Each hands a question to the keeper and returns its future.
    """
    chance, durations = np.random.default_rng(17), []
    for search in (*searches, *searches):
        time.sleep(float(chance.exponential(QUERY_PAUSE_S)))
        durations.append(1000 * seconds(lambda search=search: search().result()))  # type: ignore[misc]
    return durations


def _edit_on(
    keeper: ThreadPoolExecutor, index: MemoryIndex, material: Material, stop: threading.Event
) -> None:
    for number, parsed in enumerate(material.parsed_files(), start=1):
        edit = engine_corpus.edited(parsed, number)
        update = keeper.submit(engine_index.planned, index, edit).result()
        keeper.submit(index.apply, update).result()
        if stop.wait(EDIT_PAUSE_S):
            return
