"""How do actors keep a background loop alive, and how do they call a neighbour that may restart?

These are the only places that catch Ray's actor errors: a dead neighbour is waited for, because Ray
restarts it. A loop that keeps failing ends its process, so that Ray restarts the actor instead of
leaving one that answers but no longer works.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError

from memory.errors import MemoryPluginError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from memory.clock import Clock

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0
MAX_FAILURES = 8
GONE = (RayActorError, OutOfMemoryError)
"""What a call raises whose actor has ended, or was ended to save memory; Ray restarts it."""
EXPECTED_ERRORS = (MemoryPluginError, ValueError, OSError)
"""What our actors raise on purpose: ours, a refused argument, a refusing disk, a deadline."""


def end_process(name: str, error: BaseException) -> NoReturn:
    """Ends this worker process so that Ray starts the actor afresh."""
    logger.critical("%s cannot go on, restarting the actor: %r", name, error)
    logging.shutdown()
    os._exit(1)


def spawn(
    name: str,
    coroutine: Coroutine[Any, Any, NoReturn],
    *,
    on_death: Callable[[str, BaseException], None] = end_process,
) -> asyncio.Task[NoReturn]:
    """Starts a background loop in the running event loop.

    The caller keeps the task in a field; asyncio itself holds it only weakly.

    Args:
        name: Shown in the log.
        coroutine: Usually ``run_forever(...)``; it must not return.
        on_death: Called with the name and the error when the loop raised.
    """

    def finished(task: asyncio.Task[NoReturn]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            on_death(name, error)

    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    task.add_done_callback(finished)
    return task


async def run_forever(step: Callable[[], Awaitable[None]], *, clock: Clock) -> NoReturn:
    """Repeats a step; waits longer after each failure in a row.

    A step that finds a neighbour dead is repeated without limit, because that neighbour restarts.
    Any other error is counted; after ``MAX_FAILURES`` in a row it is raised.
    """
    delay_s, failures = FIRST_DELAY_S, 0
    while True:
        try:
            await step()
        except GONE as error:
            logger.info("waiting for a neighbour: %s", type(error).__name__)
        except Exception:
            failures += 1
            logger.exception("background step failed (%d in a row)", failures)
            if failures >= MAX_FAILURES:
                raise
        else:
            delay_s, failures = FIRST_DELAY_S, 0
            continue
        await clock.sleep(delay_s)
        delay_s = min(2 * delay_s, LONGEST_DELAY_S)


async def answer(reference: Awaitable[T]) -> T:
    """Returns what one call gives.

    Raises:
        MemoryPluginError: what the neighbour raised, as its own class and not Ray's wrapper, so
            that it can cross another actor without losing its type. The same holds for the other
            EXPECTED_ERRORS; the wrapper's text would be a whole traceback.
        RayActorError, OutOfMemoryError: the neighbour is not there right now (``GONE``).
    """
    try:
        return await reference
    except RayTaskError as error:
        if isinstance(error.cause, EXPECTED_ERRORS):
            raise error.cause from None
        raise


async def call(attempt: Callable[[], Awaitable[T]], *, clock: Clock, deadline_s: float) -> T:
    """Returns what a neighbour answers, waiting for it while it restarts.

    Args:
        attempt: Makes one call, ``lambda: handle.method.remote(x)``; must be safe to repeat.
        clock: Time for the pauses.
        deadline_s: Seconds for everything together.

    Raises:
        TimeoutError: no answer before the deadline.
        MemoryPluginError: what the neighbour raised, as its own class and not Ray's wrapper, so
            that it can cross another actor without losing its type.
    """
    delay_s = FIRST_DELAY_S
    async with asyncio.timeout(deadline_s):
        while True:
            try:
                return await answer(attempt())
            except GONE as error:
                logger.info("waiting for a neighbour: %s", type(error).__name__)
            await clock.sleep(delay_s)
            delay_s = min(2 * delay_s, LONGEST_DELAY_S)
