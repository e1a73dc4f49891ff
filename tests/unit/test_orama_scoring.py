"""Does ``scoring: orama`` answer what Orama itself answers?

The expected answers were recorded from Orama, see "about" in the file.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.fusion import Weights
from memory.orama_scoring import (
    MAX_QUERY_CHARS,
    MAX_QUERY_TOKENS,
    OramaHits,
    OramaIndex,
    OramaRow,
)
from memory.orama_tokens import OramaTokenizer

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "orama_3.1.18.json").read_text("utf-8")
)
FIRST_ROW = 100
"""Rows are not numbered from 0, so that they are not taken for places."""
EVERY = 10**9
FINITE = [query for query in GOLDEN["queries"] if None not in query["scores"]]
(NAN,) = [query for query in GOLDEN["queries"] if None in query["scores"]]


def index_of(*contents: str) -> OramaIndex:
    rows = (OramaRow(row, "", "", "", content, "") for row, content in enumerate(contents))
    return OramaIndex(rows, OramaTokenizer("english"))


def by_text(index: OramaIndex, text: str) -> OramaHits:
    return index.search(text, similarities=None, weights=Weights(), floor=0.3, limit=EVERY)


@cache
def recorded_index() -> OramaIndex:
    rows = (
        OramaRow(
            row=FIRST_ROW + number,
            path=chunk["path"],
            headlines=chunk["headlines"],
            context=chunk["context"],
            content=chunk["content"],
            content_hash=chunk["contentHash"],
        )
        for number, chunk in enumerate(GOLDEN["chunks"])
    )
    return OramaIndex(rows, OramaTokenizer("english"))


def cosines_with(vector: list[float]) -> np.ndarray:
    """Returns the cosines of float32 vectors, equal ones for equal vectors."""
    block = np.array([chunk["embedding"] for chunk in GOLDEN["chunks"]], np.float32).astype(float)
    query = np.array(vector, np.float32).astype(float)
    norms = np.sqrt((block**2).sum(axis=1) * (query**2).sum())
    return (block * query).sum(axis=1) / norms


def answer_to(query: dict[str, Any], *, limit: int, step: int = 1) -> OramaHits:
    """Returns our answer; the similarities are handed over in the order of the step."""
    index = recorded_index()
    similarities = None
    if query["mode"] != "fulltext":
        similarities = (index.rows[::step], cosines_with(query["vector"])[::step])
    return index.search(
        None if query["mode"] == "vector" else query["text"],
        similarities=similarities,
        weights=Weights(**query.get("weights", {})),
        floor=query.get("similarity", 0.8),
        limit=limit,
    )


def name_of(query: dict[str, Any]) -> str:
    return f"{query['mode']}-{query['text']}"


@pytest.mark.parametrize("query", FINITE, ids=name_of)
def test_an_answer_is_the_one_of_orama(query):
    hits = answer_to(query, limit=query["limit"])

    assert (hits.rows - FIRST_ROW).tolist() == query["rows"]
    assert hits.scores == pytest.approx(query["scores"], abs=1e-6)
    assert len(answer_to(query, limit=EVERY).rows) == query["count"]


def test_the_recorded_queries_cover_every_mode_and_hold_ties():
    tied = [query for query in FINITE if len(set(query["scores"])) < len(query["scores"])]

    assert {query["mode"] for query in FINITE} == {"hybrid", "fulltext", "vector"}
    assert {query["mode"] for query in tied} == {"hybrid", "fulltext", "vector"}
    assert len(FINITE) > 40


def test_the_order_of_the_similarities_does_not_matter():
    (query, *_) = [each for each in FINITE if each["mode"] == "hybrid"]
    straight, reverse = answer_to(query, limit=9), answer_to(query, limit=9, step=-1)

    assert reverse.rows.tolist() == straight.rows.tolist()
    assert reverse.scores.tolist() == straight.scores.tolist()


def test_an_empty_text_ranks_by_vectors_where_orama_says_nan():
    hits = answer_to(NAN, limit=EVERY)
    cosines = cosines_with(NAN["vector"])

    assert NAN["text"] == ""
    assert (hits.rows - FIRST_ROW).tolist() == [
        row for row in np.argsort(-cosines, kind="stable") if cosines[row] >= NAN["similarity"]
    ]
    assert hits.scores[0] == 0.5


def test_a_hit_shows_both_sides():
    index = index_of("red fox", "tax")
    cosines = np.array([0.2, 0.9])
    hits = index.search(
        "fox", similarities=(index.rows, cosines), weights=Weights(), floor=0.3, limit=5
    )

    # N = 2, df = 1: idf = ln 2; n = 2, mean 1.5, tf = 1/2.
    bm25 = np.log(2) * (0.5 + 2.2 / 2) / (0.5 + 1.2 * (0.25 + 0.75 * 2 / 1.5))
    assert hits.rows.tolist() == [0, 1]
    assert hits.text_scores == pytest.approx([bm25, 0])
    assert hits.vector_scores.tolist() == [0, 0.9]
    assert hits.scores.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("contents", [("fox",), ()])
def test_a_row_that_the_index_does_not_have_is_refused(contents):
    with pytest.raises(ValueError, match="not in the index"):
        index_of(*contents).search(
            "fox",
            similarities=(np.array([7]), np.array([0.9])),
            weights=Weights(),
            floor=0.3,
            limit=1,
        )


@pytest.mark.parametrize("text", ["fox", "", None])
def test_an_index_without_rows_has_no_answer(text):
    index = OramaIndex((), OramaTokenizer("english"))
    nothing = (np.empty(0, np.int64), np.empty(0, np.float32))

    for similarities in (nothing, None):
        hits = index.search(text, similarities=similarities, weights=Weights(), floor=0.3, limit=5)
        assert [array.tolist() for array in hits] == [[], [], [], []]


def test_of_a_giant_query_the_first_characters_count():
    """SPEC S8."""
    index = index_of("fox", "owl")
    text = "fox".ljust(MAX_QUERY_CHARS) + "owl"

    assert by_text(index, text).rows.tolist() == [0]


def test_of_a_giant_query_the_first_tokens_count():
    """SPEC S8."""
    index = index_of("fox", "owl")
    fillers = [f"q{number}" for number in range(MAX_QUERY_TOKENS - 1)]

    assert by_text(index, " ".join(["fox", *fillers, "owl"])).rows.tolist() == [0]
    assert by_text(index, " ".join(["fox", *fillers[1:], "owl"])).rows.tolist() == [0, 1]
