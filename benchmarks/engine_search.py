"""How fast are questions answered, beside peers in the same process?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import corpus
import engine_corpus
import engine_index
from engine_figures import NO_TARGET, Findings, Target
from engine_peers import Bm25s, Tantivy, faiss_scan, is_installed, terms_of
from measuring import interleaved_ms, percentiles

from memory.analysis import Analyzer
from memory.messages import Query
from memory.text_index import TextIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from engine_corpus import Material
    from numpy.typing import NDArray

LIMIT = 10
_ROWS_A_CALL = 1000


def lexical(_folder: Path, material: Material) -> Findings:
    """The text half alone against tantivy, then against bm25s: from a text to ten rows."""
    analyzer, queries = Analyzer(engine_corpus.ENGLISH), material.queries()
    rows = list(material.rows())
    ours = TextIndex(analyzer)
    for begin in range(0, len(rows), _ROWS_A_CALL):
        ours.apply(add=rows[begin : begin + _ROWS_A_CALL], remove=())
    searches = [partial(ours.search, text, limit=LIMIT) for text in queries]

    findings = Findings()
    for peer, target in ((Tantivy, Target(ratio_most=1.0)), (Bm25s, NO_TARGET)):
        name = peer.__name__.lower()
        sides: dict[str, list[Callable[[], object]]] = {"ours": [*searches]}
        if is_installed(name):
            index = peer(terms_of(analyzer, row) for row in rows)
            sides[name] = [index.search(analyzer, text, LIMIT) for text in queries]
        else:
            findings.notes.append(_not_installed(name))
            if target == NO_TARGET:
                continue
        taken = {side: percentiles(each) for side, each in interleaved_ms(sides).items()}
        for cut, value in taken["ours"].items():
            anchor = (name, taken[name][cut]) if name in taken else None
            measure = f"lexical {cut.removesuffix(' ms')}"
            if name != "tantivy":
                measure += f", beside {name}"
            findings.add(measure, value, "ms", anchor=anchor, target=target)
    return findings


def hybrid(folder: Path, material: Material) -> Findings:
    """Whole answers as the memories table asks for them, against a bare scan and tantivy's."""
    analyzer, queries = Analyzer(engine_corpus.ENGLISH), material.queries()
    index = engine_index.opened(engine_index.saved(folder, material))
    asked = engine_corpus.query_vectors(queries)
    findings = Findings()
    scan = faiss_scan(_block(material))
    parts: list[Sequence[Callable[[], object]]] = [
        [partial(scan, vector, LIMIT) for vector in asked]
    ]
    name, target = "FAISS scan", Target(most=10)
    if is_installed("tantivy"):
        peer = Tantivy(terms_of(analyzer, row) for row in material.rows())
        parts.append([peer.search(analyzer, text, LIMIT) for text in queries])
        name, target = "FAISS scan + tantivy", Target(most=10, ratio_most=1.3)
    else:
        findings.notes.append(_not_installed("tantivy"))
    sides: dict[str, list[Callable[[], object]]] = {
        "ours": [
            partial(index.search, Query(text, LIMIT, wants_snippets=False), vector)
            for text, vector in zip(queries, asked, strict=True)
        ],
        "with snippets": [
            partial(index.search, Query(text, LIMIT), vector)
            for text, vector in zip(queries, asked, strict=True)
        ],
        name: [partial(_each, calls) for calls in zip(*parts, strict=True)],
    }
    taken = {side: percentiles(each) for side, each in interleaved_ms(sides).items()}
    for cut, judged in (("p50 ms", NO_TARGET), ("p95 ms", target)):
        findings.add(
            f"hybrid {cut.removesuffix(' ms')}",
            taken["ours"][cut],
            "ms",
            anchor=(name, taken[name][cut]),
            target=judged,
        )
        findings.add(f"hybrid with snippets {cut[:3]}", taken["with snippets"][cut], "ms")
    return findings


def _each(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def _block(material: Material) -> NDArray[np.float32]:
    hashes = [chunk.content_hash for file in material.parsed_files() for chunk in file.chunks]
    return corpus.vectors(hashes, engine_corpus.DIM)


def _not_installed(package: str) -> str:
    return f"{package} is not installed; `pip install {package}` puts it beside ours"
