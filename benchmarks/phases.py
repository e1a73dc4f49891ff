"""What is measured, each phase in a process of its own?

A phase takes a folder for files that later phases use, and the number of chunks; it returns figures
by name, with a peer or a physical limit beside each.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import corpus
import numpy as np
from markdown_it import MarkdownIt
from measuring import cold_seconds, median_seconds, percentiles, percentiles_ms, save, seconds

from memory.analysis import Analyzer
from memory.chunk_limits import chunk_limits
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.markdown import parse_file
from memory.messages import FileUpdate, Query
from memory.providers.factory import model_info
from memory.providers.local import LOCAL, MINILM
from memory.snapshot import SNAPSHOT_NAME, SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from memory.embedding_input import TokenLimits
    from memory.workspace import SourceFile

INFO = model_info(LOCAL, MINILM)
ENGLISH = "english"
NUM_QUERIES = 200
NUM_EDITS = 50
LIMIT = 5
REPEATS = 5
SCAN_ROWS = 50


def parsing(_folder: Path, num_chunks: int) -> dict[str, float]:
    """Markdown to chunks, tokens counted as the model does; peer: the CommonMark parser alone."""
    sources = list(corpus.files(num_chunks))
    limits = chunk_limits(None, INFO)
    chunks = [len(parse_file(source, limits=limits).chunks) for source in sources[:1]]  # warm

    def parse() -> None:
        chunks[:] = [len(parse_file(source, limits=limits).chunks) for source in sources]

    parser = MarkdownIt("commonmark")
    texts = [source.data.decode() for source in sources]
    duration = seconds(parse)
    return {
        "chunks": sum(chunks),
        "chunks/s": sum(chunks) / duration,
        "MB/s": sum(source.size for source in sources) / 1e6 / duration,
        "times of markdown-it alone": duration / seconds(lambda: list(map(parser.parse, texts))),
    }


def indexing(folder: Path, num_chunks: int) -> dict[str, float]:
    """Chunks to rows, vectors given, one file at a time, then edits of one section each.

    Leaves the index for later phases.
    """
    index = MemoryIndex(INFO, Analyzer(ENGLISH), IndexSettings(), epoch="benchmark")
    sources, limits = list(corpus.files(num_chunks)), chunk_limits(None, INFO)
    updates = [_update(index, source, limits) for source in sources]
    duration = seconds(lambda: [index.apply(update) for update in updates])
    save(index, folder / SNAPSHOT_NAME)
    rows = index.status().num_chunks
    edits = []
    for source in sources[:: max(1, len(sources) // NUM_EDITS)]:
        edit = _update(index, replace(source, data=source.data + b"\nHarbour water.\n"), limits)
        edits.append(1000 * seconds(lambda edit=edit: index.apply(edit)))  # type: ignore[misc]
    return {
        "rows": rows,
        "rows/s": rows / duration,
        **{f"edit of a section {name}": value for name, value in percentiles(edits).items()},
    }


def _update(index: MemoryIndex, source: SourceFile, limits: TokenLimits) -> FileUpdate:
    parsed = parse_file(source, limits=limits)
    hashes = tuple(chunk.content_hash for chunk in index.plan(parsed).missing)
    return FileUpdate(parsed.path, parsed, hashes, corpus.vectors(hashes, INFO.dim))


def querying(folder: Path, _num_chunks: int) -> dict[str, float]:
    """Searches of 2 to 12 words; peers: Whoosh's own searcher, a bare FAISS scan."""
    words = corpus.Words(seed=11)
    chance = np.random.default_rng(11)
    texts = [words.text(int(chance.integers(2, 13))) for _ in range(NUM_QUERIES)]
    asked = corpus.vectors(texts, INFO.dim)
    figures: dict[str, float] = {}
    for mode, weights in {
        "hybrid": Weights(0.5, 0.5),
        "text": Weights(1.0, 0.0),
        "vector": Weights(0.0, 1.0),
    }.items():
        index = _restored(folder, weights)
        searches: list[Callable[[], object]] = [
            lambda text=text, row=row, index=index: index.search(Query(text, LIMIT), row)
            for text, row in zip(texts, asked, strict=True)
        ]
        figures |= {f"{mode} {name}": value for name, value in percentiles_ms(searches).items()}
    figures |= _whoosh_peer(folder, texts[: NUM_QUERIES // 8])
    return figures | _faiss_peer(folder, asked)


def _whoosh_peer(folder: Path, texts: list[str]) -> dict[str, float]:
    from whoosh.filedb.filestore import RamStorage
    from whoosh.query import Or, Term

    storage = RamStorage()
    with SnapshotFile(folder / SNAPSHOT_NAME) as snapshot:
        names = [part.name for part in snapshot.header.parts if part.name.startswith("text/")]
        storage.files = {name.removeprefix("text/"): snapshot.view(name) for name in names}
    analyzer = Analyzer(ENGLISH)
    with storage.open_index().searcher() as searcher:
        fields = ("path", "headlines", "context", "content", "meta")
        queries = [
            Or([Term(field, term) for term in analyzer.query_terms(text) for field in fields])
            for text in texts
        ]
        peer = percentiles_ms([lambda q=q: searcher.search(q, limit=200) for q in queries])  # type: ignore[misc]
    return {f"Whoosh's searcher {name}": value for name, value in peer.items()}


def _faiss_peer(folder: Path, asked: np.ndarray) -> dict[str, float]:
    import faiss

    faiss.omp_set_num_threads(1)
    with SnapshotFile(folder / SNAPSHOT_NAME) as snapshot:
        kind = np.dtype(snapshot.header.info.vector_type)
        block = np.frombuffer(snapshot.view("vectors"), kind).reshape(-1, INFO.dim)
    flat = faiss.IndexFlatIP(INFO.dim)
    flat.add(np.ascontiguousarray(block))
    scans = [lambda row=row: flat.search(row[None], SCAN_ROWS) for row in asked]  # type: ignore[misc]
    return {f"bare FAISS scan {name}": value for name, value in percentiles_ms(scans).items()}


def persisting(folder: Path, _num_chunks: int) -> dict[str, float]:
    """Snapshot out and in; limits: writing and syncing, and reading, the same bytes."""
    path = folder / SNAPSHOT_NAME
    index = _restored(folder, Weights())
    data = path.read_bytes()
    plain = folder / "plain.bin"

    def write_plain() -> None:
        with plain.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    save_s = median_seconds(lambda: save(index, path), REPEATS)
    load = median_seconds(lambda: _restored(folder, Weights()), REPEATS)
    return {
        "MB": len(data) / 1e6,
        "save ms": 1000 * save_s,
        "write and sync of the bytes ms": 1000 * median_seconds(write_plain, REPEATS),
        "load ms": 1000 * load,
        "read of the bytes ms": 1000 * median_seconds(plain.read_bytes, REPEATS),
    }


def cold_commands(folder: Path, _num_chunks: int) -> dict[str, float]:
    """Whole processes of the command line; limit: a Python that does nothing."""
    with SnapshotFile(folder / SNAPSHOT_NAME) as snapshot:
        path = next(_paths(snapshot))
    where = ["--data", str(folder), "--config", str(folder / "none.yml")]
    (folder / "none.yml").write_text("memory: {embeddings: {provider: local}}\n")
    commands = {
        "python -c pass": ["-c", "pass"],
        "list": ["-m", "memory", "list", *where],
        "show": ["-m", "memory", "show", path, *where],
        "search": ["-m", "memory", "search", "harbour water", *where],
    }
    return {f"{name} s": cold_seconds(words, folder, REPEATS) for name, words in commands.items()}


def embedding(_folder: Path, num_chunks: int) -> dict[str, float]:
    """The pool on Ray against bare loops, for one worker and for one on each core."""
    import local_pool

    return local_pool.figures(max(16, num_chunks // 150))


PHASES = {
    "parsing": parsing,
    "embedding": embedding,
    "indexing": indexing,
    "querying": querying,
    "persisting": persisting,
    "cold commands": cold_commands,
}


def _restored(folder: Path, weights: Weights) -> MemoryIndex:
    with SnapshotFile(folder / SNAPSHOT_NAME) as snapshot:
        return MemoryIndex.restore(
            snapshot, INFO, Analyzer(ENGLISH), IndexSettings(weights=weights), epoch="benchmark"
        )


def _paths(snapshot: SnapshotFile) -> Iterator[str]:
    from memory.records import decode_files

    files = decode_files(snapshot.view("files"))
    return (packed.summary.path for packed, *_ in files)
