"""When does a daemon learn that its Ray has died?

At once: the kernel tells when a process ends. Ray itself would notice a dead GCS after a minute,
and end the driver from C++, without a word to Python and with processes left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memory.processes import Process


@contextlib.contextmanager
def watched(processes: Iterable[Process], on_end: Callable[[str], None]) -> Iterator[None]:
    """Calls back in the running loop with the name of a process that ends within the block."""
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        for process in processes:
            try:
                descriptor = os.pidfd_open(process.pid)
            except OSError:
                on_end(process.name)
                continue
            stack.callback(os.close, descriptor)
            stack.callback(loop.remove_reader, descriptor)
            loop.add_reader(descriptor, _tell_once, loop, descriptor, on_end, process.name)
        yield


def _tell_once(
    loop: asyncio.AbstractEventLoop, descriptor: int, on_end: Callable[[str], None], name: str
) -> None:
    loop.remove_reader(descriptor)  # an ended process stays readable
    on_end(name)
