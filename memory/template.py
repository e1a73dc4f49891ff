"""Which files does a new workspace start with?

They come from ``workspace_template``; a file that exists is never touched.
"""

from __future__ import annotations

import os
from pathlib import Path

from memory.atomic_file import create_atomically

_READABLE = 0o666
_PLACEHOLDER = ".gitkeep"
_PACKAGE = Path(__file__).parent
_CONFIG = _PACKAGE / "config_template.yml"


def write_workspace(workspace: Path) -> tuple[str, ...]:
    """Copies what is missing of the template into a folder, creating it if need be.

    Returns:
        Paths of the files written, relative to the workspace, sorted.

    Raises:
        OSError: the folder cannot be written.
    """
    source = _template_folder()
    written = []
    workspace.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        target = workspace / path.relative_to(source)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif path.name != _PLACEHOLDER and _write_new(target, path.read_text("utf-8")):
            written.append(target.relative_to(workspace).as_posix())
    return tuple(written)


def write_config(config: Path) -> bool:
    """Writes the commented configuration unless the file exists; returns whether it did."""
    config.parent.mkdir(parents=True, exist_ok=True)
    return _write_new(config, _CONFIG.read_text("utf-8"))


def _template_folder() -> Path:
    # The wheel carries a copy; an editable install has only the checkout.
    packaged = _PACKAGE / "_template"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "workspace_template"


def _write_new(target: Path, text: str) -> bool:
    if os.path.lexists(target):
        return False
    # Half a file left by a kill would never be touched again.
    return create_atomically(target, (text.encode(),), mode=_READABLE & ~_umask())


def _umask() -> int:
    """Returns which rights new files of this process do not get."""
    current = os.umask(0o077)
    os.umask(current)
    return current
