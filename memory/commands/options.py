"""Which options was a command called with, and what follows from them?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.locations import find_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from memory.config import Settings


@dataclass(frozen=True, slots=True)
class Options:
    """The command line, parsed; paths are absolute."""

    command: str
    config: Path
    config_given: bool
    """Whether ``--config`` named the file."""
    data: Path
    workspace: str | None
    """``--workspace`` as given."""
    as_json: bool
    styled: bool
    """Whether stdout is a terminal that may be coloured."""
    now_s: float
    """Unix time of the call, seconds."""
    subject: str
    """Query, path, prompt or fact."""
    limit: int | None
    explain: bool
    queries: str | None
    """``--queries`` as given."""
    compare: str | None
    """``--compare`` as given."""
    action: str | None
    """Command of the command: ``ack``."""
    follow: bool
    visibility_s: float | None
    """``--visibility``, seconds."""
    http: bool
    port: int | None
    rebuild_compare: bool
    yes: bool
    offline: bool
    dry_run: bool

    def settings(self) -> Settings:
        """Reads the configuration; without a file everything has its default.

        Raises:
            ConfigError: the file is wrong, or ``--config`` names one that does not exist.
        """
        # To look for plugins of pydantic, it would read about every package that is installed.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        from memory.config import Settings, load  # noqa: PLC0415 - pydantic costs list and show 0.1 s

        if not self.config_given and not self.config.exists():
            return Settings()
        return load(self.config)

    def find_workspace(self, configured: str | None) -> Path:
        """Returns the workspace; ``configured`` is ``core.workspace``."""
        return find_workspace(self.workspace, config=self.config, configured=configured)
