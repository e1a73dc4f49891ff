"""What would it cost to embed every file with the configured model?

Asks nobody and writes nothing. One file is in memory at a time; what stays of it is a hash a text.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from memory.batching import first_request
from memory.embedding_input import compose
from memory.errors import StoreError
from memory.identity import Identity
from memory.index_folders import NEXT_NAME, reusable
from memory.markdown import parse_file
from memory.messages import SkippedFile
from memory.providers.local import LOCAL
from memory.reader import SnapshotReader
from memory.snapshot import SNAPSHOT_NAME
from memory.spending import price_of
from memory.workspace import FileUnsettled, Gone

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from memory.embedding_input import TokenLimits
    from memory.messages import ParsedFile
    from memory.payloads import RebuildEstimatePayload
    from memory.providers.base import ModelInfo, RequestLimits
    from memory.workspace import Workspace


class RequestTally:
    """Counts what texts cost that are sent one after another, as many at once as may be.

    Args:
        limits: Of the provider.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self._max_inputs, self._max_tokens = limits.max_inputs, limits.max_tokens
        self._waiting: list[int] = []
        self._num_waiting_tokens = self._num_sent = 0
        self.num_texts = self.num_tokens = 0

    @property
    def num_requests(self) -> int:
        """Requests for all texts so far; what does not fill one goes in one, too."""
        return self._num_sent + bool(self._waiting)

    def add(self, num_tokens: int) -> None:
        """Counts a text of so many tokens."""
        self.num_texts += 1
        self.num_tokens += num_tokens
        self._waiting.append(num_tokens)
        self._num_waiting_tokens += num_tokens
        if len(self._waiting) > self._max_inputs or self._num_waiting_tokens > self._max_tokens:
            self._send()

    def _send(self) -> None:
        number = first_request(
            self._waiting, max_inputs=self._max_inputs, max_tokens=self._max_tokens
        )
        if number < len(self._waiting):
            self._num_sent += 1
            self._num_waiting_tokens -= sum(self._waiting[:number])
            del self._waiting[:number]


class RebuildEstimate:
    """Counts what files cost.

    Args:
        model: The configured model.
        limits: Of its inputs.
        embedded: Content hashes of texts that have a vector of this model already.
    """

    def __init__(
        self, model: ModelInfo, limits: TokenLimits, embedded: AbstractSet[bytes] = frozenset()
    ) -> None:
        self._model = model
        self._limits = limits
        self._embedded = embedded
        self._seen: set[bytes] = set()
        self._all, self._left = RequestTally(model.limits), RequestTally(model.limits)
        self._num_files = self._num_chunks = 0
        self._skipped: list[SkippedFile] = []

    def add_all(self, workspace: Workspace) -> None:
        """Counts every file of a workspace, and notes those that would not be indexed.

        Raises:
            WorkspaceMissing: the root is not there.
        """
        scan = workspace.scan()
        self._skipped += scan.skipped
        for stamp in scan.files:
            try:
                source = workspace.read(stamp.raw_path)
            except FileUnsettled as error:
                source = SkippedFile(stamp.path, error.reason)
            if isinstance(source, SkippedFile):
                self._skipped.append(source)
            elif not isinstance(source, Gone):
                self._add(parse_file(source, limits=self._limits))

    def _add(self, parsed: ParsedFile) -> None:
        self._num_files += 1
        self._num_chunks += len(parsed.chunks)
        for chunk in parsed.chunks:
            name = bytes.fromhex(chunk.content_hash)
            if name not in self._seen:
                self._seen.add(name)
                num_tokens = self._limits.count(compose(chunk, self._limits))
                self._all.add(num_tokens)
                if name not in self._embedded:
                    self._left.add(num_tokens)

    def payload(
        self, *, reused_from: str = "", price_per_million: float | None = None
    ) -> RebuildEstimatePayload:
        """Returns the figures.

        Args:
            reused_from: Which index holds what is embedded already.
            price_per_million: Of tokens; None if it is not known.
        """
        model, every, left = self._model, self._all, self._left
        is_local = model.provider == LOCAL
        skipped = sorted((file.path, file.reason) for file in self._skipped)
        return {
            "embedding": {"provider": model.provider, "model": model.model, "dimension": model.dim},
            "files": self._num_files,
            "chunks": self._num_chunks,
            "to_embed": every.num_texts,
            "tokens": every.num_tokens,
            "calls": 0 if is_local else every.num_requests,
            "cost": price_of(every.num_tokens, price_per_million),
            "resumed": reused_from == NEXT_NAME,
            "reused_from": reused_from,
            "reused": every.num_texts - left.num_texts,
            "left_to_embed": left.num_texts,
            "left_tokens": left.num_tokens,
            "left_calls": 0 if is_local else left.num_requests,
            "left_cost": price_of(left.num_tokens, price_per_million),
            "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
        }


def embedded_texts(data: Path, model: ModelInfo, now: float) -> tuple[set[bytes], str]:
    """Returns the content hashes that a start would not embed again, and which index has them.

    Args:
        data: The data folder.
        model: The configured model.
        now: Unix time in seconds.

    Raises:
        OSError: a file cannot be read now.
    """
    with suppress(StoreError, FileNotFoundError):  # what cannot be read is not reused either
        folder = reusable(data, configured=Identity.of(model), now=now)
        if folder is not None:
            with SnapshotReader(folder) as reader:
                name = SNAPSHOT_NAME if folder == data else folder.name
                return reader.embedded_hashes(), name
    return set(), ""
