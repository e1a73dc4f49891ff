"""What goes on while processes die: edits, searches, sections, facts."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from daemon_home import DEADLINE_S

from memory.errors import DaemonError, MemoryPluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from daemon_home import DaemonHome

NUM_ANCHORS = 12
NUM_FILES = 40
EDITS_A_S = 20.0
PAUSE_S = 0.05
"""Between two requests of a client."""
FACT_PAUSE_S = 2.0
THINGS = ("lantern", "compass", "barometer", "sextant", "anchor", "capstan", "windlass", "tiller")
UNNAMED = "internal error"
"""What the daemon says of an error that it did not expect."""


def word(number: int) -> str:
    """Returns a word that no other number has."""
    letters = "bcdfghjklmnprstvz"
    parts = []
    for _ in range(5):
        number, rest = divmod(number, len(letters))
        parts.append(letters[rest] + "aeiou"[rest % 5])
    return "".join(parts)


def anchors(workspace: Path) -> dict[str, str]:
    """Writes files that never change; returns their paths by a word of theirs."""
    found = {}
    for number in range(NUM_ANCHORS):
        path = workspace / f"anchors/{number:02}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Harbour {number}\n\nThe pilot of {word(number)} keeps the log.\n")
        found[word(number)] = f"anchors/{number:02}.md"
    return found


class Editor:
    """Edits a workspace in a thread, while it is told to go."""

    def __init__(self, workspace: Path, seed: int) -> None:
        self._folder = workspace / "notes"
        self._workspace = workspace
        self._rng = random.Random(seed)
        self._going, self._quiet, self._ended = (threading.Event() for _ in range(3))
        self._quiet.set()
        self._count = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.num_edits = 0
        for number in range(NUM_FILES):
            self._write(number)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._ended.set()
        self._going.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def go(self) -> None:
        self._quiet.clear()
        self._going.set()

    def pause(self) -> None:
        self._going.clear()
        self._quiet.wait(10)

    def marker(self, number: int) -> str:
        return f"markers/{number % 10}.md"

    def mark(self, number: int) -> str:
        """Writes a file with a word that was never there; returns it."""
        path, mark = self._workspace / self.marker(number), word(50_000 + number)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Mark {number}\n\nThe buoy is called {mark}.\n")
        return mark

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self._going.is_set():
                self._quiet.set()
            self._going.wait()
            self._edit()
            time.sleep(self._rng.expovariate(EDITS_A_S))

    def _edit(self) -> None:
        number, choice = self._rng.randrange(NUM_FILES), self._rng.random()
        path = self._path(number)
        self.num_edits += 1
        if choice < 0.7 or not path.exists():
            self._write(number)
        elif choice < 0.8:
            path.unlink()
        elif choice < 0.9:
            path.replace(self._path(self._rng.randrange(NUM_FILES)))
        else:
            folder = path.parent
            away = folder.with_name(f"{folder.name}-away")
            folder.rename(away)
            away.rename(folder)

    def _write(self, number: int) -> None:
        self._count += 1
        path = self._path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        sections = (
            f"## {thing.title()}\n\nThe {thing} of note {number} is {word(self._dice(thing))}.\n"
            for thing in self._rng.sample(THINGS, 4)
        )
        path.write_text(f"# Note {number}\n\n" + "\n".join(sections))

    def _dice(self, thing: str) -> int:
        """Mostly a text that was there before, so that vectors are reused, too."""
        return 1_000 * len(thing) + self._rng.randrange(400)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number % 5}" / f"note-{number:02}.md"


@dataclass
class Fire:
    """Clients that ask all the time, each in a thread, and judge what they get."""

    home: DaemonHome
    anchors: dict[str, str]
    seconds: list[float] = field(default_factory=list)
    num_requests: int = 0
    saved: list[str] = field(default_factory=list)
    named: Counter[str] = field(default_factory=Counter)
    hung: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: Sequence[threading.Thread] = ()

    def __enter__(self) -> None:
        clients: tuple[tuple[Callable[[int], None], float], ...] = (
            (self._search, PAUSE_S),
            (self._search, PAUSE_S),
            (self._section, PAUSE_S),
            (self._save, FACT_PAUSE_S),
        )
        self._threads = [
            threading.Thread(target=self._run, args=(step, 1_000_000 * n, pause_s), daemon=True)
            for n, (step, pause_s) in enumerate(clients)
        ]
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(DEADLINE_S + 5)
            if thread.is_alive():
                self.hung.append("a client has no answer at the end")

    def _run(self, step: Callable[[int], None], number: int, pause_s: float) -> None:
        while not self._ended.wait(pause_s):
            number += 1
            began = time.monotonic()
            self.num_requests += 1
            try:
                step(number)
            except MemoryPluginError as error:
                self._judge(step.__name__, error, time.monotonic() - began)
            else:
                self.seconds.append(time.monotonic() - began)
            if time.monotonic() - began > DEADLINE_S:
                self.hung.append(f"{step.__name__} took {time.monotonic() - began:.0f} s")

    def _judge(self, what: str, error: MemoryPluginError, seconds: float) -> None:
        if isinstance(error, DaemonError) and "did not answer within" in str(error):
            self.hung.append(f"{what}: {error}")
        elif UNNAMED in str(error):
            self.unnamed.append(f"{what} after {seconds:.1f} s: {error}")
        else:
            self.named[str(error)[:60]] += 1

    def _search(self, number: int) -> None:
        mark = word(number % NUM_ANCHORS)
        found = self.home.ask("search", query=f"pilot of {mark}", limit=3)
        paths = [hit["path"] for hit in found["hits"]]
        if paths[:1] != [self.anchors[mark]]:
            self.wrong.append(f"{mark} is in {self.anchors[mark]}, found was {paths}")

    def _section(self, number: int) -> None:
        mark = word(number % NUM_ANCHORS)
        found = self.home.ask("context", prompt=f"Who is the pilot of {mark}?")
        if not found["section"].startswith("# Memories"):
            self.wrong.append(f"the section begins with {found['section'][:40]!r}")

    def _save(self, number: int) -> None:
        text = f"The pilot {number} of the harbour is off duty on day {number % 365}."
        self.saved.append(str(self.home.ask("save", content=text)["event_id"]))
