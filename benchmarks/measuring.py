"""How are durations and sizes measured?"""

from __future__ import annotations

import gc
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.snapshot import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memory.index import MemoryIndex

KILOBYTES_A_MB = 1024


def machine(packages: Iterable[str]) -> dict[str, Any]:
    """Returns what figures depend on, with the versions of some packages."""
    cpu_info = Path("/proc/cpuinfo")
    names = (
        [line for line in cpu_info.read_text().splitlines() if line.startswith("model name")]
        if cpu_info.exists()
        else []
    )
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": names[0].split(":", 1)[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": versions,
        "load": round(os.getloadavg()[1], 2),
    }


def seconds(work: Callable[[], object]) -> float:
    """Returns how long a call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Returns the median duration of several calls."""
    return statistics.median(seconds(work) for _ in range(repeats))


def cold_seconds(words: Sequence[str], folder: Path, repeats: int) -> float:
    """Returns the median duration of a Python of its own, with bytecode as an installation has it.

    Without ``PYTHONDONTWRITEBYTECODE``, which would have every process compile what is not
    installed: the package itself, a quarter of the time of a search.

    Args:
        words: Arguments of the interpreter.
        folder: Where the bytecode goes.
        repeats: Number of runs, after one that compiles.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> None:
        subprocess.run(
            [sys.executable, *words], env=environment, check=True, stdout=subprocess.DEVNULL
        )

    run()
    return median_seconds(run, repeats)


def percentiles(durations_ms: Sequence[float]) -> dict[str, float]:
    """Returns p50 and p95."""
    cuts = statistics.quantiles(durations_ms, n=20)
    return {"p50 ms": statistics.median(durations_ms), "p95 ms": cuts[-1]}


def percentiles_ms(works: Iterable[Callable[[], object]]) -> dict[str, float]:
    """Returns p50 and p95 of the durations of different calls, each made once before."""
    durations = []
    for work in works:
        work()
        durations.append(1000 * seconds(work))
    return percentiles(durations)


def peak_rss_mb() -> float:
    """Returns the most memory this process, or the largest that it ran and waited for, has used."""
    own, children = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peak = max(resource.getrusage(who).ru_maxrss for who in (own, children))
    return peak / KILOBYTES_A_MB if sys.platform == "linux" else peak / KILOBYTES_A_MB**2


def interleaved_ms(
    sides: Mapping[str, Sequence[Callable[[], object]]], *, rounds: int = 5
) -> dict[str, list[float]]:
    """Returns the median duration of each call of each side over several rounds.

    Sides take turns call by call, so that a busy moment of the machine meets all of them, and who
    begins changes with the round. A first round is not counted.

    Args:
        sides: Equally many calls each.
        rounds: Rounds that count, at least 1.
    """
    taken: dict[str, list[list[float]]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        order = list(sides)[:: 1 if number % 2 else -1]
        durations: dict[str, list[float]] = {name: [] for name in sides}
        for works in zip(*(sides[name] for name in order), strict=True):
            for name, work in zip(order, works, strict=True):
                durations[name].append(1000 * seconds(work))
        if number:
            for name, each in durations.items():
                taken[name].append(each)
    return {
        name: [statistics.median(call) for call in zip(*rounds_of, strict=True)]
        for name, rounds_of in taken.items()
    }


def resident_mb() -> float:
    """Returns the memory this process has now."""
    import psutil

    return float(psutil.Process().memory_info().rss) / KILOBYTES_A_MB**2


@dataclass(frozen=True, slots=True)
class Memory:
    """What this process has in memory, in MB."""

    own: float
    """Its own pages; they cost memory until it lets them go."""
    files: float
    """Pages of mapped files, which the system takes back when it needs room; libraries too."""


def memory_now() -> Memory | None:
    """Returns the memory of this process, garbage collected; None if the system cannot tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    gc.collect()
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    own, files = (int(fields[name].split()[0]) / KILOBYTES_A_MB for name in ("RssAnon", "RssFile"))
    return Memory(own, files)


def peak_mb_during(work: Callable[[], object]) -> float | None:
    """Returns the most memory this process has while a call runs; None if the system cannot tell.

    Only Linux forgets an earlier peak when it is asked to.
    """
    forget, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not forget.exists():
        return None
    forget.write_text("5")
    work()
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / KILOBYTES_A_MB


def save(index: MemoryIndex, path: Path) -> None:
    """Writes a whole index, durably."""
    with index.frozen() as parts:
        write(path, parts, saved_at=0.0)
