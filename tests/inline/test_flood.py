"""A fast disk and a keeper that does not answer: nothing piles up between them."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from actors.chunker import MAX_FILES_IN_FLIGHT
from actors.watcher import Watcher

if TYPE_CHECKING:
    from tests.inline.conftest import Pipe

NUM_FILES = 50
NUM_ROUNDS = 200
MOST_GROWTH_BYTES = 1_000_000
"""For NUM_ROUNDS * NUM_FILES = 10,000 events; a queue of them all would hold more than 2 MB."""


class Gate:
    """Counts the calls of a method that waits until it is opened."""

    def __init__(self, method: Any) -> None:
        self._method = method
        self.opened = asyncio.Event()
        self.num_now = self.most_at_once = 0

    async def __call__(self, *arguments: Any) -> Any:
        self.num_now += 1
        self.most_at_once = max(self.most_at_once, self.num_now)
        await self.opened.wait()
        self.num_now -= 1
        result = self._method(*arguments)
        return await result if asyncio.iscoroutine(result) else result


@pytest.mark.slow
async def test_ten_thousand_events_before_a_keeper_that_hangs_are_one_entry_a_file(pipe: Pipe):
    """FAULTS 72."""
    await pipe.settle()
    plans, notices = Gate(pipe.keeper.shell.plan), Gate(pipe.chunker.shell.notice)
    pipe.keeper.shell.plan, pipe.chunker.shell.notice = plans, notices
    notices.opened.set()
    names = tuple(f"{number}.md" for number in range(NUM_FILES))
    for name in names:
        pipe.write(name, f"# {name}\n\nThe text of {name}.\n")
    watcher = Watcher(pipe.root, pipe.chunker, pipe.clock)
    tracemalloc.start()
    try:
        for number in range(NUM_ROUNDS):
            watcher._note(names, False)
            await pipe.clock.advance(0.1)
            if number == NUM_ROUNDS // 10:
                before, _peak = tracemalloc.get_traced_memory()
        after, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    status = await pipe.chunker.status.remote()

    assert after - before < MOST_GROWTH_BYTES
    assert status.num_pending == NUM_FILES
    assert plans.most_at_once == MAX_FILES_IN_FLIGHT
    assert notices.most_at_once == 1
    plans.opened.set()
    await pipe.settle()
    await watcher.stop()
    assert pipe.differences() == []
