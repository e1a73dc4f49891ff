"""Are checksums right, and how far behind may they be?"""

from __future__ import annotations

import hashlib
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest

from memory.checksums import Checksums


class _Unhurried(Executor):
    """Does what it was given only when somebody waits for it."""

    def __init__(self):
        self.waiting = []

    def submit(self, work, *arguments):
        return _Promised(self.waiting, work, arguments)


class _Promised:
    def __init__(self, waiting, work, arguments):
        self._waiting, self._work, self._arguments = waiting, work, arguments
        waiting.append(self)

    def result(self):
        assert self._waiting.pop(0) is self
        self._work(*self._arguments)


@pytest.mark.parametrize("size", [3, 5, 50])
def test_a_helper_is_behind_by_few_bytes_or_one_block(monkeypatch, size):
    monkeypatch.setattr("memory.checksums._MOST_BEHIND", 10)
    helper, digests = _Unhurried(), (hashlib.sha256(), hashlib.sha256())
    checksums = Checksums(helper)
    blocks = [bytes([number]) * size for number in range(8)]
    for block in blocks:
        checksums.add(digests[0], block)

        assert len(helper.waiting) <= max(1, 10 // size)
    checksums.add(digests[1], b"another")
    checksums.finish()

    assert not helper.waiting
    assert digests[0].digest() == hashlib.sha256(b"".join(blocks)).digest()
    assert digests[1].digest() == hashlib.sha256(b"another").digest()


def test_without_a_helper_nothing_is_left_for_later():
    digest = hashlib.sha256()
    Checksums(None).add(digest, b"abc")

    assert digest.digest() == hashlib.sha256(b"abc").digest()


def test_what_goes_wrong_in_the_helper_is_heard_of():
    with ThreadPoolExecutor(1) as helper:
        checksums = Checksums(helper)
        checksums.add(hashlib.sha256(), memoryview(b"abcd")[::2])

        with pytest.raises(BufferError):
            checksums.finish()
