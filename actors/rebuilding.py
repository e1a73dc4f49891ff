"""How is every file embedded anew while the daemon runs, and when is that done?

The keeper begins another index of the same model; the Chunker finds that it lacks every file, and
has it take over in the end, as that of another model (see ``succeeding``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.loops import call
from memory.errors import DaemonError

if TYPE_CHECKING:
    from actors.system import MemorySystem
    from memory.clock import Clock
    from memory.payloads import RebuildBegunPayload

CALL_DEADLINE_S = 60.0


async def begin(system: MemorySystem, clock: Clock) -> RebuildBegunPayload:
    """Begins to embed every file anew, unless another index is being built already.

    Raises:
        DaemonError: the disk refused.
        TimeoutError: the keeper does not answer.
    """
    try:
        begun = await call(
            system.keeper.begin_rebuild.remote, clock=clock, deadline_s=CALL_DEADLINE_S
        )
    except OSError as error:
        raise DaemonError(f"nothing was begun: {error.strerror or error}") from error
    status = await call(system.keeper.status.remote, clock=clock, deadline_s=CALL_DEADLINE_S)
    resumed = status.building is not None and not begun
    return {"begun": begun, "resumed": resumed, "rebuild": (status.building or status).rebuild}


async def is_complete(system: MemorySystem, rebuild: int, clock: Clock) -> bool:
    """Tells whether the index of a rebuild answers, and nothing is left to index.

    Args:
        system: The actors.
        rebuild: Number of the rebuild.
        clock: For pauses while an actor restarts.

    Raises:
        DaemonError: it was given up.
        TimeoutError: an actor does not answer.
    """
    index = await call(system.keeper.status.remote, clock=clock, deadline_s=CALL_DEADLINE_S)
    if index.building is not None:
        return False
    if index.rebuild < rebuild:
        raise DaemonError("the rebuild was given up, for the model or the index changed meanwhile")
    chunker = await call(system.chunker.status.remote, clock=clock, deadline_s=CALL_DEADLINE_S)
    return chunker.ready
