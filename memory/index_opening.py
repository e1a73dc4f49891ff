"""How is the index of a data folder opened, or a new one begun?

For the owner of the folder: what cannot be read is set aside, and nothing in it reaches the daemon
as an exception (FAULTS 8-13).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory.analysis import Analyzer
from memory.atomic_file import OsDisk
from memory.errors import (
    ConfigError,
    SnapshotCorrupt,
    SnapshotIncompatible,
    SnapshotMissing,
    StoreError,
)
from memory.identity import Identity, decide, differences, read_embedding_json
from memory.index import MemoryIndex
from memory.index_folders import (
    NEXT_NAME,
    PREVIOUS_NAME,
    adopt_next,
    clear,
    identity_in,
    settle,
)
from memory.index_settings import IndexSettings
from memory.journal import JOURNAL_NAME
from memory.recovery import open_saved, replay_all
from memory.snapshot import SNAPSHOT_NAME, set_aside
from memory.storage import IndexStorage

if TYPE_CHECKING:
    from pathlib import Path

    from memory.config import MemorySettings
    from memory.providers.base import ModelInfo
    from memory.recovery import Saved

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What was found on disk."""

    needs_probe: bool
    """One trial call must confirm the dimension of the vectors."""
    reason: str
    """Why something has to be embedded or checked, one line; empty if all is well."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An index and its place on disk."""

    index: MemoryIndex
    storage: IndexStorage


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens indexes that are searched in one way, whatever their models."""

    analyzer: Analyzer
    rules: IndexSettings

    def restored(
        self, folder: Path, saved: Saved, model: ModelInfo, epoch: str
    ) -> tuple[Kept, str]:
        """Returns what a folder holds, and what of its journal does not count.

        Raises:
            SnapshotCorrupt: see MemoryIndex.restore.
            OSError: see IndexStorage.
        """
        header = saved.snapshot.header
        index = MemoryIndex.restore(saved.snapshot, model, self.analyzer, self.rules, epoch=epoch)
        complete = replay_all(index, saved.changes) and not saved.trouble
        lost = _lost(folder, saved.trouble, complete=complete)
        storage = IndexStorage(
            folder,
            index,
            saved_revision=header.info.revision,
            saved_at=header.saved_at,
            complete=complete,
        )
        return Kept(index, storage), lost

    def empty(self, folder: Path, model: ModelInfo, epoch: str, *, rebuild: int = 0) -> Kept:
        """Returns a new index, to be saved in a folder."""
        identity = replace(Identity.of(model), rebuild=rebuild)
        index = MemoryIndex(model, self.analyzer, self.rules, epoch=epoch, identity=identity)
        return Kept(
            index, IndexStorage(folder, index, saved_revision=-1, saved_at=0.0, complete=False)
        )

    def next(self, data: Path, model: ModelInfo, epoch: str, *, rebuild: int = 0) -> Kept:
        """Returns the index that takes over once it is complete, as far as it was built.

        Args:
            data: The data folder.
            model: The configured model.
            epoch: Name of this incarnation.
            rebuild: Of its identity, if nothing was built yet.

        Raises:
            OSError: see open_or_create.
        """
        folder = data / NEXT_NAME
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
            OsDisk().fsync_folder(data)
        try:
            saved = open_saved(folder)
            with saved.snapshot:
                return self.restored(folder, saved, model, epoch)[0]
        except StoreError as error:
            if not isinstance(error, SnapshotMissing):
                logger.warning("what was built of the next index cannot be used: %s", error)
            return self.empty(folder, model, epoch, rebuild=rebuild)


@dataclass(frozen=True, slots=True)
class Opened:
    """The index of the configured model and its place on disk, and what was found there."""

    index: MemoryIndex
    storage: IndexStorage
    report: OpenReport
    opener: Opener
    old: Kept | None = None
    """The index that answers until that one is complete."""


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
    recorded, configured = read_embedding_json(data), Identity.of(model)
    opener = Opener(
        Analyzer(settings.language), IndexSettings.of(settings, workspace=str(workspace))
    )
    current, trouble = None, ""
    try:
        saved = open_saved(data)
        with saved.snapshot:
            if found := _opened(opener, saved, model=model, data=data, epoch=epoch, now=now):
                return found
            current = saved.snapshot.header.info.identity
    except SnapshotMissing:
        # Whoever removed it wants everything anew.
        clear(data / NEXT_NAME)
        clear(data / PREVIOUS_NAME)
    except (SnapshotCorrupt, SnapshotIncompatible) as error:
        kept_as = set_aside(data / SNAPSHOT_NAME, now)
        trouble = f"{error}; kept as {kept_as.name}; "
        logger.warning("%s", trouble)
        if adopt_next(data, configured):
            found = open_or_create(
                settings, model, data=data, workspace=workspace, epoch=epoch, now=now
            )
            reason = f"{trouble}the index that was being built goes on"
            return replace(found, report=OpenReport(found.report.needs_probe, reason))
    decision = decide(recorded, current, configured)
    kept = opener.empty(data, model, epoch)
    report = OpenReport(decision.probe, trouble + decision.reason)
    return Opened(kept.index, kept.storage, report, opener)


def _opened(
    opener: Opener,
    saved: Saved,
    *,
    model: ModelInfo,
    data: Path,
    epoch: str,
    now: float,
) -> Opened | None:
    """Returns the saved index, with one beside it if it is of another model or built anew.

    None if it is of another one and empty: nobody would miss it.
    """
    header, configured = saved.snapshot.header, Identity.of(model)
    current = header.info.identity
    decision = decide(read_embedding_json(data), current, configured)
    if not settle(data, current=current, configured=configured, now=now):
        kept, lost = opener.restored(data, saved, model, epoch)
        reason = "; ".join(filter(None, (lost, decision.reason)))
        report = OpenReport(decision.probe, reason)
        return Opened(kept.index, kept.storage, report, opener)
    if not (header.info.num_files or saved.changes or identity_in(data / NEXT_NAME)):
        return None
    old, _ = opener.restored(data, saved, _model_of(current, model), f"{epoch}.old")
    rebuild = 0 if differences(current, configured) else current.rebuild + 1
    new = opener.next(data, model, epoch, rebuild=rebuild)
    report = OpenReport(decision.probe, _other_reason(current, new.index))
    return Opened(new.index, new.storage, report, opener, old)


def _model_of(identity: Identity, model: ModelInfo) -> ModelInfo:
    """Returns what is known of the model of an index: all, if it still makes the same vectors."""
    from memory.embedding_config import model_of_index  # noqa: PLC0415 - listings need no pydantic

    with suppress(ConfigError):
        for known in (replace(model, dim=0), model_of_index(identity)):
            if not differences(Identity.of(known), identity):
                return replace(known, dim=identity.dim)
    return identity.model_of_words()


def _other_reason(current: Identity, new: MemoryIndex) -> str:
    """Returns why there are two indexes, and how far the new one is."""
    num_files = new.status().num_files
    done = f" ({num_files} files are done already)" if num_files else ""
    changed = differences(current, new.identity) or "a rebuild was asked for"
    return f"{changed}; every file is embedded, and the old index answers until then{done}"


def _lost(data: Path, trouble: str, *, complete: bool) -> str:
    """Returns what became of a journal; empty if all of it counts."""
    reason = trouble or f"{JOURNAL_NAME} does not fit {SNAPSHOT_NAME}"
    if complete:
        if (data / JOURNAL_NAME).exists():
            return ""
        reason = f"{JOURNAL_NAME} is missing"
    return f"{reason}; what it alone held is indexed again"
