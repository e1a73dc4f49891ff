"""How good a ranking is: values computed by hand."""

import math

import pytest

from memory.evaluation.measures import MEASURES, measures


def documents(names):
    return [(name, "") for name in names]


def grades(**by_name):
    return {(name, ""): grade for name, grade in by_name.items()}


def test_a_perfect_ranking_has_every_measure_at_1():
    assert measures(documents("abc"), grades(a=1, b=1)) == dict.fromkeys(MEASURES, 1.0)


def test_what_is_not_found_counts_nothing():
    assert measures(documents("xyz"), grades(a=1)) == dict.fromkeys(MEASURES, 0.0)
    assert measures([], grades(a=1)) == dict.fromkeys(MEASURES, 0.0)


def test_grades_weigh_the_gain_but_not_the_recall():
    found = measures(documents("xba"), grades(a=3, b=1))

    assert found["nDCG@10"] == pytest.approx(
        (1 / math.log2(3) + 3 / math.log2(4)) / (3 / math.log2(2) + 1 / math.log2(3))
    )
    assert (found["R@5"], found["R@10"], found["MRR"]) == (1.0, 1.0, 0.5)


def test_a_place_counts_up_to_the_cutoff():
    at_5, at_6 = documents("vwxya"), documents("vwxyza")
    at_11 = documents("bcdefghijka")

    assert measures(at_5, grades(a=1))["R@5"] == 1
    assert measures(at_6, grades(a=1))["R@5"] == 0
    assert measures(at_6, grades(a=1))["R@10"] == 1
    assert measures(at_6, grades(a=1))["nDCG@10"] == pytest.approx(1 / math.log2(7))
    assert measures(at_11, grades(a=1)) == {"R@5": 0, "R@10": 0, "nDCG@10": 0, "MRR": 1 / 11}


def test_recall_is_a_share_of_all_that_is_relevant():
    found = measures(documents("axb"), grades(a=1, b=1, c=1, d=1))

    assert found["R@5"] == 0.5
