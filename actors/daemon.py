"""``python -m actors.daemon``: the foreground process of ``memory start``.

Takes the lock of the data folder, starts Ray, the actors and the control socket, shows progress,
and ends everything in flow order on SIGINT, SIGTERM, SIGHUP or ``memory stop``. With ``--rebuild``
it embeds every file anew and ends by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.hosting import received_config, tied_to_host
from memory.access_token import TOKEN_NAME
from memory.atomic_file import sweep_temporaries
from memory.collisions import check_owners
from memory.commands.printing import print_rebuilt
from memory.config import from_mapping, load
from memory.daemon_client import ADDRESS_NAME
from memory.data_lock import data_lock
from memory.embedding_config import configured_model, disabled_reason
from memory.errors import ConfigError, MemoryPluginError, PackagingError
from memory.identity import EMBEDDING_JSON
from memory.locations import Locations
from memory.outbox import OUTBOX_NAME
from memory.outbox_file import damage
from memory.recovery import check_readable
from memory.supervision import INTERRUPTED, UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PRIVATE_UMASK = 0o077
RAY_ENVIRONMENT = {
    # Ray reads it at import: with 0 every port listens on the loopback interface only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Of each process; without it, what a worker prints is not bounded at all.
    "RAY_ROTATION_MAX_BYTES": str(16 * 1024 * 1024),
    "RAY_ROTATION_BACKUP_COUNT": "1",
}
WRITTEN = (EMBEDDING_JSON, ADDRESS_NAME, TOKEN_NAME)
"""Files of the data folder whose writers do not look for what a kill left of them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the daemon until it is told to stop; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m actors.daemon", description=__doc__)
    for name in ("config", "workspace", "data"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--hosted", action="store_true", help="run as the child of a program")
    for name in ("rebuild", "json"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(arguments)
    locations = Locations(options.config, options.workspace, options.data)
    os.umask(PRIVATE_UMASK)
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        with _hosted() if options.hosted else contextlib.nullcontext() as config:
            code = _run(locations, config, options)
            return code if options.hosted or code == INTERRUPTED else min(code, 1)
    except (ConfigError, PackagingError) as error:
        _complain(str(error))
        return UNUSABLE if options.hosted else 1
    except (MemoryPluginError, OSError) as error:
        _complain(_message(error))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


@contextlib.contextmanager
def _hosted() -> Iterator[dict[str, Any] | None]:
    config = received_config()
    with tied_to_host():
        yield config


def _run(
    locations: Locations, config: Mapping[str, Any] | None, options: argparse.Namespace
) -> int:
    """Runs the daemon if it can run as it is configured: by a file, or by what a host gave."""
    check_owners()
    settings = load(locations.config) if config is None else from_mapping(config, locations.config)
    if (reason := disabled_reason(settings)) is not None:
        raise ConfigError(reason.removeprefix("memory: "))
    configured_model(settings)  # refuses before Ray starts
    with data_lock(locations.data):
        for name in WRITTEN:
            sweep_temporaries(locations.data, name)
        check_readable(locations.data)
        # Refuses what its actor could not open either.
        if line := damage(locations.data / OUTBOX_NAME):
            _complain(line)
        from actors.service import run  # noqa: PLC0415 - imports ray

        if not options.rebuild:
            return run(settings, locations)
        return run(settings, locations, report=partial(print_rebuilt, as_json=options.json))


def _complain(line: str) -> None:
    print(f"memory: {line}", file=sys.stderr)  # noqa: T201 - the daemon's own output


def _message(error: MemoryPluginError | OSError) -> str:
    match error:
        case OSError(filename=str() | Path() as name, strerror=str(reason)):
            is_in_the_way = isinstance(error, IsADirectoryError | NotADirectoryError)
            return f"{name}: {reason}{'; move it away' if is_in_the_way else ''}"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
