"""Are the vectors of an index those that its model makes of the files now?

Some files at a time go into a fresh index, so that memory is bounded; each text is embedded once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memory.analysis import Analyzer
from memory.batching import first_request
from memory.checking import HeldIndex
from memory.embedding_input import compose
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.inspection import MAX_PAGE_CHUNKS, Difference
from memory.markdown import parse_file
from memory.messages import FileUpdate
from memory.workspace import FileUnsettled, SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from memory.checking import IndexSource
    from memory.embedding_input import TokenLimits
    from memory.inspection import FileRecord, Inspection
    from memory.messages import Chunk, ParsedFile
    from memory.providers.base import Embedder
    from memory.workspace import Workspace

LEAST_COSINE = 1 - 1e-4
"""Of two vectors of one text; servers add numbers up in any order."""
_LANGUAGE = "english"


def _untold(_num_texts: int) -> None:
    """Nobody waits for the end in person."""


@dataclass(slots=True)
class Estimate:
    """What it takes to embed some files."""

    limits: TokenLimits
    num_tokens: int = 0
    _hashes: set[str] = field(default_factory=set)

    @property
    def num_texts(self) -> int:
        """Distinct texts."""
        return len(self._hashes)

    def add(self, parsed: ParsedFile) -> None:
        """Counts the texts of a file that were not counted yet."""
        for chunk in parsed.chunks:
            if chunk.content_hash not in self._hashes:
                self._hashes.add(chunk.content_hash)
                self.num_tokens += self.limits.count(compose(chunk, self.limits))


@dataclass(frozen=True, slots=True)
class Recomputing:
    """How vectors are made again.

    Args:
        workspace: The files.
        limits: Of the model.
        embedder: The model.
        is_exact: Whether it gives the same bytes each time.
        on_embedded: Is told how many texts a request had.
    """

    workspace: Workspace
    limits: TokenLimits
    embedder: Embedder
    is_exact: bool
    on_embedded: Callable[[int], None] = _untold

    def differences(self, source: IndexSource, paths: Sequence[str]) -> Iterator[Difference]:
        """Yields what a fresh index holds otherwise.

        A file that has changed since it was compared is left out, and so is a text with a vector of
        zeros, which the provider refuses.

        Args:
            source: The index.
            paths: Keys of files of which it holds what they hold.

        Raises:
            EmbeddingError: the model gives no vectors.
        """
        compared: set[bytes] = set()
        for found, files in self._blocks(source, paths):
            yield from self._compared(found, files, compared)

    def _blocks(
        self, source: IndexSource, paths: Sequence[str]
    ) -> Iterator[tuple[Inspection, list[ParsedFile]]]:
        """Yields files with what the index holds of them, as many as go into memory."""
        block: list[ParsedFile] = []
        num_chunks = 0
        for path in paths:
            try:
                read = self.workspace.read(path)
            except FileUnsettled:
                continue
            if not isinstance(read, SourceFile):
                continue
            parsed = parse_file(read, limits=self.limits)
            if block and num_chunks + len(parsed.chunks) > MAX_PAGE_CHUNKS:
                yield _asked(source, block), block
                block, num_chunks = [], 0
            block.append(parsed)
            num_chunks += len(parsed.chunks)
        if block:
            yield _asked(source, block), block

    def _compared(
        self, found: Inspection, files: Sequence[ParsedFile], compared: set[bytes]
    ) -> Iterator[Difference]:
        held = _vectors_of(found)
        # What was compared before, and what the provider refuses, is taken as it is.
        taken = {
            name: vector
            for name, vector in held.items()
            if name in compared or (not self.is_exact and not vector.any())
        }
        fresh = self._fresh_index(files, taken)
        again = HeldIndex(fresh).named([file.path for file in files], wants_vectors=True)
        records = {record.path: record for record in again.records}
        made = _vectors_of(again)
        for record, names in _with_hashes(found):
            if records.get(record.path) != record:
                continue  # the file has changed since it was compared
            for position, name in enumerate(names):
                detail = self._detail(held[name], made[name], found.value_type)
                if name not in compared and detail:
                    yield Difference("recomputed", record.path, f"chunk {position + 1} {detail}")
        compared.update(held)

    def _fresh_index(
        self, files: Sequence[ParsedFile], taken: Mapping[bytes, NDArray[np.float32]]
    ) -> MemoryIndex:
        index = MemoryIndex(self.embedder.info, Analyzer(_LANGUAGE), IndexSettings(), epoch="fresh")
        for file in files:
            missing = index.plan(file).missing
            wanted = [chunk for chunk in missing if _name(chunk) not in taken]
            vectors = dict(taken) | dict(
                zip(map(_name, wanted), self._embedded(wanted), strict=True)
            )
            hashes = tuple(chunk.content_hash for chunk in missing)
            if hashes:
                block = np.stack([vectors[_name(chunk)] for chunk in missing])
                index.apply(FileUpdate(file.path, file, hashes, block))
            else:
                index.apply(FileUpdate(file.path, file))
        return index

    def _embedded(self, chunks: Sequence[Chunk]) -> Iterator[NDArray[np.float32]]:
        """Yields a vector a chunk; a request holds as many as the provider takes."""
        texts = [compose(chunk, self.limits) for chunk in chunks]
        sizes = [self.limits.count(text) for text in texts]
        limits = self.embedder.info.limits
        while texts:
            count = first_request(sizes, max_inputs=limits.max_inputs, max_tokens=limits.max_tokens)
            yield from self.embedder.embed_documents(texts[:count])
            self.on_embedded(count)
            del texts[:count], sizes[:count]

    def _detail(self, held: NDArray[np.float32], made: NDArray[np.float32], value_type: str) -> str:
        """Returns how two vectors of one text differ; empty if they do not."""
        if held.shape != made.shape:
            return f"has a vector of dimension {len(held)}, now it is {len(made)}"
        # Half of the rows' memory is saved by an index that is large.
        made = made.astype(value_type).astype(np.float32)
        if held.tobytes() == made.tobytes():
            return ""
        norms = float(np.linalg.norm(held) * np.linalg.norm(made))
        cosine = float(held @ made) / norms if norms else 0.0
        if self.is_exact and cosine >= LEAST_COSINE:
            return "has a vector that is not the same byte by byte, made by another version"
        return f"has a vector of cosine {cosine:.5f} to a new one" * (cosine < LEAST_COSINE)


def _asked(source: IndexSource, files: Sequence[ParsedFile]) -> Inspection:
    return source.named([file.path for file in files], wants_vectors=True)


def _with_hashes(found: Inspection) -> Iterator[tuple[FileRecord, Sequence[bytes]]]:
    """Yields each file with the content hashes of its chunks."""
    first = 0
    for record in found.records:
        yield record, found.hashes[first : first + record.num_chunks]
        first += record.num_chunks


def _vectors_of(found: Inspection) -> dict[bytes, NDArray[np.float32]]:
    """Returns vectors by content hash; equal texts have equal ones, which is another question."""
    assert found.vectors is not None  # noqa: S101 - they were asked for
    return dict(zip(found.hashes, found.vectors, strict=True))


def _name(chunk: Chunk) -> bytes:
    return bytes.fromhex(chunk.content_hash)
