"""Which errors can the memory raise, and who should catch them?

::

    MemoryPluginError
    ├─ ConfigError                 the plugin disables itself, the daemon is untouched
    ├─ PackagingError              another distribution shadows ours
    ├─ EmbeddingError
    │  ├─ ProviderRejected         no retry: key, quota, model, unsupported provider
    │  ├─ ProviderUnavailable      retry later
    │  │  ├─ ProviderAwaited       nobody has asked it, since it did not work for others
    │  │  │  └─ RequestHeldBack    this request, which was about to go out
    │  │  └─ TextsUnanswered       it works for others
    │  ├─ InputRejected            these texts, while others may pass: ask for fewer or shorter ones
    │  └─ BadEmbedding             count, shape, value that is not finite, zero vector
    ├─ HandlerUnusable             no event can be handled until a file or the configuration changes
    ├─ ChatError
    │  ├─ ChatRejected             no retry: key, quota, model
    │  ├─ ChatUnavailable          retry later
    │  └─ RequestRefused           this request, while others may pass
    ├─ StoreError
    │  ├─ SnapshotMissing          nothing was saved yet
    │  ├─ SnapshotCorrupt          set aside, rebuild
    │  ├─ SnapshotIncompatible     written by another format version
    │  ├─ JournalUnusable          of another model or format, or not a journal; set aside
    │  ├─ DimensionMismatch
    │  ├─ StaleUpdate              plan again
    │  └─ LockHeld                 another daemon owns the data folder
    ├─ DaemonError                 the running daemon broke off or refused
    │  ├─ AnswerTooLarge           read the disk instead
    │  └─ DaemonNotRunning         nobody listens for this data folder
    ├─ EvaluationError             nothing can be measured
    └─ WorkspaceError              the workspace folder cannot be used
       └─ WorkspaceMissing         it vanished; keep the index

Every class passes all its arguments to ``Exception.__init__`` so that it survives pickling with its
type and fields. Messages are lower-case, name no key, no prompt and no file content.
"""

from __future__ import annotations


class MemoryPluginError(Exception):
    """Base of everything this product raises on purpose."""


class ConfigError(MemoryPluginError):
    """The configuration cannot be used; the message names the key and the remedy."""


class PackagingError(MemoryPluginError):
    """Another installed distribution shadows one of our packages."""


class EmbeddingError(MemoryPluginError):
    """An embedding call did not give usable vectors."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(provider, reason)
        self.provider = provider
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.provider}: {self.reason}"


class ProviderRejected(EmbeddingError):
    """The provider will not answer until the configuration changes."""


class ProviderUnavailable(EmbeddingError):
    """The provider may answer later."""

    def __init__(self, provider: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(provider, reason)
        self.args = (provider, reason, retry_after_s)
        self.retry_after_s = retry_after_s


class ProviderAwaited(ProviderUnavailable):
    """The provider was not asked; the reason is that of an earlier request, for others."""

    def __str__(self) -> str:
        return f"waiting for {self.provider}: {self.reason}"


class RequestHeldBack(ProviderAwaited):
    """This request was not sent, because another one failed while it waited for its turn."""


class TextsUnanswered(ProviderUnavailable):
    """The provider fails at these texts, though it took another one just before."""


class InputRejected(EmbeddingError):
    """The provider does not take these texts, or not so many; it may take others."""

    def __init__(self, provider: str, reason: str, too_large: bool = False) -> None:  # noqa: FBT001, FBT002 - pickle passes args by position
        super().__init__(provider, reason)
        self.args = (provider, reason, too_large)
        self.too_large = too_large
        """Whether a limit of count, tokens or bytes was passed."""


class BadEmbedding(EmbeddingError):
    """The answer has the wrong count or shape, or holds a NaN, an infinity or a zero vector."""


class HandlerUnusable(MemoryPluginError):
    """Nobody can handle an event; the message names the file or the key, and the remedy."""


class ChatError(MemoryPluginError):
    """A chat model gave no usable answer."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(provider, reason)
        self.provider = provider
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.provider}: {self.reason}"


class ChatRejected(ChatError):
    """The provider will not answer until the configuration changes."""


class ChatUnavailable(ChatError):
    """The provider may answer later."""

    def __init__(self, provider: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(provider, reason)
        self.args = (provider, reason, retry_after_s)
        self.retry_after_s = retry_after_s


class RequestRefused(ChatError):
    """The provider does not take this request; it may take others."""


class StoreError(MemoryPluginError):
    """The persisted or in-memory index cannot be used as asked."""


class SnapshotMissing(StoreError):
    """There is no snapshot to read."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"no index at {self.path}"


class SnapshotCorrupt(StoreError):
    """The snapshot does not match its checksums or its own header."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class SnapshotIncompatible(StoreError):
    """The snapshot was written by another format version."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)
        self.path = path
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.path}: format {self.found}, expected {self.expected}"


class JournalUnusable(StoreError):
    """The journal is none, or belongs to another model or another snapshot."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class DimensionMismatch(StoreError):
    """A vector has another dimension than the index."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"expected vectors of dimension {self.expected}, found {self.found}"


class StaleUpdate(StoreError):
    """An update relies on a vector the index no longer knows; plan again."""

    def __init__(self, path: str, epoch: str) -> None:
        super().__init__(path, epoch)
        self.path = path
        self.epoch = epoch

    def __str__(self) -> str:
        return f"{self.path}: planned against another state of the index"


class LockHeld(StoreError):
    """Another process owns the data folder."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(path, owner)
        self.path = path
        self.owner = owner

    def __str__(self) -> str:
        return f"{self.path} is in use by {self.owner}"


class DaemonError(MemoryPluginError):
    """The running daemon broke off, or refused the request."""


class AnswerTooLarge(DaemonError):
    """The daemon's answer does not fit a message; what it is made of is on disk, too."""


class DaemonNotRunning(DaemonError):
    """No daemon listens for this data folder."""


class EvaluationError(MemoryPluginError):
    """Nothing can be measured: there are no questions, or they cannot be read."""


class WorkspaceError(MemoryPluginError):
    """The workspace folder cannot be used."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class WorkspaceMissing(WorkspaceError):
    """The workspace folder does not exist at the moment; its files are not gone for that."""
