"""Which files, rows, vectors and questions does the engine benchmark work on?

Made of words with the frequencies of Zipf's law, without markdown, so that 100,000 chunks are there
in seconds; or read from a folder of somebody's files, with the same made-up vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import corpus
import numpy as np

from memory.chunk_limits import chunk_limits
from memory.chunk_table import IndexedFile, text_rows
from memory.globs import Globs
from memory.hashing import content_hash
from memory.markdown import parse_file
from memory.messages import Chunk, FileUpdate, ParsedFile
from memory.providers.factory import model_info
from memory.providers.local import LOCAL, MINILM
from memory.records import pack_file
from memory.stop_words import load_stop_words
from memory.workspace import SourceFile, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from memory.text_index import TextRow

ENGLISH = "english"
INFO = model_info(LOCAL, MINILM)
DIM = INFO.dim
CHUNKS_A_FILE = 10
WORDS_A_CHUNK = 154
WORDS_OF_CONTEXT = 24
WORDS_A_HEADING = 3
NUM_QUERIES = 200
_LEAST_WORDS, _MOST_WORDS = 2, 12


@dataclass(frozen=True, slots=True)
class Material:
    """What one run works on, in any of its processes."""

    num_chunks: int
    workspace: Path | None = None
    """A folder of markdown files; None makes them up."""

    def parsed_files(self) -> Iterator[ParsedFile]:
        """Yields parsed files until so many chunks are there, or the folder has no more."""
        left = self.num_chunks
        for parsed in _read(self.workspace) if self.workspace else _made(left):
            if left <= 0:
                return
            yield replace(parsed, chunks=parsed.chunks[:left])
            left -= len(parsed.chunks)

    def rows(self) -> Iterator[TextRow]:
        """Yields the chunks as the text index takes them, numbered through."""
        begin = 0
        for parsed in self.parsed_files():
            end = begin + len(parsed.chunks)
            yield from text_rows(IndexedFile(pack_file(parsed), tuple(range(begin, end))))
            begin = end

    def updates(self) -> Iterator[FileUpdate]:
        """Yields the files with a vector per chunk, as the index takes them."""
        yield from map(update_of, self.parsed_files())

    def queries(self, count: int = NUM_QUERIES) -> list[str]:
        """Returns questions of 2 to 12 words, frequent words as often as the corpus has them."""
        words = self._words()
        lengths = np.random.default_rng(11).integers(_LEAST_WORDS, _MOST_WORDS + 1, count)
        return [" ".join(islice(words, int(length))) for length in lengths]

    def _words(self) -> Iterator[str]:
        stop_words, chance = load_stop_words(ENGLISH), np.random.default_rng(12)
        if self.workspace is None:
            drawn: Iterable[str] = _words(chance)
        else:
            texts = [row.content for row in islice(self.rows(), 2000)]
            every = corpus.WORD.findall("\n".join(texts).lower())
            drawn = (every[int(number)] for number in iter(lambda: chance.integers(len(every)), -1))
        return (word for word in drawn if word not in stop_words)


def update_of(parsed: ParsedFile) -> FileUpdate:
    """Returns a file with a vector for each of its texts; equal texts have equal ones."""
    hashes = tuple(dict.fromkeys(chunk.content_hash for chunk in parsed.chunks))
    return FileUpdate(parsed.path, parsed, hashes, corpus.vectors(hashes, DIM))


def vectors_of(updates: Iterable[FileUpdate]) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Returns the distinct hashes of files and their vectors, shape (n, DIM)."""
    found: dict[str, NDArray[np.float32]] = {}
    for update in updates:
        found.update(zip(update.hashes, update.vectors, strict=True))
    return tuple(found), np.stack(list(found.values()))


def edited(parsed: ParsedFile, number: int) -> ParsedFile:
    """Returns a file after somebody added a line to its last section, another line per number."""
    last = parsed.chunks[-1]
    text = f"{last.content}\n\nHarbour water {number}."
    changed = replace(
        last, content=text, content_hash=content_hash(last.headlines, last.context, text)
    )
    return replace(parsed, mtime_ns=parsed.mtime_ns + number, chunks=(*parsed.chunks[:-1], changed))


def query_vectors(queries: Sequence[str]) -> NDArray[np.float32]:
    """Returns a unit vector per question, shape (len(queries), DIM)."""
    return corpus.vectors(queries, DIM)


def _words(chance: np.random.Generator) -> Iterator[str]:
    """Yields words without end; drawn many at a time, because each draw searches the whole law."""
    words = corpus.vocabulary()
    shares = np.cumsum(1 / np.arange(1, len(words) + 1))
    while True:
        yield from words[np.searchsorted(shares, chance.random(65_536) * shares[-1])].tolist()


def _made(num_chunks: int) -> Iterator[ParsedFile]:
    words = _words(np.random.default_rng(corpus.SEED))
    for number in range(-(-num_chunks // CHUNKS_A_FILE)):
        path = f"wiki/{next(words)}/{next(words)}-{number}.md"
        context, title = _text(words, WORDS_OF_CONTEXT), f"# {_text(words, WORDS_A_HEADING)}"
        trails = [title] + [
            f"{title} > ## {_text(words, WORDS_A_HEADING)}" for _ in range(CHUNKS_A_FILE - 1)
        ]
        texts = [_text(words, WORDS_A_CHUNK) for _ in trails]
        chunks = tuple(
            _chunk(trail, context, text, line=4 * position + 1)
            for position, (trail, text) in enumerate(zip(trails, texts, strict=True))
        )
        yield ParsedFile(
            path=path,
            raw_path=path,
            mtime_ns=number + 1,
            size=sum(map(len, texts)),
            inode=number + 1,
            title="",
            description=context[:80],
            summary=context,
            tags=(),
            dates=(),
            num_replaced_bytes=0,
            chunks=chunks,
        )


def _text(words: Iterator[str], count: int) -> str:
    return " ".join(islice(words, count))


def _chunk(headlines: str, context: str, content: str, *, line: int) -> Chunk:
    return Chunk(
        headlines=headlines,
        context=context,
        content=content,
        content_hash=content_hash(headlines, context, content),
        part=1,
        num_parts=1,
        start_line=line,
        end_line=line + 2,
    )


def _read(root: Path) -> Iterator[ParsedFile]:
    workspace, limits = Workspace(root, exclude=Globs()), chunk_limits(None, INFO)
    for stamp in workspace.scan().files:
        source = workspace.read(stamp.raw_path)
        if isinstance(source, SourceFile):
            yield parse_file(source, limits=limits)
