"""What do the peers need to answer the same questions over the same rows?

tantivy and bm25s get the terms that our analyzer makes of rows and questions, so that the engines
are compared and not their stemmers. What helps a peer is outside its time: its queries are made
beforehand, its hits are left as it numbers them, nothing of a document is fetched.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.posting_lists import FIELDS
from memory.text_query import FIELD_BOOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from memory.analysis import Analyzer
    from memory.text_index import TextRow

_HEAP_BYTES = 1_000_000_000


def is_installed(package: str) -> bool:
    """Tells whether a peer can be imported."""
    return importlib.util.find_spec(package) is not None


def terms_of(analyzer: Analyzer, row: TextRow) -> dict[str, list[str]]:
    """Returns the terms of each field of a row, as our index takes them."""
    terms = {field: analyzer.tokens(getattr(row, field)) for field in FIELDS}
    return terms | {"path": analyzer.path_tokens(row.path)}


class Tantivy:
    """BM25 over the same fields with the same boosts, in memory, one segment.

    Args:
        rows: Terms of each field, a map a row.
    """

    def __init__(self, rows: Iterable[dict[str, list[str]]]) -> None:
        import tantivy

        self._module: Any = tantivy
        builder = tantivy.SchemaBuilder()
        for field in FIELDS:
            builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
        self._schema = builder.build()
        index = tantivy.Index(self._schema)
        writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        for row in rows:
            writer.add_document(
                tantivy.Document(**{field: " ".join(terms) for field, terms in row.items()})
            )
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()

    @property
    def num_segments(self) -> int:
        """Parts the index consists of."""
        return int(self._searcher.num_segments)

    def search(self, analyzer: Analyzer, text: str, limit: int) -> Callable[[], Any]:
        """Returns the search for a text; each call analyses the text, as ours does."""
        query = self._query(analyzer.query_terms(text))

        def search() -> Any:
            analyzer.query_terms(text)
            return self._searcher.search(query, limit=limit, count=False).hits

        return search

    def _query(self, terms: list[str]) -> Any:
        query, should = self._module.Query, self._module.Occur.Should
        clauses = []
        for field, boost in FIELD_BOOSTS.items():
            for term in terms:
                clause = query.term_query(self._schema, field, term, index_option="freq")
                clauses.append((should, clause if boost == 1 else query.boost_query(clause, boost)))
        return query.boolean_query(clauses)


class Bm25s:
    """BM25 over all fields taken as one, in memory.

    Args:
        rows: Terms of each field, a map a row.
    """

    def __init__(self, rows: Iterable[dict[str, list[str]]]) -> None:
        import bm25s

        texts = [[term for terms in row.values() for term in terms] for row in rows]
        self._index: Any = bm25s.BM25()
        self._index.index(texts, show_progress=False)

    def search(self, analyzer: Analyzer, text: str, limit: int) -> Callable[[], Any]:
        """Returns the search for a text; each call analyses the text, as ours does."""

        def search() -> Any:
            terms = analyzer.query_terms(text)
            return self._index.retrieve([terms], k=limit, show_progress=False, n_threads=0)

        return search


def faiss_scan(block: NDArray[np.float32]) -> Callable[[NDArray[np.float32], int], object]:
    """Returns a search of a flat FAISS index with one thread, and of nothing else."""
    import faiss

    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatIP(block.shape[1])
    flat.add(np.ascontiguousarray(block))
    return lambda vector, limit: flat.search(vector[None], limit)


def write_synced(path: Path, data: bytes) -> None:
    """Writes bytes and waits until the disk has them, as cheaply as that can be done."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
