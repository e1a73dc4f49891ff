"""How does a private Ray start and end?

Everything listens on the loopback interface, its folder is open to its owner only, and old sessions
are removed. ``ray stop`` is never used: it would end every Ray of the machine.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import ray

from actors.logs import RAY_LOG_NAME
from memory.errors import ConfigError, DaemonError, StoreError
from memory.private_folder import data_key, private_folder
from memory.processes import below, end, writing_below
from memory.sweeper import sweeping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.ray_config import RayConfig
    from memory.processes import Process

MIB = 1024 * 1024
LOGGING_HOOK = "actors.logs.configure"
LOCAL_ADDRESS = "local"
FIRST_WITH_TOKENS = (2, 52)
"""Version of Ray that can ask for a token."""
TOKEN = Path(".ray/auth_token")
"""Where Ray keeps the token of an account, below its home folder."""
VITAL = ("gcs_server", "raylet")
"""Programs without which Ray does not work."""


def namespace_of(config: RayConfig, data: Path) -> str:
    """Returns the Ray namespace of the actors that serve a data folder."""
    return config.cluster.namespace or f"memory-{data_key(data)}"


def runtime_folder(data: Path) -> Path:
    """Returns the private folder of a data folder's sockets and Ray session, created 0700.

    Raises:
        StoreError: something else has that name, or the folder cannot be made.
    """
    folder = private_folder(data)
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise StoreError(
                f"{folder} is not a folder of yours; remove it, or set TMPDIR to a folder of yours"
            )
        folder.chmod(0o700)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(
            f"{folder} cannot be made: {reason}; set TMPDIR to a folder that can be written"
        ) from error
    return folder


def start_cluster(config: RayConfig, data: Path) -> None:
    """Starts a private Ray or joins the configured one; takes about seven seconds.

    ``RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0`` must be in the environment before ray is imported.

    Raises:
        ConfigError: its dashboard would be open to everybody.
        DaemonError: Ray did not start, or the cluster could not be joined.
    """
    address = config.cluster.address
    options: dict[str, Any] = {
        "address": address,
        "namespace": namespace_of(config, data),
        "configure_logging": False,
        "log_to_driver": False,
        "runtime_env": {"worker_process_setup_hook": LOGGING_HOOK},
    }
    if address == LOCAL_ADDRESS:
        check_dashboard(config, ray.__version__)
        close_token(Path.home())
        options |= _private_options(config, data)
    try:
        ray.init(**options)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DaemonError(
            f"Ray at {address!r} did not start: {reason}; see {RAY_LOG_NAME}"
        ) from error


def check_dashboard(config: RayConfig, version: str) -> None:
    """Refuses a dashboard that asks for no token: its job API runs whatever it is told.

    Args:
        config: Of the private Ray.
        version: Of Ray.

    Raises:
        ConfigError: one line.
    """
    if not config.dashboard.enabled:
        return
    if tuple(map(int, version.split(".")[:2])) < FIRST_WITH_TOKENS:
        needed = ".".join(map(str, FIRST_WITH_TOKENS))
        raise ConfigError(
            f"dashboard.enabled: Ray {version} cannot ask for a token, so every account of this"
            f" machine could run commands through it; install Ray {needed} or newer"
        )
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if mode != "token":
        raise ConfigError(
            f"dashboard.enabled: with RAY_AUTH_MODE={mode} every account of this machine could run"
            " commands through it; unset that variable"
        )


def close_token(home: Path) -> None:
    """Lets nobody but its owner read Ray's token, which Ray writes as the umask has it."""
    path = home / TOKEN
    with contextlib.suppress(OSError):
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)


def _ray_folder(data: Path) -> Path:
    # Ray opens its own folder to everybody, so that one lies inside ours.
    return runtime_folder(data) / "ray"


def _private_options(config: RayConfig, data: Path) -> dict[str, Any]:
    folder = _ray_folder(data)
    end(writing_below(folder.resolve()))  # what a daemon left that was killed
    remove_old_sessions(folder)
    return {
        "include_dashboard": config.dashboard.enabled,
        "dashboard_host": config.dashboard.host,
        "dashboard_port": config.dashboard.port,
        "object_store_memory": config.cluster.object_store_mi_b * MIB,
        "_temp_dir": str(folder),
    }


def remove_old_sessions(folder: Path) -> None:
    """Removes what earlier sessions of this data folder left; its lock must be held."""
    for session in folder.glob("session_*"):
        with contextlib.suppress(OSError):
            session.unlink() if session.is_symlink() else shutil.rmtree(session)


def stop_cluster() -> None:
    """Leaves the cluster; a private one ends with all its processes."""
    ray.shutdown()


@contextlib.contextmanager
def nothing_left(config: RayConfig, data: Path) -> Iterator[None]:
    """Has every process of a private Ray ended after the block, even by a kill of this one."""
    if config.cluster.address != LOCAL_ADDRESS:
        yield
        return
    with sweeping(_ray_folder(data)):
        yield


def vital_processes() -> tuple[Process, ...]:
    """Returns those processes of a private Ray without which it does not work."""
    ours = os.getpid()
    return tuple(
        process for process in below(ours) if process.parent == ours and process.name in VITAL
    )


def leave_at_once(code: int) -> NoReturn:
    """Ends this process and Ray's below it, without a word to a Ray that has died.

    Ray would wait a minute for its dead part, and then end this process from C++.
    """
    ours = os.getsid(0)
    end(process for process in below(os.getpid()) if process.session == ours)
    logging.shutdown()
    os._exit(code)
