"""Who embeds a text that several files need at the same moment?

Equal sections of files that are indexed side by side are embedded once: the first file claims the
hash, the others wait for its vector.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from numpy.typing import NDArray

    from memory.messages import Chunk


class VectorClaims:
    """Vectors that are being embedded right now, by content hash; one event loop."""

    def __init__(self) -> None:
        self._claims: dict[str, asyncio.Future[NDArray[np.float32]]] = {}

    async def embed(
        self,
        chunks: Sequence[Chunk],
        embed: Callable[[Sequence[Chunk]], Awaitable[NDArray[np.float32]]],
    ) -> tuple[NDArray[np.float32], list[Chunk]]:
        """Returns the vectors of chunks with distinct hashes, and which were embedded here.

        Those claims stay until ``release``, so that a file planned meanwhile finds either the claim
        or the stored vector. Embeds its own share before it waits for others: no deadlock.

        Args:
            chunks: Chunks with distinct content hashes.
            embed: Embeds some of them, one row each.

        Returns:
            Shape (len(chunks), dim), float32, in the order of ``chunks``; what to ``release``.

        Raises:
            EmbeddingError: own share failed, or that of the file waited for.
        """
        mine = [chunk for chunk in chunks if chunk.content_hash not in self._claims]
        for chunk in mine:
            self._claims[chunk.content_hash] = asyncio.get_running_loop().create_future()
        futures = [self._claims[chunk.content_hash] for chunk in chunks]
        try:
            vectors = await embed(mine) if mine else ()
            for chunk, vector in zip(mine, vectors, strict=True):
                self._claims[chunk.content_hash].set_result(vector)
            if futures:
                await asyncio.wait(futures)  # unlike gather, it never cancels what others wait for
            rows = [future.result() for future in futures]
        except BaseException as error:
            self._give_up(mine, error)
            raise
        return (np.stack(rows) if rows else np.empty((0, 0), np.float32)), mine

    def release(self, mine: Sequence[Chunk]) -> None:
        """Forgets own claims, once the index holds their vectors or the file was given up."""
        for chunk in mine:
            del self._claims[chunk.content_hash]

    def _give_up(self, mine: Sequence[Chunk], error: BaseException) -> None:
        cause = error if isinstance(error, Exception) else RuntimeError("cancelled")
        for chunk in mine:
            future = self._claims.pop(chunk.content_hash)
            if not future.done():
                future.set_exception(cause)
                future.exception()  # marks it as seen: perhaps nobody waits for it
