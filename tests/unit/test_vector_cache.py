"""Which vectors survive their chunk?"""

from __future__ import annotations

import numpy as np
import pytest

from memory.vector_cache import VectorCache


def vector(value: float) -> np.ndarray:
    return np.full(4, value, np.float32)


def test_the_vector_unused_for_longest_goes_first():
    cache = VectorCache(max_bytes=3 * 16)
    for name in "abc":
        cache.put(name, vector(1))
    cache.get("a")
    cache.put("d", vector(1))

    assert [name for name, _vector in cache] == ["c", "a", "d"]


def test_replacing_and_discarding_give_their_bytes_back():
    cache = VectorCache(max_bytes=2 * 16)
    cache.put("a", vector(1))
    cache.put("a", vector(2))
    cache.put("b", vector(3))
    cache.discard("b")
    cache.discard("never there")
    cache.put("c", vector(4))

    assert len(cache) == 2
    assert cache.get("a").tolist() == [2, 2, 2, 2]


def test_a_copy_is_kept():
    cache, mine = VectorCache(), vector(1)
    cache.put("a", mine)
    mine[:] = 9

    assert cache.get("a").tolist() == [1, 1, 1, 1]


def test_an_unknown_hash_is_a_key_error():
    assert "a" not in VectorCache()
    with pytest.raises(KeyError):
        VectorCache().get("a")


def test_a_cache_too_small_for_one_vector_keeps_none():
    cache = VectorCache(max_bytes=15)
    cache.put("a", vector(1))

    assert len(cache) == 0


def test_what_is_kept_is_told_from_what_was_removed_lately():
    cache = VectorCache(max_bytes=5 * 16)
    cache.put("a", vector(1))
    cache.keep("b", vector(2))
    cache.put("c", vector(3))
    cache.put("d", vector(4))

    assert [name for name, _vector in cache.kept()] == ["b"]
    assert [name for name, _vector in cache.removed(2 * 16)] == ["c", "d"]
    assert [name for name, _vector in cache.removed(3 * 16 - 1)] == ["c", "d"]
    cache.put("b", vector(5))
    assert cache.kept() == []
    assert [name for name, _vector in cache.removed(16)] == ["b"]


def test_what_is_kept_goes_too_when_there_is_no_room():
    cache = VectorCache(max_bytes=2 * 16)
    cache.keep("a", vector(1))
    cache.keep("b", vector(2))
    cache.put("c", vector(3))

    assert [name for name, _vector in cache.kept()] == ["b"]
    cache = VectorCache(max_bytes=8)
    cache.keep("too large", vector(1))
    assert cache.kept() == []
