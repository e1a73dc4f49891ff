"""Which values travel between the parts of the system?

Every message is a frozen, slotted dataclass made of tuples, strings, numbers and float32 arrays, so
it can be pickled, compared and never changed on the way; hits, which are many, are named tuples.
``__post_init__`` checks what a receiver would otherwise have to check again. An array inside a
message is read-only for its receiver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _no_vectors() -> NDArray[np.float32]:
    """Returns a matrix without rows."""
    import numpy as np  # noqa: PLC0415 - listings need these messages but not numpy

    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A hint that a file may have changed; the disk decides what happened."""

    raw_path: str
    """Workspace-relative path as the file system spells it, ``/``-separated."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What a scan of the workspace saw of one file, without reading it."""

    path: str
    """Key of the file: workspace-relative, ``/``-separated, NFC (SPEC W2)."""
    raw_path: str
    """The same path as the file system spells it; only good for opening."""
    mtime_ns: int
    size: int
    """Bytes."""
    inode: int


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of the workspace that is not indexed, or not as it is, and why."""

    path: str
    """Printable path: undecodable bytes are shown as replacement characters."""
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """Every indexable file below the root at one moment, sorted by path."""

    files: tuple[FileStamp, ...]
    skipped: tuple[SkippedFile, ...]
    unreadable: tuple[str, ...] = ()
    """Keys of files and folders that exist but could not be looked into; what the index knows at or
    below them is kept (SPEC D6). The empty string stands for the root."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One section of a file, or one part of a long section (SPEC C1-C9)."""

    headlines: str
    """Trail of headings, ``# Adam Smith > ## Meetings``."""
    context: str
    """First plain paragraph of the file (SPEC C4); the same for all chunks of a file."""
    content: str
    """Section body without its heading line, blank lines at both ends trimmed."""
    content_hash: str
    """SHA-256 over length-prefixed headlines, context and content, hex."""
    part: int
    """1-based number of this part of its section; 1 if the section was not split."""
    num_parts: int
    start_line: int
    """First line in the file, 1-based; the heading line for the first part."""
    end_line: int
    """Last line in the file, 1-based, inclusive."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A file after parsing: its record in the index."""

    path: str
    """NFC key, see FileStamp.path."""
    raw_path: str
    mtime_ns: int
    size: int
    inode: int
    title: str
    """Front matter ``title``; empty if none."""
    description: str
    """Front matter ``description`` as plain text, at most 200 characters; empty if none."""
    summary: str
    """First plain paragraph, else first content line, as plain text, at most 200 characters."""
    tags: tuple[str, ...]
    dates: tuple[tuple[str, str], ...]
    """Front matter dates as written: (key, value), sorted by key."""
    num_replaced_bytes: int
    """Invalid UTF-8 sequences replaced by U+FFFD."""
    chunks: tuple[Chunk, ...]
    """In file order; empty for a blank file, which is known nevertheless (SPEC C6)."""


@dataclass(frozen=True, slots=True)
class FileDelta:
    """What a parsed file needs before it can be applied."""

    path: str
    missing: tuple[Chunk, ...]
    """Chunks whose vector is not known, one per distinct content hash, in file order."""
    num_reused: int
    """Chunks whose vector is already known, whichever file it came from."""
    is_new: bool
    """Whether the index does not know the file yet."""
    epoch: str
    """Incarnation of the keeper that answered."""


@dataclass(frozen=True, slots=True, eq=False)
class FileUpdate:
    """What a file *is* from now on; applying it twice is harmless."""

    path: str
    parsed: ParsedFile | None
    """None removes the file."""
    hashes: tuple[str, ...] = ()
    """Content hashes of the rows of ``vectors``."""
    vectors: NDArray[np.float32] = field(default_factory=_no_vectors)
    """Embeddings, shape (len(hashes), dim), float32, unit norm; zero for a text that the provider
    refuses, which is then found by its words alone."""

    def __post_init__(self) -> None:
        """Checks that vectors and hashes fit together and are finite."""
        import numpy as np  # noqa: PLC0415 - see _no_vectors

        if self.vectors.ndim != 2 or len(self.vectors) != len(self.hashes):  # noqa: PLR2004
            msg = f"{len(self.hashes)} hashes but vectors of shape {self.vectors.shape}"
            raise ValueError(msg)
        if not np.isfinite(self.vectors).all():
            msg = "vectors hold a value that is not finite"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """What became of texts that were to be embedded."""

    vectors: NDArray[np.float32]
    """Shape (n, dim), float32, unit norm; zero for a refused text."""
    refused: tuple[tuple[int, str], ...] = ()
    """Position of each refused text, and why."""


@dataclass(frozen=True, slots=True)
class WordsOnly:
    """A file that the index does not hold as others: chunks without a vector, or replaced bytes."""

    path: str
    hashes: tuple[str, ...]
    """Content hashes of chunks without a vector, since the provider refused them, one each."""
    num_chunks: int
    """Of the whole file."""
    num_replaced_bytes: int = 0
    """See ParsedFile."""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """Answer of the index to one FileUpdate."""

    epoch: str
    revision: int
    """Change counter of the index; grows by one per update that changed something."""
    num_added: int
    """Chunks that were not in this file before."""
    num_removed: int
    num_kept: int


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the index."""

    text: str
    limit: int
    """Most files in the answer (SPEC S7), at least 1."""
    wants_snippets: bool = True
    """Without them a search takes half the time; a table of files shows none."""
    wants_distinct_files: bool = False
    """Whether a file gives its place to the next one if its best hit says nearly what the best hit
    of a file above it says (``near_duplicates``)."""
    parts: tuple[str, ...] = ()
    """Parts of a long text that are asked one by one in its place (``prompt_parts``)."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What is asked, and embedded: the parts, or else the text."""
        return self.parts or (self.text,)


class Hit(NamedTuple):
    """One chunk that answers a query; a dataclass takes four times as long to make."""

    path: str
    headlines: str
    start_line: int
    end_line: int
    score: float
    """In [0, 1], comparable between queries."""
    text_score: float
    """BM25 share of what the query could reach at best, in [0, 1]."""
    vector_score: float
    """Cosine of query and chunk, in [-1, 1]; 0 if the vector side did not take part."""
    snippet: str
    """Piece of the content around the first matching words, raw text, at most 300 characters; empty
    if the query did not want it."""
    mtime_ns: int
    """Modification time of the file when it was indexed."""
    size: int
    """Bytes of the file when it was indexed."""
    noise: float = 0.0
    """Cosine of the chunk with texts that have nothing to do with it, in [0, 1)."""
    part: str = ""
    """Part of a long query that the chunk answers best; empty if the query was asked whole."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits of a query, best first; at most three per file, at most ``limit`` files."""

    hits: tuple[Hit, ...]
    epoch: str
    revision: int
    degraded: str
    """Why only one side answered (``no query embedding``); empty if both did."""
    threshold: float | None = None
    """Level in (0, 1) from which on an answer to this query scores more than 0.55; None if not
    measured yet."""


@dataclass(frozen=True, slots=True)
class FileSummary:
    """One known file, as listings and the memories table need it."""

    path: str
    raw_path: str
    mtime_ns: int
    size: int
    inode: int
    num_chunks: int
    description: str
    summary: str


@dataclass(frozen=True, slots=True)
class FileFailed:
    """A file that could not be indexed for now."""

    path: str
    stage: str
    """``read``, ``parse``, ``embed`` or ``apply``."""
    reason: str
    attempts: int
    retry_at: float
    """Unix time of the next attempt, seconds; sooner if what it waits for works before."""
    waits: bool = False
    """Whether it waits for something that does not work for others either."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Counters of the index."""

    epoch: str
    revision: int
    num_files: int
    num_chunks: int
    dim: int
    """Dimension of the vectors; 0 before the first one."""
    pid: int
    threshold: float | None = None
    """Level from which on an answer scores more than 0.55; None if not measured yet."""
    provider: str = ""
    model: str = ""
    """That made the vectors."""
    building: IndexStatus | None = None
    """Of the index that takes over once it is complete; None if there is none."""
    rebuild: int = 0
    """How often every file was embedded anew, see Identity."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One row of the ``# Memories`` table."""

    path: str
    score: float
    """In [0, 1]."""
    description: str


@dataclass(frozen=True, slots=True)
class ContextSection:
    """What the context provider adds to a system prompt."""

    text: str
    """Markdown; empty when there is nothing to say (blank prompt, nothing indexed yet)."""
    rows: tuple[MemoryRow, ...]
    degraded: str
    """Why only the text side answered; empty if both did."""


@dataclass(frozen=True, slots=True)
class SaveReceipt:
    """Answer to a fact that was handed over for saving."""

    event_id: str
    state: str
    """``queued``, ``already queued`` or ``already saved``."""
