"""``memory start``: how does a person start the daemon?"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from memory.commands.printing import say
from memory.config import load
from memory.daemon_client import is_running
from memory.embedding_config import disabled_reason
from memory.errors import DaemonError, WorkspaceError
from memory.template import write_config, write_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from memory.commands import Options


def run(options: Options) -> int:
    """Becomes the daemon: this process is replaced, so signals and the exit code are the daemon's.

    Writes what is missing first: a configuration with the local model, and the default workspace.

    Raises:
        ConfigError: the configuration is wrong.
        DaemonError: a daemon is already running for this data folder.
        WorkspaceError: the folder that was named does not exist.
    """
    if is_running(options.data):
        raise DaemonError("already running for this data folder; `memory stop` ends it")
    if write_config(options.config):
        say(f"wrote {options.config} (provider: local)")
    settings = load(options.config)
    reason = disabled_reason(settings)
    if reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    configured = settings.core.workspace
    workspace = options.find_workspace(configured)
    _provide(workspace, named=bool(options.workspace or configured))
    become_daemon(options, workspace)
    return 0


def _provide(workspace: Path, *, named: bool) -> None:
    if workspace.is_dir():
        return
    if named or workspace.exists():
        problem = "not a folder" if workspace.exists() else "no such folder"
        remedy = f"create it with `memory init --workspace {workspace}`, or name another"
        raise WorkspaceError(str(workspace), f"{problem}; {remedy}")
    write_workspace(workspace)
    say(f"created the workspace {workspace}")


def become_daemon(options: Options, workspace: Path, *more: str) -> None:
    """Replaces this process by the daemon; ``more`` are further arguments of ``actors.daemon``."""
    sys.stdout.flush()
    arguments = {"--config": options.config, "--workspace": workspace, "--data": options.data}
    flags = [text for name, path in arguments.items() for text in (name, str(path))]
    # -P: a folder called actors or memory where the person stands must not shadow ours.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "actors.daemon", *flags, *more])  # noqa: S606
