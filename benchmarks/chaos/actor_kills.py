"""Does a memory come back equal, whichever of its processes is killed and whatever it was doing?

A real daemon, a workspace that is edited all the time, and clients that search, ask for sections
and save facts all the time. Again and again one actor of those in ``memory status`` is killed with
-9, half of the time while nothing is pending, half of the time amid edits::

    python benchmarks/chaos/actor_kills.py [--kills N] [--seed N] [--kinds NAME ...]

Recovery is the time from the kill until the actor answers as another process and a file that was
written right after the kill is found first. Then the editing pauses, and ``memory check
--rebuild-compare`` compares files, index, saved index and every vector. Wrong is an answer that
lacks a file which never changed; hung is a request without answer or named error within the
deadline. In the end every fact that was answered must have been handled, exactly once. Exits with
1 if any of that is not so.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from daemon_home import DEADLINE_S, DaemonHome
from fire import Editor, Fire, anchors

from memory.checking import Patience
from memory.config import load
from memory.errors import MemoryPluginError
from memory.index_check import Recompute, check
from memory.providers.factory import open_embedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from memory.config import Settings
    from memory.providers.base import Embedder, ModelInfo

KILL_WITHIN_S = 1.0
"""Of editing, before a busy actor is killed."""
POLL_S = 0.03
MOST_RECOVERY_S = 90.0


@dataclass
class Tally:
    """What the kills came to."""

    kills: Counter[str] = field(default_factory=Counter)
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    num_equal: int = 0
    complaints: list[str] = field(default_factory=list)

    def note(self, name: str, mood: str, seconds: float | None, differences: list[str]) -> None:
        self.kills[f"{_kind(name)} {mood}"] += 1
        if seconds is None:
            self.complaints.append(f"{name} ({mood}): not back within {MOST_RECOVERY_S:.0f} s")
        else:
            self.recovery_s.setdefault(_kind(name), []).append(seconds)
        self.complaints += [f"{name} ({mood}): {each}" for each in differences]
        self.num_equal += not differences


def _kind(name: str) -> str:
    return name.partition("-")[0]


class Remembering:
    """A local model, which gives a text the same bytes each time, and so is asked once a text."""

    def __init__(self, embedder: Embedder) -> None:
        self.info = embedder.info
        self._embedder = embedder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one unit vector a text."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if unknown:
            vectors = self._embedder.embed_documents(unknown)
            self._vectors.update(zip(unknown, vectors, strict=True))
        return np.stack([self._vectors[text] for text in texts])


class Checker:
    """``memory check --rebuild-compare`` with a model that is loaded once."""

    def __init__(self, home: DaemonHome, settings: Settings) -> None:
        self._home = home
        self._settings = settings
        self._embedder: Remembering | None = None

    def differences(self) -> list[str]:
        found = check(
            self._home.data,
            self._settings,
            Patience(now=time.monotonic, sleep=time.sleep),
            recompute=Recompute(self._opened, lambda *_: True),
        )
        unsettled = [f"never settled: {path}" for path in found["unsettled"]]
        return unsettled + [
            f"{each['kind']} {each['path']}: {each['detail']}" for each in found["differences"]
        ]

    def _opened(self, model: ModelInfo) -> Any:
        self._embedder = self._embedder or Remembering(open_embedder(model))
        return self._embedder


def one_kill(
    home: DaemonHome, editor: Editor, rng: random.Random, name: str, mood: str, number: int
) -> float | None:
    """Kills an actor and returns after how many seconds everything worked again."""
    if mood == "busy":
        editor.go()
        time.sleep(rng.uniform(0, KILL_WITHIN_S))
    old = home.pid_of(name)
    began = time.monotonic()
    os.kill(old, signal.SIGKILL)
    editor.go()
    word = editor.mark(number)
    waits = {"process": lambda: home.pid_of(name) not in (0, old)}
    waits["search"] = lambda: home.first_hit(word) == editor.marker(number)
    while waits and time.monotonic() - began < MOST_RECOVERY_S:
        for key, is_there in list(waits.items()):
            try:
                if is_there():
                    del waits[key]
            except MemoryPluginError:
                continue
        time.sleep(POLL_S)
    return None if waits else time.monotonic() - began


def chaos(options: argparse.Namespace, folder: Path) -> tuple[Tally, Fire, list[str], int]:
    rng = random.Random(options.seed)
    home = DaemonHome.made(folder)
    names = anchors(home.workspace)
    editor = Editor(home.workspace, rng.randrange(1 << 30))
    tally = Tally()
    try:
        home.start()
        settings = load(home.config)
        checker = Checker(home, settings)
        kinds = options.kinds or home.actors()
        print("actors:", *kinds, flush=True)
        fire = Fire(home, names)
        with editor, fire:
            for number in range(options.kills):
                name = kinds[number % len(kinds)]
                mood = ("idle", "busy")[number // len(kinds) % 2]
                seconds = one_kill(home, editor, rng, name, mood, number)
                editor.pause()
                differences = checker.differences()
                tally.note(name, mood, seconds, differences)
                took = f"{seconds:.1f} s" if seconds is not None else "NEVER"
                verdict = "equal" if not differences else f"DIFFERENT {differences[:3]}"
                print(f"{number + 1:3d} {name} ({mood}): {took}, {verdict}", flush=True)
        lost = home.unhandled(fire.saved)
        num_bytes = home.ray_bytes()
        home.stop()
        after = checker.differences()
    finally:
        home.kill()
        editor.close()
    faults = [*lost, *(f"after the stop: {each}" for each in after)]
    return tally, fire, faults, num_bytes


def report(tally: Tally, fire: Fire, faults: list[str]) -> int:
    """Prints the figures; returns the exit code."""
    for key, count in sorted(tally.kills.items()):
        print(f"kills {key}: {count}")
    everything = sorted(each for some in tally.recovery_s.values() for each in some)
    for kind, seconds in [*sorted(tally.recovery_s.items()), ("all", everything)]:
        print(f"recovery of {kind}: {_spread(seconds)}")
    num_kills = sum(tally.kills.values())
    print(f"equal {tally.num_equal} of {num_kills}")
    slowest = max(fire.seconds, default=0.0)
    print(
        f"requests {fire.num_requests}, answered {len(fire.seconds)}, named errors"
        f" {dict(fire.named)}, slowest {slowest:.1f} s, hung beyond {DEADLINE_S:.0f} s:"
        f" {len(fire.hung)}, wrong {len(fire.wrong)}, unnamed errors {len(fire.unnamed)}"
    )
    print(
        f"facts saved {len(fire.saved)}, lost or handled twice {sum('fact' in x for x in faults)}"
    )
    complaints = [*tally.complaints, *faults, *fire.hung, *fire.wrong, *fire.unnamed]
    for complaint in complaints[:40]:
        print("WRONG", complaint)
    return 1 if complaints else 0


def _spread(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))] if ordered else 0.0
    p50 = statistics.median(ordered) if ordered else 0.0
    return f"p50 {p50:.1f} s, p95 {p95:.1f} s, most {max(ordered, default=0.0):.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        tally, fire, faults, num_bytes = chaos(options, Path(folder))
    code = report(tally, fire, faults)
    print(f"Ray's folder holds {num_bytes / 1e6:.1f} MB of logs")
    return code


if __name__ == "__main__":
    sys.exit(main())
