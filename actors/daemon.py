"""``python -m actors.daemon``: the foreground process of ``memory start``.

Takes the lock of the data folder, starts Ray, the actors and the control socket, shows progress,
and ends everything in flow order on SIGINT, SIGTERM, SIGHUP or ``memory stop``. With ``--rebuild``
it embeds every file anew and ends by itself.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memory.commands.printing import print_rebuilt
from memory.config import load
from memory.data_lock import data_lock
from memory.embedding_config import configured_model, disabled_reason
from memory.errors import MemoryPluginError
from memory.locations import Locations
from memory.recovery import check_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

PRIVATE_UMASK = 0o077
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the daemon until it is told to stop; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m actors.daemon", description=__doc__)
    for name in ("config", "workspace", "data"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("rebuild", "json"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(arguments)
    locations = Locations(options.config, options.workspace, options.data)
    os.umask(PRIVATE_UMASK)
    # Ray reads it at import: with 0 every port listens on the loopback interface only.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        settings = load(locations.config)
        if (reason := disabled_reason(settings)) is not None:
            print(reason, file=sys.stderr)  # noqa: T201 - the daemon's own output
            return 1
        configured_model(settings)  # refuses before Ray starts
        with data_lock(locations.data):
            check_readable(locations.data)
            from actors.service import run  # noqa: PLC0415 - imports ray

            if not options.rebuild:
                return run(settings, locations)
            return run(settings, locations, report=partial(print_rebuilt, as_json=options.json))
    except (MemoryPluginError, OSError) as error:
        print(f"memory: {_message(error)}", file=sys.stderr)  # noqa: T201 - the daemon's own output
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _message(error: MemoryPluginError | OSError) -> str:
    match error:
        case OSError(filename=str() | Path() as name, strerror=str(reason)):
            return f"{name}: {reason}"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
