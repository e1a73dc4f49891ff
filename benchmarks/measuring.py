"""How are durations and sizes measured?"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

KILOBYTES_A_MB = 1024


def seconds(work: Callable[[], object]) -> float:
    """Returns how long a call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Returns the median duration of several calls."""
    return statistics.median(seconds(work) for _ in range(repeats))


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
