"""How are checksums computed beside the writing of what they are of?"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import hashlib
    from concurrent.futures import Executor, Future

    from typing_extensions import Buffer

_MOST_BEHIND = 2 << 20


class Checksums:
    """Adds blocks to checksums in the order they are given, at once or a little later.

    Args:
        helper: Has one thread, so that it keeps the order; it may be 2 MiB behind, or the last
            block, which are as much memory as it keeps. Without one nothing is left for later.
    """

    def __init__(self, helper: Executor | None) -> None:
        self._helper = helper
        self._pending: deque[tuple[int, Future[None]]] = deque()
        self._num_behind = 0

    def add(self, digest: hashlib._Hash, block: Buffer) -> None:
        """Adds a block that nobody changes; only after ``finish`` may the digest be asked."""
        if self._helper is None:
            digest.update(block)
            return
        size = memoryview(block).nbytes
        self._pending.append((size, self._helper.submit(digest.update, block)))
        self._num_behind += size
        while self._num_behind > _MOST_BEHIND and len(self._pending) > 1:
            self._wait()

    def finish(self) -> None:
        """Returns once everything was added."""
        while self._pending:
            self._wait()

    def _wait(self) -> None:
        size, added = self._pending.popleft()
        added.result()
        self._num_behind -= size
