"""Values that are remembered for a while."""

from __future__ import annotations

from memory.recent import Recent


def test_the_value_that_was_not_used_for_longest_goes():
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    recent.get("a")
    recent.put("c", 3)

    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    assert len(recent) == 2


def test_a_value_that_is_put_again_is_new_and_counts_once():
    recent: Recent[str, int] = Recent(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        recent.put(key, value)

    assert [recent.get(key) for key in "abc"] == [3, None, 4]


def test_what_is_popped_is_gone():
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)

    assert recent.pop("a") == 1
    assert recent.pop("a") is None
    assert len(recent) == 0
