"""Does a fused score rank well, and mean the same for every query?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.fusion import FusedHits, TextSide, VectorSide, Weights, fuse


def text_side(scores: dict[int, float], best_possible: float = 10.0) -> TextSide:
    return TextSide(
        np.array(list(scores), np.int64), np.array(list(scores.values()), np.float32), best_possible
    )


def vector_side(similarities: dict[int, float]) -> VectorSide:
    return VectorSide(
        np.array(list(similarities), np.int64), np.array(list(similarities.values()), np.float32)
    )


def scores_of(hits: FusedHits) -> dict[int, float]:
    return dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))


def fused(
    text: TextSide | None,
    vectors: VectorSide | None,
    *,
    weights: Weights | None = None,
    floor: float = 0.3,
    noise: float = 0.2,
) -> dict[int, float]:
    weights = weights or Weights()
    if text is not None and vectors is not None and weights.text:
        vectors = behind(text, vectors)
    return scores_of(fuse(text, vectors, weights=weights, floor=floor, noise=noise))


def behind(text: TextSide, vectors: VectorSide) -> VectorSide:
    """Puts the rows of the text side first; cosines that a test does not give are zero."""
    known = dict(zip(vectors.rows.tolist(), vectors.similarities.tolist(), strict=True))
    return vector_side(dict.fromkeys(text.rows.tolist(), 0.0) | known)


def test_scores_of_a_small_example_worked_out_by_hand():
    """Row 1 leads the text side, row 2 the vector side; best possible 10, noise 0.2.

    c = .8, .4, 0 and v = (cos - .2) / .8 = .25, .75, .5, so 1 - (1-c)(1-v) = .85, .85, .5: the
    level is .85. r = half of each side divided by its maximum: (1 + .5)/2, (.5 + 1)/2, (0 + .75)/2.
    """
    found = fused(text_side({1: 8, 2: 4}), vector_side({1: 0.4, 2: 0.8, 3: 0.6}))

    assert found == pytest.approx(
        {1: math.sqrt(0.75) * 0.85, 2: math.sqrt(0.75) * 0.85, 3: math.sqrt(0.375) * 0.85}, rel=1e-6
    )


def test_weights_are_shares_worked_out_by_hand():
    """Weights 3 : 1. r of row 1 = (3 + .5)/4; level = 1 - (1-.8)^1 (1-.25)^(1/3)."""
    found = fused(
        text_side({1: 8}), vector_side({1: 0.4, 2: 0.8}), weights=Weights(text=3, vector=1)
    )

    level = max(1 - 0.2 * 0.75 ** (1 / 3), 1 - 0.25 ** (1 / 3))
    assert found == pytest.approx(
        {1: math.sqrt(3.5 / 4) * level, 2: math.sqrt(1 / 4) * level}, rel=1e-6
    )


def test_the_weaker_side_counts_less_whichever_it_is():
    """Weights 1 : 3, one hit: level = 1 - (1-.8)^(1/3) (1-.25)^1, and r = 1."""
    found = fused(text_side({1: 8}), vector_side({1: 0.4}), weights=Weights(text=1, vector=3))

    assert found == pytest.approx({1: 1 - 0.2 ** (1 / 3) * 0.75}, rel=1e-6)


def test_only_the_ratio_of_weights_matters():
    sides = text_side({1: 8, 2: 3}), vector_side({2: 0.5, 3: 0.7})

    assert fused(*sides, weights=Weights(0.2, 0.6)) == pytest.approx(
        fused(*sides, weights=Weights(1, 3))
    )
    huge, tiny = Weights(0.5e308, 1.5e308), Weights(1e-320, 3e-320)
    assert fused(*sides, weights=huge) == pytest.approx(fused(*sides, weights=Weights(1, 3)))
    assert fused(*sides, weights=tiny) == pytest.approx(
        fused(*sides, weights=Weights(1, 3)), rel=1e-3
    )


def test_a_zero_weight_takes_its_side_out_altogether():
    text, vectors = text_side({1: 8, 2: 4}), vector_side({2: 0.9, 3: 0.9})

    text_only = fuse(text, vectors, weights=Weights(1, 0), floor=0.3, noise=0.2)
    assert scores_of(text_only) == fused(text, None)
    assert text_only.vector_scores.tolist() == [0, 0]
    vector_only = fuse(text, vectors, weights=Weights(0, 1), floor=0.3, noise=0.2)
    assert scores_of(vector_only) == fused(None, vectors)
    assert vector_only.text_scores.tolist() == [0, 0]


def test_a_side_that_is_unavailable_leaves_the_other_its_full_score():
    """FAULTS 82: half a text score could never pass 0.55."""
    assert fused(text_side({1: 9}), None) == pytest.approx({1: 0.9})
    assert fused(None, vector_side({1: 0.6})) == pytest.approx({1: 0.5})


def test_no_side_at_all_has_no_hits():
    assert fused(None, None) == {}
    assert fused(text_side({1: 8}), None, weights=Weights(0, 1)) == {}


def test_sides_without_hits_have_no_hits():
    assert fused(text_side({}), vector_side({})) == {}


def test_the_floor_holds_only_for_hits_that_text_did_not_find():
    found = fused(text_side({1: 1}), vector_side({1: 0.1, 2: 0.29, 3: 0.3000001}))

    assert set(found) == {1, 3}


def test_an_exact_match_of_one_side_can_pass_the_default_threshold():
    """SPEC S5: an id that only text knows, a pure paraphrase."""
    an_id = fused(text_side({1: 10}), vector_side({1: 0.15, 2: 0.35, 3: 0.31}))
    a_paraphrase = fused(text_side({7: 0.5}), vector_side({1: 0.95, 2: 0.35}))

    assert an_id[1] == max(an_id.values()) > 0.55
    assert a_paraphrase[1] > 0.55 > a_paraphrase[2]


def test_a_query_about_something_else_stays_low():
    """Max-normalised alone, its best hits would score near 1."""
    found = fused(text_side({1: 1.5, 2: 1.4}), vector_side({1: 0.33, 3: 0.35}))

    assert max(found.values()) < 0.35


def test_scores_of_the_sides_are_reported():
    text, vectors = text_side({5: 12, 6: 4}), vector_side({5: 0.0, 6: -0.5})
    hits = fuse(text, vectors, weights=Weights(), floor=0.3, noise=0.2)

    assert hits.rows.tolist() == [5, 6]
    assert hits.text_scores.tolist() == pytest.approx([1.0, 0.4])
    assert hits.vector_scores.tolist() == pytest.approx([0.0, -0.5])


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2), (float("nan"), 1), (1, float("inf"))])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        Weights(*weights)


PERCENT = st.integers(1, 100).map(lambda percent: percent / 100)
SIDE = st.dictionaries(st.integers(0, 30), PERCENT, max_size=20)


@given(SIDE, SIDE, st.floats(0, 4), st.floats(0.1, 4), st.floats(0, 0.9))
def test_scores_stay_between_zero_and_one_and_keep_the_order_of_the_weighted_sum(
    texts, similarities, text_weight, vector_weight, noise
):
    found = fused(
        text_side(texts, best_possible=0.8),
        vector_side(similarities),
        weights=Weights(text_weight, vector_weight),
        floor=0.0,
        noise=noise,
    )

    assert all(0 <= score <= 1 for score in found.values())
    texts = texts if text_weight else {}
    total, most_text = text_weight + vector_weight, max(texts.values(), default=1)
    most_vector = max(similarities.values(), default=1)
    sums = {
        row: text_weight / total * texts.get(row, 0) / most_text
        + vector_weight / total * similarities.get(row, 0) / most_vector
        for row in found
    }
    assert set(found) == set(texts) | set(similarities)
    best = max(found, key=lambda row: sums[row], default=None)
    if best is not None:
        assert found[best] == pytest.approx(max(found.values()), rel=1e-6)
