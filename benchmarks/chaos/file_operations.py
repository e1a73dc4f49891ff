"""What do people, editors and programs do to a folder of files?

Each operation is picked at random and may find that what it wants to work on is gone.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ODD_NAMES = (
    "with space.md",
    "emoji \U0001f600.md",
    "o\u0308l.md",
    "\u00f6l.md",
    "new\nline.md",
    "a|b`c.md",
    "-dash.md",
    "UPPER.MD",
    "long" + "x" * 240 + ".md",
    "a.markdown",
    ".hidden.md",
    "no suffix",
    os.fsdecode(b"latin-\xe9.md"),
)
MAX_FOLDERS = 3
NUM_NAMES = 60
CHANCE_TO_DESCEND = 0.7
MAX_LOOKS = 8


def operate(
    root: Path, outside: Path, *, seed: int, count: int, rate: float
) -> tuple[float, Counter[str]]:
    """Makes random operations; returns the seconds it took, and how many of which kind.

    For a process of its own, which shares no interpreter with those who index.
    """
    operations = FileOperations(root, outside, random.Random(seed))
    return operations.run(count, rate), operations.done


class FileOperations:
    """Changes a workspace, at random but always in the same way for the same seed.

    Args:
        root: The workspace.
        outside: A folder beside it, for what is moved out.
        chance: Decides.
    """

    def __init__(self, root: Path, outside: Path, chance: random.Random) -> None:
        self._root = root
        self._outside = outside
        self._chance = chance
        self._number = 0
        self.done: Counter[str] = Counter()
        """Number of operations by name; those that found nothing to do count as well."""
        self._kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "create": (6, self._create),
            "edit in place": (6, self._edit),
            "append": (3, self._append),
            "atomic save": (6, self._save_atomically),
            "backup and save": (2, self._save_with_backup),
            "remove": (3, self._remove),
            "create, remove, create": (1, self._flicker),
            "rename": (3, self._rename),
            "copy": (2, self._copy),
            "make folder": (2, self._make_folder),
            "rename folder": (2, self._rename_folder),
            "move folder out": (1, self._move_out),
            "move folder in": (2, self._move_in),
            "copy folder": (1, self._copy_folder),
            "remove folder": (1, self._remove_folder),
            "link": (1, self._link),
            "odd name": (2, self._odd_name),
            "binary": (1, self._binary),
            "pipe": (1, self._pipe),
            "file to folder": (1, self._file_to_folder),
        }

    def run(self, count: int, rate: float) -> float:
        """Makes so many operations, at most ``rate`` a second; returns the seconds it took."""
        names = list(self._kinds)
        weights = [weight for weight, _act in self._kinds.values()]
        begin = time.monotonic()
        for number, name in enumerate(self._chance.choices(names, weights, k=count)):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            self.done[name] += 1
            # It is gone, or something of that name is there.
            with contextlib.suppress(OSError, shutil.Error):
                self._kinds[name][1]()
        return time.monotonic() - begin

    def _text(self) -> str:
        """Returns a file of some sections, most of which occur in other files too."""
        self._number += 1
        sections = self._chance.sample(range(200), self._chance.randint(0, 6))
        body = "".join(f"## Section {n}\n\nText of section {n}.\n\n" for n in sections)
        return f"# Note {self._number}\n\nWritten as number {self._number}.\n\n{body}"

    def _folder(self) -> Path:
        """Returns a folder, found on the way down from the root: listing all takes too long."""
        folder = self._root
        while self._chance.random() < CHANCE_TO_DESCEND and (below := _listed(folder, is_folder)):
            folder = self._chance.choice(below)
        return folder

    def _subfolder(self) -> Path:
        below = _listed(self._root, is_folder)
        first = self._chance.choice(below) if below else self._outside / "none"
        deeper = _listed(first, is_folder) if self._chance.random() < CHANCE_TO_DESCEND else []
        return self._chance.choice(deeper or [first])

    def _file(self) -> Path:
        for _attempt in range(MAX_LOOKS):
            if found := _listed(self._folder(), is_note):
                return self._chance.choice(found)
        return self._new()

    def _new(self) -> Path:
        return self._folder() / f"note-{self._chance.randrange(NUM_NAMES)}.md"

    def _new_folder(self, parent: Path) -> Path:
        return parent / f"folder-{self._chance.randrange(NUM_NAMES)}"

    def _create(self) -> None:
        self._new().write_text(self._text())

    def _edit(self) -> None:
        """Writes a file in two pieces, as an editor that saves in place."""
        text = self._text()
        with self._file().open("w") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            file.write(text[len(text) // 2 :])

    def _append(self) -> None:
        with self._file().open("a") as file:
            file.write(f"\n## More\n\nLine {self._number}.\n")

    def _save_atomically(self) -> None:
        path = self._file()
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(self._text())
        temporary.replace(path)

    def _save_with_backup(self) -> None:
        path = self._file()
        backup = path.with_name(f"{path.name}~")
        path.rename(backup)
        path.write_text(self._text())
        backup.unlink()

    def _remove(self) -> None:
        self._file().unlink()

    def _flicker(self) -> None:
        path = self._new()
        path.write_text(self._text())
        path.unlink()
        path.write_text(self._text())

    def _rename(self) -> None:
        self._file().rename(self._new())

    def _copy(self) -> None:
        shutil.copy2(self._file(), self._new())

    def _make_folder(self) -> None:
        parent = self._folder()
        if len(parent.relative_to(self._root).parts) < MAX_FOLDERS:
            folder = self._new_folder(parent)
            folder.mkdir()
            (folder / "first.md").write_text(self._text())

    def _rename_folder(self) -> None:
        self._subfolder().rename(self._new_folder(self._root))

    def _move_out(self) -> None:
        self._subfolder().rename(self._new_folder(self._outside))

    def _move_in(self) -> None:
        folder = self._chance.choice(sorted(self._outside.iterdir()) or [self._outside / "none"])
        folder.rename(self._new_folder(self._root))

    def _copy_folder(self) -> None:
        shutil.copytree(self._subfolder(), self._new_folder(self._root), symlinks=True)

    def _remove_folder(self) -> None:
        shutil.rmtree(self._subfolder())

    def _link(self) -> None:
        target = self._chance.choice((self._file(), self._folder(), self._outside / "none"))
        link = self._new()
        link.with_suffix("").symlink_to(target)
        link.symlink_to(target)

    def _odd_name(self) -> None:
        path = self._folder() / self._chance.choice(ODD_NAMES)
        path.write_text(self._text())

    def _binary(self) -> None:
        self._file().write_bytes(b"# Binary\n\n\0\n")

    def _pipe(self) -> None:
        # No other operation may write to it: that would wait for a reader.
        os.mkfifo(self._folder() / f"pipe-{self._chance.randrange(NUM_NAMES)}.md")

    def _file_to_folder(self) -> None:
        path = self._file()
        path.unlink()
        path.mkdir()
        (path / "inside.md").write_text(self._text())


def is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def is_note(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".md") and entry.is_file()


def _listed(folder: Path, is_wanted: Callable[[os.DirEntry[str]], bool]) -> list[Path]:
    """Returns what a folder holds of a kind, sorted; nothing if it is gone."""
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in entries if is_wanted(entry))
    except OSError:
        return []
