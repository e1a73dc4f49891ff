"""How is the index of a data folder opened, or a new one begun?

For the owner of the folder: what cannot be read is set aside, and nothing in it reaches the daemon
as an exception (FAULTS 8-13).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.analysis import Analyzer
from memory.errors import SnapshotCorrupt, SnapshotIncompatible, SnapshotMissing
from memory.identity import Identity, decide, read_embedding_json
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.journal import JOURNAL_NAME
from memory.recovery import open_saved, replay_all
from memory.snapshot import SNAPSHOT_NAME, set_aside
from memory.storage import IndexStorage

if TYPE_CHECKING:
    from pathlib import Path

    from memory.config import MemorySettings
    from memory.providers.base import ModelInfo

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What was found on disk."""

    needs_probe: bool
    """One trial call must confirm the dimension of the vectors."""
    reason: str
    """Why something has to be embedded or checked, one line; empty if all is well."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An index and its place on disk."""

    index: MemoryIndex
    storage: IndexStorage
    report: OpenReport


def open_or_create(
    settings: MemorySettings,
    model: ModelInfo,
    *,
    data: Path,
    workspace: Path,
    epoch: str,
    now: float,
) -> Opened:
    """Returns the index of a data folder, empty if none there can be used.

    Args:
        settings: Language, weights and floors.
        model: The configured model.
        data: Folder of the snapshot and the journal.
        workspace: Root of the paths, noted in later snapshots.
        epoch: Name of this incarnation.
        now: Unix time in seconds, names a file that is set aside.

    Raises:
        OSError: a file cannot be read now, or not be moved; it may hold what somebody paid for.
    """
    analyzer = Analyzer(settings.language)
    rules = IndexSettings.of(settings, workspace=str(workspace))
    recorded, configured = read_embedding_json(data), Identity.of(model)
    path, trouble = data / SNAPSHOT_NAME, ""
    try:
        saved = open_saved(data)
        with saved.snapshot as snapshot:
            decision = decide(recorded, snapshot.header.info.identity, configured)
            if decision.load:
                index = MemoryIndex.restore(snapshot, model, analyzer, rules, epoch=epoch)
                complete = replay_all(index, saved.changes) and not saved.trouble
                lost = _lost(data, saved.trouble, complete=complete)
                reason = "; ".join(filter(None, (lost, decision.reason)))
                storage = IndexStorage(
                    data,
                    index,
                    saved_revision=snapshot.header.info.revision,
                    saved_at=snapshot.header.saved_at,
                    complete=complete,
                )
                return Opened(index, storage, OpenReport(decision.probe, reason))
    except SnapshotMissing:
        decision = decide(recorded, None, configured)
    except (SnapshotCorrupt, SnapshotIncompatible) as error:
        kept = set_aside(path, now)
        trouble = f"{error}; kept as {kept.name}; "
        logger.warning("%s", trouble)
        decision = decide(recorded, None, configured)
    index = MemoryIndex(model, analyzer, rules, epoch=epoch)
    storage = IndexStorage(data, index, saved_revision=-1, saved_at=0.0, complete=False)
    return Opened(index, storage, OpenReport(decision.probe, trouble + decision.reason))


def _lost(data: Path, trouble: str, *, complete: bool) -> str:
    """Returns what became of a journal; empty if all of it counts."""
    reason = trouble or f"{JOURNAL_NAME} does not fit {SNAPSHOT_NAME}"
    if complete:
        if (data / JOURNAL_NAME).exists():
            return ""
        reason = f"{JOURNAL_NAME} is missing"
    return f"{reason}; what it alone held is indexed again"
