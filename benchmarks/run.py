"""How fast is every part of the pipe, and how much memory does it take?

Each phase runs in a process of its own, on a generated corpus::

    python benchmarks/run.py [--quick] [--json FILE] [--only PHASE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import peak_rss_mb
from phases import PHASES

FULL_CHUNKS, QUICK_CHUNKS = 10_000, 500


def measured(phase: str, folder: Path, num_chunks: int) -> dict[str, float]:
    """Returns the figures of one phase and the peak memory of its process."""
    words = [__file__, "--child", phase, str(folder), str(num_chunks)]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def table(figures: dict[str, dict[str, float]]) -> str:
    """Returns the figures as markdown."""
    lines = ["| phase | figure | value |", "| - | - | -: |"]
    lines += [
        f"| {phase} | {name} | {value:,.3g} |"
        if value < 100
        else f"| {phase} | {name} | {value:,.0f} |"
        for phase, values in figures.items()
        for name, value in values.items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", action="append", choices=list(PHASES))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        phase, folder, num_chunks = options.child
        figures = PHASES[phase](Path(folder), int(num_chunks))
        print(json.dumps(figures | {"peak RSS MB": peak_rss_mb()}))
        return
    num_chunks = QUICK_CHUNKS if options.quick else FULL_CHUNKS
    with tempfile.TemporaryDirectory(prefix="mem-bench-") as scratch:
        results = {
            phase: measured(phase, Path(scratch), num_chunks) for phase in options.only or PHASES
        }
    print(table(results))
    if options.json:
        about: dict[str, Any] = {"chunks": num_chunks, "cores": os.cpu_count()}
        about["load before the end"] = round(os.getloadavg()[1], 2)
        options.json.write_text(json.dumps(about | {"phases": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
