"""Where are the configuration, the workspace and the data?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CONFIG_NAME = "config.yml"
_DATA = Path("data", "memory")
_WORKSPACE = Path("data", "workspace")


@dataclass(frozen=True, slots=True)
class Locations:
    """Absolute paths; none of them needs to exist."""

    config: Path
    workspace: Path
    data: Path
    """Folder of ``memory.msp`` and ``daemon.json``."""


def find_config(option: str | None, *, home: str | None) -> Path:
    """Returns the configuration file.

    Args:
        option: ``--config``.
        home: Folder that holds ``config.yml`` by default; None means the current folder.
    """
    return _absolute(option) if option else _absolute(home or ".") / CONFIG_NAME


def find_data(option: str | None, *, config: Path) -> Path:
    """Returns the data folder: ``--data``, else ``data/memory`` beside the configuration."""
    return _absolute(option) if option else config.parent / _DATA


def find_workspace(option: str | None, *, config: Path, configured: str | None) -> Path:
    """Returns the workspace.

    Args:
        option: ``--workspace``, relative to the current folder.
        config: The configuration file.
        configured: ``core.workspace``, relative to the configuration file.
    """
    if option:
        return _absolute(option)
    return config.parent / (Path(configured).expanduser() if configured else _WORKSPACE)


def _absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()
