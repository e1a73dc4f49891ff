"""Can Ray run here, and does it keep to itself?"""

from __future__ import annotations

import os
import stat
from importlib import metadata
from typing import TYPE_CHECKING, Any

from memory.doctor.finding import note, ok, problem
from memory.doctor.installed import is_installed
from memory.errors import ConfigError
from memory.private_folder import MAX_FOLDER_BYTES, private_folder
from memory.yaml_file import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from memory.doctor.finding import Finding

_RAY = "ray"
_FOLDER = "temporary folder"
_MEMORY = "shared memory"
_LOOPBACK = "network"
_CONFIG_NAME = "ray_config.yaml"
_FIRST_WITH_TOKENS = (2, 52)
_SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_AUTH_MODE = "RAY_AUTH_MODE"
_DEFAULT_STORE_MIB = 256
_MIB = 1024 * 1024
_LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")


def ray_findings(
    data: Path, config: Path, environment: Mapping[str, str], shared_memory: Path
) -> Iterator[Finding]:
    """Yields what Ray needs and what it would tell others.

    Args:
        data: The data folder.
        config: ``config.yml``, beside which ``ray_config.yaml`` may lie.
        environment: Variables of the process.
        shared_memory: ``/dev/shm``.
    """
    yield _installed()
    yield _private(data)
    try:
        own = config.parent / _CONFIG_NAME
        groups = read_yaml(own).data if own.is_file() else {}
    except ConfigError as error:
        yield problem(_RAY, str(error), "edit this line, or remove the file")
        return
    cluster = _group(groups, "cluster")
    if cluster.get("address", "local") == "local":
        yield from _of_store(cluster.get("objectStoreMiB"), shared_memory)
        yield from _of_network(environment, _group(groups, "dashboard"))
    else:
        detail = f"joins the cluster at {cluster['address']}"
        yield note(_LOOPBACK, detail, "who reaches its ports can run code: keep them private")


def _installed() -> Finding:
    """Looks without importing it, which takes half a second."""
    remedy = "pip install --force-reinstall agent-memory-actors"
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        return problem(_RAY, "not installed", remedy)
    if not is_installed("ray"):
        return problem(_RAY, f"version {version} cannot be imported", remedy)
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < _FIRST_WITH_TOKENS:
        return problem(_RAY, f"version {version} knows no access tokens", remedy)
    return ok(_RAY, f"version {version}")


def _private(data: Path) -> Finding:
    folder = private_folder(data)
    length = len(os.fsencode(folder))
    if length > MAX_FOLDER_BYTES:
        detail = f"{folder} takes {length} bytes, paths of sockets would be longer than 107"
        return problem(_FOLDER, detail, "set TMPDIR to a folder with a short path")
    remedy = "set TMPDIR to a folder of yours that can be written"
    if os.path.lexists(folder):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return problem(_FOLDER, f"{folder} is not a folder of yours", f"remove it, or {remedy}")
    elif not os.access(folder.parent, os.W_OK | os.X_OK):
        return problem(_FOLDER, f"{folder} cannot be made", remedy)
    return ok(_FOLDER, f"{folder}, {length} of {MAX_FOLDER_BYTES} bytes")


def _of_store(configured: object, shared_memory: Path) -> Iterator[Finding]:
    wanted = configured if isinstance(configured, int) else _DEFAULT_STORE_MIB
    try:
        found = os.statvfs(shared_memory)
    except OSError:
        return  # not a Linux
    free = found.f_bavail * found.f_frsize // _MIB
    detail = f"{free:,} MiB are free in {shared_memory}, Ray takes {wanted:,} MiB"
    if free < wanted:
        remedy = (
            f"enlarge it (Docker: --shm-size), or lower cluster.objectStoreMiB in {_CONFIG_NAME}"
        )
        yield problem(_MEMORY, f"{detail} and would use the disk", remedy)
    else:
        yield ok(_MEMORY, detail)


def _of_network(environment: Mapping[str, str], dashboard: Mapping[str, Any]) -> Iterator[Finding]:
    faults = []
    if environment.get(_SWITCH, "0") != "0":
        detail = f"{_SWITCH}={environment[_SWITCH]} lets Ray listen on all interfaces"
        faults.append(problem(_LOOPBACK, detail, f"unset {_SWITCH}"))
    if environment.get(_AUTH_MODE, "token") != "token":
        detail = f"{_AUTH_MODE}={environment[_AUTH_MODE]} lets Ray be used without a token"
        faults.append(problem(_LOOPBACK, detail, f"unset {_AUTH_MODE}"))
    host = dashboard.get("host", _LOOPBACK_HOSTS[0])
    if dashboard.get("enabled") and host not in _LOOPBACK_HOSTS:
        detail = f"the dashboard listens on {host}"
        faults.append(problem(_LOOPBACK, detail, f"dashboard.host: 127.0.0.1 in {_CONFIG_NAME}"))
    yield from faults or [ok(_LOOPBACK, "everything listens on the loopback interface alone")]


def _group(groups: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    group = groups.get(name)
    return group if isinstance(group, dict) else {}
