"""What is said of a file that could not be indexed, and when is it tried again?"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from memory.errors import EmbeddingError, ProviderAwaited, ProviderUnavailable, TextsUnanswered
from memory.path_queue import Fault
from memory.workspace import FileUnsettled

if TYPE_CHECKING:
    from memory.clock import Clock
    from memory.path_queue import PathQueue, Work

logger = logging.getLogger(__name__)


class Failing:
    """Puts failed files back into the queue.

    Args:
        queue: Handed the work out.
        clock: For the time of the next attempt.
    """

    def __init__(self, queue: PathQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._embed_failure = ""

    def worked(self) -> None:
        """Notes that a file was indexed: what keeps the next from being embedded is news."""
        self._embed_failure = ""

    def failed(self, work: Work, error: Exception) -> None:
        """Notes why a file was not indexed."""
        match error:
            case FileUnsettled():
                self._fail(work, stage="read", reason=error.reason)
            case ProviderUnavailable():
                wait_s, fault = error.retry_after_s or 0.0, _fault(error)
                reason = str(error)
                self._fail(work, stage="embed", reason=reason, retry_after_s=wait_s, fault=fault)
            case EmbeddingError():
                self._fail(work, stage="embed", reason=str(error))
            case _:
                # One odd file must not take the others down with it: it is tried again.
                logger.error("%s: unexpected error", work.path, exc_info=error)
                self._fail(work, stage="apply", reason=type(error).__name__)

    def _fail(
        self,
        work: Work,
        *,
        stage: str,
        reason: str,
        retry_after_s: float = 0.0,
        fault: Fault = Fault.OWN,
    ) -> None:
        # While the provider is away, every file fails for the same reason, which is said once.
        is_news = stage != "embed" or reason != self._embed_failure
        level = logging.WARNING if is_news and fault is not Fault.UNTRIED else logging.DEBUG
        logger.log(level, "%s: %s failed: %s", work.path, stage, reason)
        if stage == "embed" and fault is not Fault.UNTRIED:
            self._embed_failure = reason
        self._queue.failed(
            work.path,
            stage=stage,
            reason=reason,
            now=self._clock.monotonic(),
            retry_after_s=retry_after_s,
            fault=fault,
        )


def _fault(error: ProviderUnavailable) -> Fault:
    match error:
        case ProviderAwaited():
            return Fault.UNTRIED
        case TextsUnanswered():
            return Fault.OWN
        case _:
            return Fault.OUTAGE
