"""How does the engine compare with its peers and with what the machine can do?

Everything is measured in one run, each group of measures in a process of its own::

    python benchmarks/engine.py [--chunks N] [--workspace FOLDER] [--only GROUP] [--json] [--save]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import engine_building
import engine_search
import engine_storage
import engine_updates
from engine_corpus import Material
from engine_figures import Findings, table
from measuring import machine

RESULTS = Path(__file__).with_name("results")
DEFAULT_CHUNKS = 100_000
SWITCH_INTERVAL_S = 0.0005
"""That of the keeper's process: how long a thread keeps the others from the interpreter."""
PACKAGES = ("numpy", "faiss-cpu", "tantivy", "bm25s")
GROUPS = {
    "orama": engine_building.orama,
    "building": engine_building.building,
    "lexical": engine_search.lexical,
    "hybrid": engine_search.hybrid,
    "editing": engine_updates.editing,
    "journal": engine_updates.journal,
    "interference": engine_updates.interference,
    "churn": engine_updates.churn,
    "saving": engine_storage.saving,
    "loading": engine_storage.loading,
    "memory": engine_storage.holding,
    "memory filled": engine_storage.holding_filled,
    "cold": engine_storage.cold_search,
}
"""In this order: the first ones leave files that the others use, or make if they are alone."""


def measured(group: str, scratch: str, options: argparse.Namespace) -> Findings:
    """Returns what one group found out, in a process of its own."""
    words = [__file__, "--chunks", str(options.chunks), "--child", group, scratch]
    if options.workspace:
        words += ["--workspace", str(options.workspace.absolute())]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return Findings(notes=[f"{group} failed with exit code {done.returncode}"])
    return Findings.from_json(done.stdout.splitlines()[-1])


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=DEFAULT_CHUNKS, help="size of the corpus")
    parser.add_argument("--workspace", type=Path, help="a folder to read instead of made-up files")
    parser.add_argument("--only", action="append", choices=list(GROUPS))
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--save", action="store_true", help="keep them in benchmarks/results/ too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main() -> None:
    options = options_of()
    if options.child:
        group, scratch = options.child
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        material = Material(options.chunks, options.workspace)
        print(GROUPS[group](Path(scratch), material).to_json())
        return
    about = machine(PACKAGES) | {"chunks": options.chunks, "made up": options.workspace is None}
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="mem-engine-") as scratch:
        for group in options.only or GROUPS:
            begin = time.perf_counter()
            findings.extend(measured(group, scratch, options))
            print(f"{group}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    about["load at the end"] = round(os.getloadavg()[1], 2)
    figures = [asdict(each) for each in findings.figures]
    print(json.dumps(figures, indent=2) if options.json else table(findings.figures))
    for note in dict.fromkeys(findings.notes):
        print(note, file=sys.stderr)
    if options.save:
        path = RESULTS / f"{about['date']}-engine-{options.chunks}.json"
        path.write_text(
            json.dumps(about | {"notes": findings.notes, "figures": figures}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
