"""Does a fused score rank well, and mean the same for every query?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.fusion import FusedHits, VectorSide, Weights, best_of, fuse
from memory.text_query import TextHits


def text_side(scores: dict[int, float], best_possible: float = 10.0) -> TextHits:
    bm25 = np.array(list(scores.values()), np.float32)
    return TextHits(
        np.array(list(scores), np.int64), bm25, np.minimum(bm25 / np.float32(best_possible), 1), ()
    )


def vector_side(similarities: dict[int, float], noise: float = 0.2) -> VectorSide:
    return VectorSide(
        np.array(list(similarities), np.int64),
        np.array(list(similarities.values()), np.float32),
        np.full(len(similarities), noise, np.float32),
    )


def scores_of(hits: FusedHits) -> dict[int, float]:
    return dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))


def fused(
    text: TextHits | None,
    vectors: VectorSide | None,
    *,
    weights: Weights | None = None,
    floor: float = 0.3,
    threshold: float = 0.55,
) -> dict[int, float]:
    weights = weights or Weights()
    if text is not None and vectors is not None and weights.text:
        vectors = behind(text, vectors)
    hits = fuse(text, vectors, weights=weights, floor=floor, noise=0.2, threshold=threshold)
    return scores_of(hits)


def behind(text: TextHits, vectors: VectorSide) -> VectorSide:
    """Puts the rows of the text side first; cosines that a test does not give are zero."""
    values = zip(vectors.similarities.tolist(), vectors.noise.tolist(), strict=True)
    known = dict(zip(vectors.rows.tolist(), values, strict=True))
    both = dict.fromkeys(text.rows.tolist(), (0.0, 0.2)) | known
    similarities, noise = np.array(list(both.values()), np.float32).reshape(-1, 2).T
    return VectorSide(np.array(list(both), np.int64), similarities, noise)


def test_scores_of_a_small_example_worked_out_by_hand():
    """Row 1 leads the text side, row 2 the vector side; best possible 10, noise 0.2.

    c = .8, .4, 0 and v = (cos - .2) / .8 = .25, .75, .5, so 1 - (1-c)(1-v) = .85, .85, .5: the
    level is .85. r = each side divided by its maximum, times the root of its best: of .8 and .75.
    The third has half of the best; three quarters would be .55.
    """
    found = fused(text_side({1: 8, 2: 4}), vector_side({1: 0.4, 2: 0.8, 3: 0.6}))

    text, vector, least = math.sqrt(0.8), math.sqrt(0.75), math.sqrt(0.75)
    best = text + vector / 2
    share = math.sqrt((text / 2 + vector) / best)
    second = 0.55 + 0.3 * (share - least) / (1 - least)
    third = math.sqrt(0.75 * vector / best) * 0.55 / least
    assert found == pytest.approx({1: 0.85, 2: second, 3: third}, rel=1e-6)


def test_a_level_below_the_floor_is_shared_by_rank():
    """c = .2, .1; v = 0 as the cosines are at the noise, so that they count for nothing."""
    found = fused(text_side({1: 2, 2: 1}), vector_side({1: 0.2, 2: 0.2}, noise=0.2))

    assert found == pytest.approx({1: 0.2, 2: 0.2 * math.sqrt(0.5)}, rel=1e-6)


def test_the_threshold_is_where_the_scores_of_answers_begin():
    text = text_side({1: 4})

    assert fused(text, None, threshold=0.4) == pytest.approx({1: 0.55})
    assert fused(text, None, threshold=0.8) == pytest.approx({1: 0.275})
    # Half way from the threshold to one.
    assert fused(text, None, threshold=0.2) == pytest.approx({1: 0.55 + 0.45 * 0.25})


def test_cosines_count_less_where_all_texts_resemble_one_another():
    """Row 2 has the greater cosine, but half of it is noise."""
    noisy = VectorSide(
        np.array([1, 2]), np.array([0.5, 0.6], np.float32), np.array([0.2, 0.55], np.float32)
    )
    hits = fuse(None, noisy, weights=Weights(), floor=0.3, noise=0.2)

    # v = .3/.8, .05/.8; what ranks are the cosines without the noise beyond .2: .5, .25.
    level = 0.3 / 0.8
    assert scores_of(hits) == pytest.approx({1: level, 2: level * math.sqrt(0.5)}, rel=1e-5)
    assert hits.level == pytest.approx(level, rel=1e-5)


def test_words_decide_where_the_model_tells_texts_apart_badly():
    """Noise .6 where the base is .2 leaves half of the range: the side counts (.4 / .8)^4."""
    text = text_side({1: 8.0, 2: 6.0})
    hits = fused(text, vector_side({1: 0.7, 2: 0.9}, noise=0.6))

    # Text: 1, .75, of c = .8. Vectors: .3/.5, .5/.5, of v = .3/.8, each / 16.
    text, vector = math.sqrt(0.8), math.sqrt(0.375) / 16
    share = math.sqrt((0.75 * text + vector) / (text + 0.6 * vector))
    level, least = 1 - 0.2 * (1 - 0.125), math.sqrt(0.75)
    second = 0.55 + (level - 0.55) * (share - least) / (1 - least)
    assert hits == pytest.approx({1: level, 2: second}, rel=1e-5)


def test_a_model_that_knows_the_language_of_the_best_rows_counts_in_full():
    """However many rows of another language the words found."""
    num_others = 50
    rows = np.arange(10 + num_others)
    cosines = np.append(np.linspace(0.9, 0.5, 10), np.full(num_others, 0.7)).astype(np.float32)
    noise = np.append(np.full(10, 0.2), np.full(num_others, 0.65)).astype(np.float32)
    text = text_side(dict(zip(rows.tolist(), np.linspace(8, 9, len(rows)), strict=True)))

    hits = fuse(text, VectorSide(rows, cosines, noise), weights=Weights(), floor=0.3, noise=0.2)

    assert hits.rows[hits.scores.argmax()] == 0


def test_a_cosine_within_the_noise_of_its_row_is_no_hit():
    side = VectorSide(np.array([1]), np.array([0.6], np.float32), np.array([0.6], np.float32))

    assert scores_of(fuse(None, side, weights=Weights(), floor=0.3, noise=0.2)) == {}


def test_weights_are_shares_worked_out_by_hand():
    """Weights 3 : 1. The best c is .8, the best v .75; level = 1 - (1-.8)^1 (1-.25)^(1/3)."""
    found = fused(
        text_side({1: 8}), vector_side({1: 0.4, 2: 0.8}), weights=Weights(text=3, vector=1)
    )

    level = max(1 - 0.2 * 0.75 ** (1 / 3), 1 - 0.25 ** (1 / 3))
    text, vector = 3 * math.sqrt(0.8), math.sqrt(0.75)
    second = math.sqrt(vector / (text + 0.5 * vector)) * 0.55 / math.sqrt(0.75)
    assert found == pytest.approx({1: level, 2: second}, rel=1e-6)


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


@given(SIDE, SIDE, st.floats(0, 4), st.floats(0.1, 4), st.floats(0.05, 0.9))
def test_scores_stay_between_zero_and_one_and_keep_the_order_of_the_weighted_sum(
    texts, similarities, text_weight, vector_weight, threshold
):
    found = fused(
        text_side(texts, best_possible=0.8),
        vector_side(similarities),
        weights=Weights(text_weight, vector_weight),
        floor=0.0,
        threshold=threshold,
    )

    assert all(0 <= score <= 1 for score in found.values())
    texts = texts if text_weight else {}
    # A text hit whose cosine is not given has none.
    above_noise = {
        row for row, cosine in similarities.items() if np.float32(cosine) > np.float32(0.2)
    }
    assert set(found) == set(texts) | above_noise
    cosines = {row: similarities.get(row, 0) for row in found}
    most_text, most_vector = max(texts.values(), default=1), max(cosines.values(), default=0) or 1
    text_share = text_weight * math.sqrt(min(most_text / 0.8, 1))
    vector_share = vector_weight * math.sqrt(max(most_vector - 0.2, 0) / 0.8)
    sums = {
        row: text_share * texts.get(row, 0) / most_text + vector_share * cosines[row] / most_vector
        for row in found
    }
    ranked = sorted(found, key=lambda row: -sums[row])
    scores = [found[row] for row in ranked]
    assert scores == pytest.approx(sorted(scores, reverse=True), rel=1e-5)


def test_of_several_answers_each_row_counts_as_what_scores_it_most():
    one = fuse(text_side({1: 9.0, 2: 5.0}), None, weights=Weights(), floor=0.3, noise=0.2)
    other = fuse(text_side({3: 6.0, 2: 5.9}), None, weights=Weights(), floor=0.3, noise=0.2)

    best, numbers = best_of([one, other])

    expected = scores_of(one) | scores_of(other)
    assert scores_of(best) == expected
    assert dict(zip(best.rows.tolist(), numbers.tolist(), strict=True)) == {1: 0, 2: 1, 3: 1}
    assert best.text_scores[best.rows == 2] == pytest.approx(0.59)
    assert best.level == one.level > other.level


def test_of_equal_scores_the_first_answer_counts():
    one = fuse(text_side({1: 9.0}), None, weights=Weights(), floor=0.3, noise=0.2)

    assert best_of([one, one])[1].tolist() == [0]


def test_another_threshold_scores_the_same_hits_as_if_they_were_found_with_it():
    sides = text_side({1: 9.0, 2: 5.0}), None
    rules = {"weights": Weights(), "floor": 0.3, "noise": 0.2}
    hits = fuse(*sides, **rules).at(0.3)

    assert scores_of(hits) == scores_of(fuse(*sides, **rules, threshold=0.3))
