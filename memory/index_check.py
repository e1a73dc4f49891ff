"""Is everything about the index that answers as it should be (``memory check``)?

That is the index of the running daemon, or else the saved one.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from memory.checking import HeldIndex, Patience, Report, check_files
from memory.chunk_limits import chunk_limits
from memory.daemon_client import request
from memory.embedding_config import configured_model, disabled_reason, model_of_index
from memory.errors import (
    DaemonNotRunning,
    SnapshotCorrupt,
    SnapshotIncompatible,
    SnapshotMissing,
    WorkspaceMissing,
)
from memory.globs import Globs
from memory.identity import Identity, differences
from memory.index_folders import NEXT_NAME, identity_in
from memory.inspection import LOCAL, Difference
from memory.inspection_payload import Rules, decode_inspection, decode_rules
from memory.reader import SnapshotReader
from memory.recomputing import Estimate, Recomputing
from memory.saved_checks import saved_faults
from memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from memory.checking import IndexSource
    from memory.config import Settings
    from memory.embedding_input import TokenLimits
    from memory.inspection import Inspection
    from memory.payloads import Source
    from memory.providers.base import Embedder, ModelInfo

TIMEOUT_S = 60.0
_LONGEST_WAIT_S = 60.0
_SLACK_S = 15.0


class DifferencePayload(TypedDict):
    """Something that is not as it should be."""

    kind: str
    path: str
    """Empty if no file is to blame."""
    detail: str


class CheckPayload(TypedDict):
    """Answer to ``check``."""

    ok: bool
    differences: list[DifferencePayload]
    source: Source
    files: int
    """That the index knows."""
    chunks: int
    unsettled: list[str]
    """Files that changed all the time, so that nothing can be said about them."""
    recomputed: int | None
    """Texts that were embedded again; null without ``--rebuild-compare``."""


class DaemonIndex:
    """The index of a running daemon.

    Args:
        data: Its data folder.
        ask: As ``daemon_client.request``.

    Raises:
        DaemonNotRunning: there is none; so do the methods.
        DaemonError: it does not answer, or is of another version; so do the methods.
    """

    def __init__(self, data: Path, ask: Callable[..., Mapping[str, object]] = request) -> None:
        self._data = data
        self._ask = ask
        answer = ask(data, "inspect", TIMEOUT_S, paths=[])
        self.rules = decode_rules(answer)
        self.identity = decode_inspection(answer).identity
        self.is_building = bool(answer.get("is_building"))

    def page(self, after: str) -> Inspection:
        """See ``checking.IndexSource``."""
        return decode_inspection(self._ask(self._data, "inspect", TIMEOUT_S, after=after))

    def named(self, paths: Sequence[str], *, wants_vectors: bool = False) -> Inspection:
        """See ``checking.IndexSource``."""
        return decode_inspection(
            self._ask(self._data, "inspect", TIMEOUT_S, paths=list(paths), vectors=wants_vectors)
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """An index to check, and how it was made."""

    index: IndexSource
    identity: Identity
    rules: Rules
    is_building: bool
    """Whether the index of another model is being built."""
    source: Source


@dataclass(frozen=True, slots=True)
class Recompute:
    """How the vectors are to be made again."""

    open_embedder: Callable[[ModelInfo], Embedder]
    may_send: Callable[[Estimate, str], bool]
    """Whether so many texts may be sent to a provider."""
    show: Callable[[int, int], None]
    """Is given how many texts are embedded, and of how many."""


@contextmanager
def opened(data: Path, settings: Settings, workspace: Path | None) -> Iterator[Subject]:
    """Gives the index that answers.

    Args:
        data: The data folder.
        settings: For the saved index; a daemon has its own.
        workspace: Where the files are instead, for the saved index.

    Raises:
        SnapshotMissing: there is neither a daemon nor an index.
        SnapshotCorrupt: the saved one cannot be read.
        SnapshotIncompatible: the same.
        DaemonError: the daemon does not answer.
    """
    try:
        daemon = DaemonIndex(data)
    except DaemonNotRunning:
        pass
    else:
        yield Subject(daemon, daemon.identity, daemon.rules, daemon.is_building, "daemon")
        return
    with SnapshotReader(data) as reader:
        info = reader.header.info
        memory = settings.memory.model_copy(update={"language": info.language})
        index = reader.open_index(memory, info.identity.model_of_words())
        rules = Rules(
            str(workspace or info.workspace),
            memory.exclude_globs,
            memory.max_file_bytes,
            memory.max_chunk_tokens,
            memory.reconcile_interval,
        )
        following = identity_in(data / NEXT_NAME)
        # That of a rebuild leaves the old one to be what the files are.
        is_building = following is not None and bool(differences(info.identity, following))
        yield Subject(HeldIndex(index), info.identity, rules, is_building, "disk")


def check(
    data: Path,
    settings: Settings,
    patience: Patience,
    *,
    workspace: Path | None = None,
    recompute: Recompute | None = None,
) -> CheckPayload | None:
    """Returns what is not as it should be.

    Args:
        data: The data folder.
        settings: The configuration.
        patience: How to wait for a daemon; for how long follows from its settings.
        workspace: Where the files are instead of where they were indexed, without a daemon.
        recompute: Also embeds every file again.

    Returns:
        None if texts would have to be sent to a provider and may not be.

    Raises:
        StoreError: there is neither a daemon nor an index.
        DaemonError: the daemon does not answer.
        ConfigError: this version does not know the model of the index.
        EmbeddingError: the model gives no vectors.
    """
    try:
        with opened(data, settings, workspace) as subject:
            run = _Check(data, settings, subject, patience)
            run.compare(counted=recompute is not None)
            if recompute is not None and not run.recompute(recompute):
                return None
            return run.payload()
    except (SnapshotCorrupt, SnapshotIncompatible) as error:
        return _payload(Report(differences=[Difference("snapshot", "", str(error))]), "disk", None)


class _Check:
    """One check of an index."""

    def __init__(
        self, data: Path, settings: Settings, subject: Subject, patience: Patience
    ) -> None:
        self._data = data
        self._settings = settings
        self._subject = subject
        self._patience = patience
        rules, self._model = subject.rules, model_of_index(subject.identity)
        self._limits: TokenLimits = chunk_limits(rules.max_chunk_tokens, self._model)
        self._workspace = Workspace(
            Path(rules.workspace),
            exclude=Globs(rules.exclude_globs),
            max_file_bytes=rules.max_file_bytes,
        )
        self._estimate = Estimate(self._limits)
        self._report = Report()
        self._num_recomputed: int | None = None
        self._num_embedded = 0

    def compare(self, *, counted: bool) -> None:
        """Compares the index with the files, with what is saved of it and with the configuration.

        Args:
            counted: Whether to count what it takes to embed the files.
        """
        self._report = report = self._with_files(counted=counted)
        report.differences += self._of_model()
        try:
            report.differences += saved_faults(self._data, self._patience.sleep)
        except SnapshotMissing as error:
            report.differences.append(Difference("snapshot", "", str(error)))

    def _with_files(self, *, counted: bool) -> Report:
        subject = self._subject
        if subject.is_building:
            # The old index follows where that costs no vector, and need not do more.
            first = subject.index.page("")
            detail = "the index of another model is being built, the old one answers until then"
            faults = [*first.faults, Difference("building", "", detail)]
            return Report(first.num_files, first.num_chunks, faults)
        wait_s = 0.0
        if subject.source == "daemon":
            wait_s = min(subject.rules.reconcile_interval, _LONGEST_WAIT_S) + _SLACK_S
        try:
            report = check_files(
                self._workspace,
                self._limits,
                subject.index,
                replace(self._patience, wait_s=wait_s),
                on_equal=self._estimate.add if counted else None,
            )
        except WorkspaceMissing as error:
            return Report(differences=[Difference("workspace", "", str(error))])
        if subject.source == "daemon" and report.differences:
            report.differences = _with_reasons(report.differences, self._data)
        return report

    def _of_model(self) -> list[Difference]:
        if disabled_reason(self._settings):
            return []
        configured = Identity.of(configured_model(self._settings)[0])
        if changed := differences(self._subject.identity, configured):
            remedy = "`memory start` embeds every file with the configured one"
            return [Difference("model", "", f"{changed}; {remedy}")]
        return []

    def recompute(self, how: Recompute) -> bool:
        """Embeds the files of which the index holds what they hold; returns whether it may."""
        is_local = self._model.provider == LOCAL
        if not is_local and not how.may_send(self._estimate, self._model.provider):
            return False
        recomputing = Recomputing(
            self._workspace,
            self._limits,
            how.open_embedder(self._model),
            is_exact=is_local,
            on_embedded=partial(self._embedded, how.show),
        )
        found = recomputing.differences(self._subject.index, self._report.equal)
        self._report.differences += found
        self._num_recomputed = self._estimate.num_texts
        return True

    def _embedded(self, show: Callable[[int, int], None], num_texts: int) -> None:
        self._num_embedded += num_texts
        show(self._num_embedded, self._estimate.num_texts)

    def payload(self) -> CheckPayload:
        """Returns what was found."""
        return _payload(self._report, self._subject.source, self._num_recomputed)


def _with_reasons(found: Sequence[Difference], data: Path) -> list[Difference]:
    """Adds why the daemon could not index a file, where it knows."""
    status = request(data, "status", TIMEOUT_S)
    reasons = {
        failed["path"]: f"{failed['stage']} failed: {failed['reason']}"
        for failed in status["failed"]
    }
    return [
        difference._replace(detail=f"{difference.detail}; {reasons[difference.path]}")
        if difference.path in reasons
        else difference
        for difference in found
    ]


def _payload(report: Report, source: Source, num_recomputed: int | None) -> CheckPayload:
    found = sorted(set(report.differences))
    return {
        "ok": not found,
        "differences": [
            {"kind": each.kind, "path": each.path, "detail": each.detail} for each in found
        ],
        "source": source,
        "files": report.num_files,
        "chunks": report.num_chunks,
        "unsettled": report.unsettled,
        "recomputed": num_recomputed,
    }
