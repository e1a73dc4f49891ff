"""Whatever becomes of files and folders, the index ends equal to them, and no text costs twice."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from actors.chunker import Chunker, ChunkerOptions
from memory.messages import FileEvent
from tests.inline.conftest import INFO, Pipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("notes/a.md", "notes/deep/b.md", "notes/deep/c.md", "other.md")


@pytest.fixture
async def filled(pipe: Pipe) -> Pipe:
    """A memory of four files in two folders."""
    for name in NAMES:
        pipe.write(name, f"# {name}\n\nText of {name}.\n")
    await pipe.touched(*NAMES)
    assert await pipe.paths() == list(NAMES)
    return pipe


async def rescanned(pipe: Pipe, *ghosts: str) -> None:
    """Tells the Chunker that anything may have changed, and of paths that may not be there."""
    before = (await pipe.chunker.status.remote()).num_reconciles
    await pipe.chunker.notice.remote(tuple(FileEvent(path) for path in ghosts), True)

    async def idle() -> bool:
        status = await pipe.chunker.status.remote()
        return status.num_reconciles > before and not status.num_pending

    await pipe.until(idle)


def rename(root: Path) -> None:
    (root / "notes").rename(root / "renamed")


def rename_inside(root: Path) -> None:
    (root / "notes" / "deep").rename(root / "notes" / "deeper")


def move_out(root: Path) -> None:
    (root / "notes").rename(root.parent / "outside")


def remove(root: Path) -> None:
    shutil.rmtree(root / "notes")


def copy(root: Path) -> None:
    shutil.copytree(root / "notes", root / "copy")


@pytest.mark.parametrize("act", [rename, rename_inside, move_out, remove, copy])
async def test_a_folder_that_moves_goes_or_is_copied_costs_no_embedding(
    filled: Pipe, act: Callable[[Path], None]
):
    """FAULTS 28: vectors are found by their texts; only a rescan is told of folders."""
    before = len(filled.worker.model.texts)

    act(filled.root)
    await rescanned(filled)

    assert filled.differences() == []
    assert len(filled.worker.model.texts) == before


async def test_a_folder_that_comes_back_costs_no_embedding(filled: Pipe):
    """FAULTS 28."""
    before = len(filled.worker.model.texts)
    move_out(filled.root)
    await rescanned(filled)
    assert await filled.paths() == ["other.md"]

    (filled.root.parent / "outside").rename(filled.root / "back")
    await rescanned(filled)

    assert filled.differences() == []
    assert len(filled.worker.model.texts) == before


async def test_events_under_a_name_that_a_folder_no_longer_has_change_nothing(filled: Pipe):
    """FAULTS 29: watchdog goes on to tell of a tree that was moved out, under its old path."""
    move_out(filled.root)

    await rescanned(filled, *NAMES, "notes/new.md", "notes/deep")

    assert await filled.paths() == ["other.md"]
    assert filled.differences() == []


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1], NAMES * 3])
async def test_files_made_removed_and_made_again_end_as_they_are(
    filled: Pipe, order: tuple[str, ...]
):
    """FAULTS 27: the hints of all of it may come in any order, or several times."""
    for number, name in enumerate(NAMES):
        for turn in range(3):
            (filled.root / name).unlink()
            filled.write(name, f"# Again\n\nMade for the {turn}th time, as {number}.\n")
        if number % 2:
            (filled.root / name).unlink()

    await filled.touched(*order)

    assert await filled.paths() == [name for number, name in enumerate(NAMES) if not number % 2]
    assert filled.differences() == []


async def test_a_save_through_a_backup_costs_one_embedding(filled: Pipe):
    """FAULTS 25: an editor moves the file away, writes a new one, and removes the other."""
    before = len(filled.worker.model.texts)
    path, backup = filled.root / "other.md", filled.root / "other.md~"
    path.rename(backup)
    await filled.touched("other.md")
    filled.write("other.md", "# other.md\n\nText of other.md.\n\n## New\n\nA new section.\n")
    backup.unlink()
    await filled.touched("other.md", "other.md~")

    assert len(filled.worker.model.texts) == before + 1
    assert filled.differences() == []


async def test_what_is_excluded_by_now_goes_and_what_no_longer_is_comes(filled: Pipe):
    """FAULTS 40: at the next start, as the configuration is read then."""
    for globs, expected in ((("notes/deep/*",), ["notes/a.md", "other.md"]), ((), list(NAMES))):
        await filled.chunker.shell.stop()
        memory = filled.settings.memory.model_copy(update={"exclude_globs": globs})
        filled.settings = filled.settings.model_copy(update={"memory": memory})
        filled.chunker.shell = Chunker(
            ChunkerOptions(filled.root, memory, INFO),
            filled.keeper,
            filled.pool,
            filled.persister,
            filled.clock,
            filled.builder,
        )
        await filled.settle()

        assert await filled.paths() == expected
        assert filled.differences() == []
    assert len(filled.worker.model.texts) == len(NAMES)


async def test_many_files_of_a_checkout_are_one_batch_of_work(filled: Pipe):
    """FAULTS 38: one comparison finds all of them, whichever events came."""
    for number in range(40):
        filled.write(f"branch/{number}.md", f"# Branch\n\nFile {number}.\n")
    for name in NAMES[:2]:
        (filled.root / name).unlink()
    filled.write("other.md", "# other.md\n\nOn another branch.\n")

    await rescanned(filled, "branch/7.md")

    assert len(await filled.paths()) == 42
    assert filled.differences() == []
