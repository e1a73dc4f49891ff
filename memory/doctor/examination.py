"""In which order is everything looked at, whatever of it is broken?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.config import Settings
from memory.doctor.configuration import embedding_findings, read_configuration
from memory.doctor.daemon import daemon_status, following_findings
from memory.doctor.embedding import model_findings
from memory.doctor.finding import problem
from memory.doctor.folders import data_findings, indexed_workspace, scanned
from memory.doctor.ray_runtime import ray_findings
from memory.doctor.watching import watching_findings
from memory.embedding_config import disabled_reason
from memory.errors import MemoryPluginError
from memory.globs import Globs
from memory.locations import find_workspace
from memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from memory.doctor.finding import Finding


@dataclass(frozen=True, slots=True)
class Patient:
    """Which memory is looked at, and on which machine."""

    config: Path
    is_config_named: bool
    data: Path
    workspace: str | None
    """As it was given; None for the configured one."""
    environment: Mapping[str, str]
    now_s: float
    """Unix time, seconds."""
    is_offline: bool
    proc: Path
    shared_memory: Path


def examine(patient: Patient) -> Iterator[Finding]:
    """Yields what was found; a look that fails is a finding itself."""
    settings, found = read_configuration(patient.config, is_named=patient.is_config_named)
    yield from found
    looks: dict[str, Callable[[], Iterable[Finding]]] = {
        "data folder": lambda: data_findings(patient.data),
        "workspace": lambda: _of_files(patient, settings or Settings()),
        "ray": lambda: ray_findings(
            patient.data, patient.config, patient.environment, patient.shared_memory
        ),
    }
    if settings is not None:
        looks = {"embeddings": lambda: embedding_findings(settings)} | looks
        if not disabled_reason(settings):
            looks["model"] = lambda: model_findings(settings, is_offline=patient.is_offline)
    for name, look in looks.items():
        try:
            yield from look()
        except (MemoryPluginError, OSError) as error:
            yield problem(name, f"cannot be looked at: {error}", "make it readable")


def _of_files(patient: Patient, settings: Settings) -> Iterator[Finding]:
    """Yields what is to be said of the workspace, the daemon, and whether one follows the other."""
    memory = settings.memory
    configured = settings.core.workspace
    named = patient.workspace or (None if configured else indexed_workspace(patient.data))
    root = find_workspace(named, config=patient.config, configured=configured)
    files = Workspace(
        root, exclude=Globs(memory.exclude_globs), max_file_bytes=memory.max_file_bytes
    )
    scan, found = scanned(root, files, patient.now_s, is_named=bool(named or configured))
    yield from found
    status, found = daemon_status(patient.data, patient.now_s)
    yield from found
    if scan is None:
        return
    yield from following_findings(
        patient.data, scan, status, interval_s=memory.reconcile_interval, now_s=patient.now_s
    )
    yield from watching_findings(root, patient.proc)
