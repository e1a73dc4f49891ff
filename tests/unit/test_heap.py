"""Is freed memory given back where the C library can do so?"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from memory import heap


@pytest.mark.parametrize("asked", [[], [0]], ids=["another C library", "glibc"])
def test_only_glibc_is_asked_to_give_memory_back(monkeypatch, asked):
    calls = []
    library = SimpleNamespace(malloc_trim=calls.append) if asked else SimpleNamespace()
    monkeypatch.setattr("memory.heap.ctypes.CDLL", lambda _name: library)

    heap.trim()

    assert calls == asked
