"""Where are many new files prepared for the index at the same time?

In Ray tasks, which need no memory while there is nothing to prepare and run wherever the cluster
has room.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ray

from memory.analysis import Analyzer
from memory.bulk import build_batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.ray_config import BuilderOptions
    from memory.bulk import FileBatch
    from memory.messages import ParsedFile

    Build = Callable[[tuple[ParsedFile, ...]], Awaitable[FileBatch]]
    """Gives a reference to be: awaited, or handed to an actor as it is."""


def ray_tasks(language: str, options: BuilderOptions) -> Build:
    """Returns what prepares files, which have distinct paths, in a Ray task.

    Args:
        language: Of the index.
        options: Resources of a task; a lost one is not repeated, whoever waits knows better.
    """
    resources: dict[str, Any] = {"num_cpus": options.num_cpus, "resources": options.resources}
    task: Any = ray.remote(**resources, max_retries=0)(_build)

    def build(files: tuple[ParsedFile, ...]) -> Awaitable[FileBatch]:
        reference: ray.ObjectRef[FileBatch] = task.options(name="build").remote(language, files)
        return reference

    return build


def _build(language: str, files: tuple[ParsedFile, ...]) -> FileBatch:
    return build_batch(_analyzer(language), files)


@lru_cache(1)
def _analyzer(language: str) -> Analyzer:
    """Returns the same analyzer to every task of a process: it remembers words."""
    return Analyzer(language)
