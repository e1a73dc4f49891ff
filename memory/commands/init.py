"""``memory init``: how does a person get a configuration and a workspace to start with?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.commands.printing import say
from memory.config import load
from memory.template import write_config, write_workspace

if TYPE_CHECKING:
    from memory.commands import Options


def run(options: Options) -> int:
    """Writes what is missing, keeps what exists, and says which.

    Raises:
        ConfigError: the existing configuration is wrong.
    """
    created = write_config(options.config)
    say(f"{'wrote' if created else 'kept'} {options.config}")
    workspace = options.find_workspace(load(options.config).core.workspace)
    written = write_workspace(workspace)
    for path in written:
        say(f"wrote {workspace / path}")
    if not written:
        say(f"nothing is missing in {workspace}")
    return 0
