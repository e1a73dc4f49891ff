"""Which pages of a mapped file does the process hold, and when does it let go of them?

What is let go of stays in the cache of the system, and comes back when it is looked at.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Buffer

_RELEASED_BYTES = 8 << 20


def maps_behind(buffers: Iterable[Buffer]) -> list[mmap.mmap]:
    """Returns the mapped files that some buffers are views of, each once."""
    owners = (each.obj for each in buffers if isinstance(each, memoryview))
    return list({id(each): each for each in owners if isinstance(each, mmap.mmap)}.values())


def release(maps: Iterable[mmap.mmap]) -> None:
    """Lets go of the pages of mapped files, where the system knows how."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for each in maps:
            each.madvise(mmap.MADV_DONTNEED)


def releasing(blocks: Iterable[Buffer], maps: Sequence[mmap.mmap]) -> Iterator[Buffer]:
    """Yields blocks made of mapped files, and lets go of what was read to make them."""
    num_bytes = 0
    for block in blocks:
        yield block
        num_bytes += memoryview(block).nbytes
        if num_bytes >= _RELEASED_BYTES:
            release(maps)
            num_bytes = 0
    release(maps)
